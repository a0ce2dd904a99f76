"""Running the languages that files are rendered for, and the texts that they must get back unchanged."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HOSTILE = (
    "plain",
    "with space",
    "",
    'double " quote',
    "single ' quote",
    "$HOME ${HOME} $(id) `id`",
    "[exit 3] [puts x]",
    "back\\slash and \\n and \\",
    "\\",
    '\\"',
    "line\nbreak\r\nand tab\t",
    "semi;colon # hash",
    "{braces} } { }} {",
    "]]]] [[ --[[",
    "%s %% %d",
    "*?~!&|<>",
    "Größe → ✓",
    "]==] \\27 \\x41 \\u0041 \\065",
)


def lua() -> str:
    """A Lua to run, Lmod brings one."""
    found = shutil.which("lua5.3") or shutil.which("lua")
    if found is None:
        pytest.skip("there is no lua here; the package `lmod` brings it")
    return found


def tclsh() -> str:
    """A Tcl to run."""
    found = shutil.which("tclsh")
    if found is None:
        pytest.skip("there is no tclsh here; the package `tcl` brings it")
    return found


def run(argv: list[str], *, environ: dict[str, str] | None = None) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run(argv, capture_output=True, env=environ, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def checked(path: Path, text: str, dialect: str) -> None:
    """Have bash parse the script, and shellcheck judge it where it is here."""
    path.write_text(text, encoding="utf-8")
    run(["bash", "-n", str(path)])
    if shutil.which("shellcheck") is None:
        pytest.skip("bash -n is content; there is no shellcheck here")
    run(["shellcheck", "--shell", dialect, str(path)])
