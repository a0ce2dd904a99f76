"""Commands in hints, completed with site, arch, stack and backend: pasted, they are about the same.

Many rooms make hints, and few of them know the site. So this file adds what a hint lacks, just before it is printed: the values
of the environment that the hint is about, if there is one, or else those that were typed.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from provision.commands.options import find_command
from provision.commands.options.declare import CommandOptions
from provision.commands.shared.parsers import parse
from provision.errors import ProvisionError

QUOTED = re.compile(r"`[^`…]+`")
# Up to what ends a command in a line for a shell.
COMMAND = re.compile(r"(?<=[`( ])provision ([a-z][^`|>;&)]*)")
# Verbs whose text is a script, or a file.
PRODUCTS = ("job", "data", "spack", "activate", "completion", "example", "kernel", "tensorboard")
# Options of builds and proofs that are submitted already, or that are for this machine.
WITHOUT_A_JOB = re.compile(r" --(submit|plan|settings|provided|thorough)\b")
SUBJECTS = ("--site", "--arch", "--stack", "--backend")
# Verbs whose `--stack` chooses among what is there, instead of what is made.
CHOOSERS = ("list", "audit", "test")


def complete(text: str, typed: Sequence[str], kept: Sequence[str] = SUBJECTS) -> str:
    """The text of a hint, with each command of this tool completed for what was typed."""
    if "provision " not in text:
        return text
    given = {name: value for name, value in {**_given(typed), **_of_environment(typed)}.items() if name in kept}
    return complete_with(text, given, find_command(*typed))


def complete_with(text: str, given: Mapping[str, str], typed: CommandOptions | None = None) -> str:
    """The text of a hint, with each command completed with these options; `typed` is the verb that gives it."""
    if not given:
        return text
    return QUOTED.sub(
        lambda quoted: COMMAND.sub(lambda match: f"provision {_completed(match[1], given, typed)}", quoted[0]), text
    )


def complete_error(error: ProvisionError, given: Mapping[str, str]) -> ProvisionError:
    """The error with its hint completed: of one arch or environment among several."""
    error.hint = complete_with(error.hint, given) if error.hint else None
    return error


def complete_text(text: str, typed: Sequence[str]) -> str:
    """The text of the verb that was typed first, with its commands completed, unless it is a script."""
    return text if typed[0] in PRODUCTS else complete(text, typed)


def complete_result(value: Any, completed: Callable[[str], str], key: str = "") -> Any:
    """The result of a verb, with the commands under `hint` completed."""
    if isinstance(value, dict):
        return {name: complete_result(inner, completed, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [complete_result(inner, completed, key) for inner in value]
    return completed(value) if key == "hint" and isinstance(value, str) else value


def _given(typed: Sequence[str]) -> dict[str, str]:
    """The site, arch, stack and backend that were typed, as words of a command line; none of an option that was repeated."""
    given: dict[str, set[str]] = {}
    for word, following in zip(typed, [*typed[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name in SUBJECTS and (value or following):
            given.setdefault(name, set()).add(shlex.quote(value if equals else following))
    return {name: values.pop() for name, values in given.items() if len(values) == 1}


def _of_environment(typed: Sequence[str]) -> dict[str, str]:
    """What the records of the environment that was typed name; nothing if none was typed, or there is no such environment."""
    leaf = find_command(*typed)
    if leaf is None or "environment" not in (argument.to for argument in leaf.arguments):
        return {}
    from provision.commands.shared.environments import find_environment, store_of
    from provision.machine.configuration import shipped
    from provision.machine.root.completing import needed_subject

    with contextlib.suppress(ProvisionError, OSError, SystemExit):
        args = parse(typed[0], typed[1:])
        if args.environment:
            site = shipped.load_site(args.site)
            store = store_of(site)
            env = find_environment(store, args.environment, getattr(args, "arch", None), site=site)
            return needed_subject(store, str(env), site)
    return {}


def _completed(command: str, given: Mapping[str, str], typed: CommandOptions | None) -> str:
    words = command.rstrip()
    rest = command[len(words) :]
    leaf = find_command(*words.split())
    if leaf is None or "--help" in words:
        return command
    if "--site" in given:
        words = re.sub(r"(?<=--site )SITE\b", lambda match: given["--site"], words)
    # An environment has its arch and stack; `site new --arch` adds an arch; `list` is advised again to show more.
    if "/" in words or leaf.name == "site new" or leaf == typed == find_command("list"):
        taken: tuple[str, ...] = SUBJECTS[:1]
    else:
        taken = SUBJECTS[:2] if leaf.name in CHOOSERS and "--provided" not in words else SUBJECTS
    for name, value in given.items():
        if name in taken and name in leaf.spellings and not re.search(rf"{name}[ =]", words):
            words += f" {name} {value}"
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
