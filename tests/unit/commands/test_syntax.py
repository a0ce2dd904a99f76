"""The reference and the manual page are written from the parsers, and are current."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import provision
from parts.loops import for_each
from provision.commands import VERBS
from provision.commands.completion.cases import leaves
from provision.commands.shared.syntax import Command, read_commands

ROOT = Path(provision.__file__).resolve().parents[1]
COMMANDS = read_commands()


def find(*words: str) -> Command:
    """The command of these words."""
    return next(leaf for leaf in leaves(COMMANDS) if leaf.words == words)


def test_the_reference_and_the_manual_page_are_current() -> None:
    argv = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manual_page_is_rendered_without_a_warning() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    argv = ["groff", "-man", "-Tascii", "-ww", "-P-c", "-rLL=80n", str(ROOT / "man" / "provision.1")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    plain = re.sub(".\x08", "", done.stdout)  # bold is a letter typed twice
    for words in ("provision job horovod [OPTIONS]", "--ranks-per-node N", "EXIT STATUS", "PROVISION_SITE"):
        assert words in plain


def test_every_verb_is_data_in_the_order_of_the_help() -> None:
    assert [command.words for command in COMMANDS] == [(verb,) for verb, _ in VERBS]
    assert [command.purpose for command in COMMANDS] == [purpose for _, purpose in VERBS]


def test_an_option_is_data_with_its_value_and_choices() -> None:
    options = {option.names[-1]: option for option in find("job", "horovod").options}
    runtime, site, record = options["--runtime"].value, options["--site"].value, options["--record"].value
    assert runtime is not None
    assert runtime.choices == ("venv", "modules", "container")
    assert site is not None
    assert (site.word, site.kind) == ("SITE", "sites")
    assert record is None
    assert next(option for option in find("site", "new").options if "--set" in option.names).again


def test_an_argument_is_data_too() -> None:
    (argument,) = find("lock").arguments
    assert (argument.value.word, argument.optional, argument.many) == ("NAME", True, True)
    (argument,) = find("show").arguments
    assert (argument.value.kind, argument.optional) == ("environments", False)


@for_each("leaf", leaves(COMMANDS), ids=lambda leaf: leaf.name)
def test_every_option_and_argument_says_what_it_is_for(leaf: Command) -> None:
    for option in leaf.options:
        assert option.purpose, option.names
        assert not option.purpose.endswith("."), option.purpose
        assert option.purpose.isascii(), option.purpose
    assert all(argument.purpose for argument in leaf.arguments)
