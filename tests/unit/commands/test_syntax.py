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
from provision.commands.options import COMMANDS, LEAVES
from provision.commands.options.declare import CommandOptions

ROOT = Path(provision.__file__).resolve().parents[1]


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
    assert [command.name for command in COMMANDS.values()] == [verb for verb, _ in VERBS]
    assert [command.purpose for command in COMMANDS.values()] == [purpose for _, purpose in VERBS]


@for_each("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_option_and_argument_says_what_it_is_for(leaf: CommandOptions) -> None:
    for option in leaf.options:
        assert option.purpose, option.names
        assert not option.purpose.endswith("."), option.purpose
        assert option.purpose.isascii(), option.purpose
    assert all(argument.purpose for argument in leaf.arguments)
