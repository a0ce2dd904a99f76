"""Commands in hints, completed with the site, arch and stack of the command that was typed: pasted, they are about the same.

Many rooms make hints, and few of them know the site. So this file adds what a hint lacks, just before it is printed.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Sequence
from typing import Any

from provision.commands.options import find_command
from provision.errors import ProvisionError

QUOTED = re.compile(r"`[^`…]+`")
# Up to what ends a command in a line for a shell.
COMMAND = re.compile(r"(?<=[`( ])provision ([a-z][^`|>;&)]*)")
# Verbs whose text is a script, or a file.
PRODUCTS = ("job", "data", "spack", "activate", "completion", "example", "kernel", "tensorboard")
# Options of builds and proofs that are submitted already, or that are for this machine.
WITHOUT_A_JOB = re.compile(r" --(submit|plan|settings|provided|thorough)\b")
SUBJECTS = ("--site", "--arch", "--stack")


def complete(text: str, typed: Sequence[str], kept: Sequence[str] = SUBJECTS) -> str:
    """The text of a hint, with each command of this tool completed from these options that were typed."""
    given = {name: value for name, value in _given(typed).items() if name in kept}
    if not given:
        return text
    return QUOTED.sub(
        lambda quoted: COMMAND.sub(lambda match: f"provision {_completed(match[1], given, typed)}", quoted[0]), text
    )


def complete_text(text: str, typed: Sequence[str]) -> str:
    """The text of the verb that was typed first, with its commands completed, unless it is a script."""
    return text if typed[0] in PRODUCTS else complete(text, typed)


def complete_result(value: Any, typed: Sequence[str], key: str = "") -> Any:
    """The result of a verb, with the commands under `hint` completed."""
    if isinstance(value, dict):
        return {name: complete_result(inner, typed, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [complete_result(inner, typed, key) for inner in value]
    return complete(value, typed) if key == "hint" and isinstance(value, str) else value


def _given(typed: Sequence[str]) -> dict[str, str]:
    """The site, arch and stack that were typed."""
    given = {}
    for word, following in zip(typed, [*typed[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name in SUBJECTS and (value or following):
            given[name] = value if equals else following
    return given


def _completed(command: str, given: dict[str, str], typed: Sequence[str]) -> str:
    words = command.rstrip()
    rest = command[len(words) :]
    leaf = find_command(*words.split())
    if leaf is None or "--help" in words:
        return command
    if "--site" in given:
        words = re.sub(r"(?<=--site )SITE\b", shlex.quote(given["--site"]), words)
    # An environment has its arch and stack; `site new --arch` adds an arch; the verb that was typed is advised with other options
    # than before.
    same_verb = leaf.words == tuple(typed[: len(leaf.words)])
    only_site = "/" in words or words.startswith("site new ") or same_verb
    for name, value in given.items():
        if name in leaf.spellings and not re.search(rf"{name}[ =]", words) and (name == "--site" or not only_site):
            words += f" {name} {shlex.quote(value)}"
    return words + (" --submit" if _must_be_submitted(words, leaf.words) else "") + rest


def _must_be_submitted(command: str, leaf: tuple[str, ...]) -> bool:
    """Whether a build or a proof runs in a job that this command does not submit, and this is not a job."""
    site = re.search(r"--site[ =]([^' ]+)", command)
    if leaf not in (("build",), ("test",)) or site is None or WITHOUT_A_JOB.search(command):
        return False
    from provision.machine.configuration import shipped
    from provision.machine.programs.shell import environ
    from provision.schedulers import job_here

    with contextlib.suppress(ProvisionError):
        return job_here(environ()) is None and shipped.load_site(site[1]).scheduler.name != "none"
    return False
