"""Run programs. The only importer of subprocess.

A program gets an argv, never a shell string, and an explicit environment. Its output goes to a log line by line; the last
lines are kept for the error message. It runs in a separate session, so that Ctrl-C reaches us first; we then interrupt,
terminate and kill it, in that order.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError

TAIL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a program: its exit code (negative: a signal), its last lines, and whether it reached its time limit."""

    argv: tuple[str, ...]
    code: int
    tail: tuple[str, ...]
    timed_out: bool = False


def capture(
    argv: Sequence[str], environ: Mapping[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a short program without standard input, and return its output.

    Raises:
        CommandError: the program does not exist, cannot be run, or takes longer than `timeout_s` seconds.
    """
    try:
        done = subprocess.run(
            list(argv), env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except OSError as error:
        raise CommandError(f"`{argv[0]}` cannot be run", evidence=[str(error)]) from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{argv[0]}` did not answer in {timeout_s:.0f} s", evidence=[" ".join(argv)]) from error
    # Decode here instead of with text=True: output may contain a carriage return, or bytes that are not UTF-8.
    stdout, stderr = (part.decode("utf-8", "surrogateescape") for part in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)


def stream(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    log: Path,
    on_line: Callable[[str], None] | None = None,
    on_second: Callable[[], None] | None = None,
    timeout_s: float | None = None,
    keep_open: Sequence[int] = (),
    shown: Sequence[str] | None = None,
) -> Result:
    """Run a program to its end, and append its output to `log` line by line.

    `shown` is written to the log instead of `argv`, for an argv that contains a whole environment. `on_second` is called
    about once a second while the program runs, whether it prints or not.

    `keep_open` are file descriptors that the program inherits. A build passes the descriptor of its lock on, so that the
    lock is released only when the last process that can write to the prefix has ended, also after `kill -9`.

    Raises:
        CommandError: the program cannot be run.
    """
    tail: deque[str] = deque(maxlen=TAIL)
    timed_out = False
    with log.open("a", encoding="utf-8", errors="replace", buffering=1) as file:
        file.write(f"$ {' '.join(shown or argv)}\n")
        process: subprocess.Popen[bytes] | None = None
        try:
            with interrupts_deferred():
                process = subprocess.Popen(
                    list(argv),
                    env=dict(environ),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=tuple(keep_open),
                )
            deadline = time.monotonic() + timeout_s if timeout_s else None
            for line in lines_of(process, deadline, on_second):
                file.write(line + "\n")
                tail.append(line)
                if on_line:
                    on_line(line)
            timed_out = process.poll() is None
            if timed_out:
                end(process)
            code = process.wait()
        except BaseException as error:
            if process is not None:
                end(process)
            elif isinstance(error, OSError):
                raise CommandError(f"`{argv[0]}` cannot be run", evidence=[str(error)], log=str(log)) from error
            raise
        finally:
            if process is not None and process.stdout is not None:
                process.stdout.close()
    return Result(argv=tuple(argv), code=code, tail=tuple(tail), timed_out=timed_out)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM while a program starts: before we know its process, we could not end it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda signum, _: received.append(signum)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    for signum in received:
        signal.raise_signal(signum)


def lines_of(
    process: subprocess.Popen[bytes], deadline: float | None, on_second: Callable[[], None] | None = None
) -> Iterator[str]:
    """The lines that a program prints, until it ends or `deadline` (monotonic seconds) is reached.

    The lines stop when the program ends, even if a process that it started still holds the pipe. `on_second` is called
    about once a second until then.
    """
    assert process.stdout is not None  # we requested a pipe
    descriptor, rest, looked = process.stdout.fileno(), b"", time.monotonic()
    while deadline is None or time.monotonic() < deadline:
        if on_second and time.monotonic() - looked >= 1:
            on_second()
            looked = time.monotonic()
        ended = process.poll() is not None
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        if not ready:
            if ended:
                break
            continue
        block = os.read(descriptor, 1 << 16)
        if not block:
            # All writers have closed the pipe; the program itself may need more time, or may never end.
            while process.poll() is None and (deadline is None or time.monotonic() < deadline):
                time.sleep(0.02)
            break
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield rest.decode("utf-8", "replace")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all processes that it started: interrupt, terminate, kill. Another Ctrl-C skips the waiting."""
    for number, patience_s in ((signal.SIGINT, 3), (signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=patience_s)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
        break
    # The program has ended, but processes that it started may still run.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
