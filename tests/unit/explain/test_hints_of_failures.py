"""The commands in the hints of known failures: they can be pasted into a shell, and those of this tool exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

from provision.commands.shared.syntax import read_commands
from provision.machine.programs.failed_program import known_failures

IN_BACKTICKS = re.compile(r"`([^`]+)`")
# Hints that are lines of a program, not commands.
PYTHON = ("tf.", "import ", "from __future__ ")


def hinted() -> list[tuple[str, str]]:
    """Each text in backticks of a hint, with the entry that has it; those that a log fills in are left out."""
    found = [(failure.id, text) for failure in known_failures().entries for text in IN_BACKTICKS.findall(failure.hint)]
    return [(name, text) for name, text in found if "{" not in text and "…" not in text]


def test_each_command_of_a_hint_is_valid_for_a_shell() -> None:
    commands = [(name, text) for name, text in hinted() if " " in text and not text.startswith(PYTHON)]
    assert len(commands) > 150
    script = "".join(f"f() {{ : {name}\n{text}\n}}\n" for name, text in commands)
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_each_command_of_this_tool_in_a_hint_exists_with_its_options() -> None:
    known = {command.name: command for command in read_commands()}
    own = [text for _, text in hinted() if text.startswith("provision ")]
    assert own
    for text in own:
        words = shlex.split(text.replace("[", "").replace("]", ""))[1:]
        command = known[words[0]]
        subverbs = {verb.name.split()[-1]: verb for verb in command.subverbs}
        if len(words) > 1 and words[1] in subverbs:
            command = subverbs[words[1]]
        options = {name for option in command.options for name in option.names}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, text


def test_no_hint_prints_the_password_of_a_proxy() -> None:
    commands = {text for _, text in hinted() if "grep -i proxy" in text}
    assert commands
    for text in commands:
        done = subprocess.run(
            ["bash", "-c", text],
            env={"PATH": os.environ["PATH"], "https_proxy": "http://ada:s3@cret@proxy:3128"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == "https_proxy=http://...@proxy:3128\n", text
