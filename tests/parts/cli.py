"""The command line, called in the test's own process."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from provision import cli


def call(*words: str) -> int:
    """The exit code of `provision` with these words."""
    try:
        return cli.main(words)
    except SystemExit as end:
        return int(end.code or 0)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """What `provision` prints with these words, and its exit code, as a process of its own would give them."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = call(*words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def answer(captured: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a verb, and the JSON object that it printed; stderr may have words."""
    code = call(*words, "--json")
    return code, json.loads(captured.readouterr().out)


def envelope(captured: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one JSON object that a verb printed with `--json`; stderr is empty."""
    out, err = captured.readouterr()
    assert err == ""
    body = json.loads(out)
    assert isinstance(body, dict)
    assert list(body) == ["schema", "verb", "ok", "error" if "error" in body else "result"]
    return body


class Hangs(BaseException):
    """A reader waits for ever. It is no TimeoutError: that is an OSError, which a reader takes for a fault of the file."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Fail instead of waiting for ever."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
