"""Running programs. The only importer of subprocess.

A program gets an argv, never a shell string, and an explicit environment. What it prints goes to a log line by line;
the last lines are kept for the error. It runs in a session of its own, so that Ctrl-C reaches us first and we end it
politely: interrupt, terminate, kill.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError

TAIL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a program ended: exit code (negative: a signal), its last lines, and whether we ended it for time."""

    argv: tuple[str, ...]
    code: int
    tail: tuple[str, ...]
    timed_out: bool = False


def capture(
    argv: Sequence[str], environ: Mapping[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a short program and return what it said; it gets no standard input.

    Raises:
        CommandError: it is not there, may not be run, or takes longer than `timeout_s` seconds.
    """
    try:
        return subprocess.run(
            list(argv),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise CommandError(f"`{argv[0]}` cannot be run", evidence=[str(error)]) from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{argv[0]}` did not answer in {timeout_s:.0f} s", evidence=[" ".join(argv)]) from error


def stream(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    log: Path,
    cwd: str | None = None,
    on_line: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
    keep_open: Sequence[int] = (),
) -> Result:
    """Run a program to its end, its output appended to `log`.

    `keep_open` are file descriptors that it inherits: whoever holds the build's lock hands it on, so that the lock is
    free only when the last process that may still write to the prefix is gone, also after `kill -9`.
    """
    tail: deque[str] = deque(maxlen=TAIL)
    with log.open("a", encoding="utf-8", errors="replace") as file:
        file.write(f"$ {' '.join(argv)}\n")
        file.flush()
        try:
            process = subprocess.Popen(
                list(argv),
                env=dict(environ),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                pass_fds=tuple(keep_open),
            )
        except OSError as error:
            raise CommandError(f"`{argv[0]}` cannot be run", evidence=[str(error)], log=str(log)) from error
        late = threading.Event()

        def out_of_time() -> None:
            late.set()
            end(process)

        timer = threading.Timer(timeout_s, out_of_time) if timeout_s else None
        try:
            if timer:
                timer.start()
            assert process.stdout is not None  # asked for above
            for line in process.stdout:
                file.write(line)
                tail.append(line.rstrip("\n"))
                if on_line:
                    on_line(line.rstrip("\n"))
            code = process.wait()
        except BaseException:
            end(process)
            raise
        finally:
            if timer:
                timer.cancel()
            if process.stdout is not None:
                with contextlib.suppress(OSError):
                    process.stdout.close()
    return Result(argv=tuple(argv), code=code, tail=tuple(tail), timed_out=late.is_set())


def end(process: subprocess.Popen[str]) -> None:
    """End a program and all it started: ask, then insist, then force."""
    for number, patience_s in ((signal.SIGINT, 3), (signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            continue
        # The leader is gone; what it started may not be.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return
