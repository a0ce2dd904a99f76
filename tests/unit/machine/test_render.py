"""Rendered files are read by the languages they are for: Lua, Tcl and shells get hostile values back unchanged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from golden_files import Words
from parts.scripts import HOSTILE, lua, tclsh
from provision.errors import ConfigError
from provision.machine.rendering.render import render
from provision.model.quoting import quote_lua, quote_tcl


def test_quoted_texts_are_unchanged_in_lua(tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_bytes("".join(f'io.write({quote_lua(value)}, "\\0")\n' for value in HOSTILE).encode())
    done = subprocess.run([lua(), str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_quoted_texts_are_unchanged_in_tcl(tmp_path: Path) -> None:
    script = tmp_path / "script.tcl"
    head = "fconfigure stdout -encoding utf-8 -translation lf\n"
    lines = "".join(f'puts -nonewline {quote_tcl(value)}; puts -nonewline "\\u0000"\n' for value in HOSTILE)
    script.write_bytes((head + lines).encode())
    done = subprocess.run([tclsh(), "-encoding", "utf-8", str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_quoted_texts_are_unchanged_in_a_tcl_procedure(tmp_path: Path) -> None:
    script = tmp_path / "script.tcl"
    body = "".join(f"  lappend found {quote_tcl(value)}\n" for value in HOSTILE)
    script.write_bytes(
        f"proc collect {{ }} {{\n{body}  return $found\n}}\n"
        "fconfigure stdout -encoding utf-8 -translation lf\n"
        'foreach one [collect] { puts -nonewline $one; puts -nonewline "\\u0000" }\n'.encode()
    )
    done = subprocess.run([tclsh(), "-encoding", "utf-8", str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_a_template_without_a_value_that_it_needs_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"`modulefiles/activate\.sh\.j2` cannot be rendered") as caught:
        render("modulefiles/activate.sh.j2", names=())
    assert caught.value.evidence == ("'module' is undefined",)


def test_a_missing_template_is_an_error(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`jobs/nosuch\.sh\.j2`") as caught:
        render("jobs/nosuch.sh.j2")
    words("job", "\n".join(caught.value.to_lines()))
