"""Nothing ends in a traceback: Ctrl-C at any moment, a reader that closes the pipe, a locale without our marks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Ctrl-C at one of the imports of the command line, and some time after it has begun. The interpreter's own start is not ours.
INTERRUPTED = """
import os, signal, sys
from provision import cli
left = int(sys.argv.pop(1))
def count(event, arguments):
    global left
    left -= event in ("import", "open", "os.listdir")
    if left == 0:
        left = -1  # `os.kill` is an event too
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(count)
sys.exit(cli.main())
"""
ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(words: str, stdout: Any = subprocess.PIPE, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """The tool in a process of its own."""
    argv, env = [sys.executable, "-m", "provision", *words.split()], {**os.environ, **environ}
    return subprocess.run(argv, env=env, stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=120)


@pytest.mark.parametrize(
    ("words", "moments"),
    [
        (("list",), (1, 2, 3, 5, 9, 17, 33, 60, 90)),
        (("doctor", "--json"), (45, 120, 150, 250, 400)),
        (("job", "horovod", "--help"), (4, 13, 25, 50)),
        (("--help",), (3, 7, 15)),
    ],
)
def test_ctrl_c_at_any_moment_prints_no_traceback(words: tuple[str, ...], moments: tuple[int, ...]) -> None:
    for moment in moments:
        argv = [sys.executable, "-c", INTERRUPTED, str(moment), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        assert done.returncode in (130, -2), (moment, done.stderr)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--help", 0),
        ("list --help", 0),
        ("list", 0),
        ("stack list", 0),
        ("list --json", 0),
        ("list --site lokal --json", 2),
        ("nonsense", 2),
    ],
)
def test_a_reader_that_closes_the_pipe_at_once(words: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(words, writing)
    os.close(writing)
    assert done.returncode == code
    assert (b"Error" if words == "nonsense" else b"rror") not in done.stderr


@pytest.mark.parametrize("words", ["doctor", "list", "stack list", "--help", "explain /nonexistent/✓", "nonsénse"])
def test_a_locale_without_our_marks(words: str) -> None:
    done = run(words, **ASCII)
    assert b"Traceback" not in done.stderr
    assert b"a bug in provision" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "list --json", "stack list"])
def test_a_full_disk_for_stdout_is_an_error_of_stdout(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(words, full)
    assert done.returncode == 1
    assert b"stdout" in done.stderr
    assert b"a bug" not in done.stderr
