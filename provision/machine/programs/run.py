"""Run programs, and what interrupts them: Ctrl-C, a signal, the end of a job's time. The only importer of subprocess.

A program gets an argv, never a shell string, and those variables of an explicit environment that it needs
(`model/child_environ.py`). Its output goes to a log line by line; the last
lines are kept for the error message. It runs in a separate session, so that Ctrl-C reaches us first; we then interrupt,
terminate and kill it and what it started, in that order. Our memory and time for its output are bounded by the length of
the output, whatever is in it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from provision.errors import CommandError
from provision.machine.files.beneath import open_own
from provision.machine.programs.process_tree import Process, send, started_by
from provision.machine.programs.secrets_here import secrets_here
from provision.model.child_environ import Needs, child_environ

TAIL = 400
# Programs start here, not in the working directory: `python -m pip` there would run a `pip.py` that another user put there, and
# uv would read his `uv.toml`.
START = "/"
# A longer line is split. The longest that we need is the report of an inspection: some ten thousand characters.
LONGEST_LINE = 1 << 20
# Of all lines of a tail together, in characters.
LONGEST_TAIL = 8 << 20
# What a listener gets of a line: more does not fit on a screen.
LONGEST_SHOWN = 2000
# A program that was ended by SIGINT, SIGTERM or SIGHUP, as its code or as that of the shell or launcher that waited for it.
ENDED_FROM_OUTSIDE = tuple(code for number in (2, 15, 1) for code in (-number, 128 + number))
# A scheduler signals all processes of a job, and ours may be the last. Then the program did not fail: we are interrupted.
OURS_COMES_S = 0.5
# A queue of 100,000 jobs takes 10 MB.
MOST_CAPTURED = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a program: its exit code (negative: a signal), its last lines, and whether it reached its time limit."""

    argv: tuple[str, ...]
    code: int
    tail: tuple[str, ...]
    timed_out: bool = False


def capture(
    argv: Sequence[str],
    environ: Mapping[str, str],
    timeout_s: float = 120,
    *,
    folder: str = START,
    needs: Needs = "nothing",
) -> subprocess.CompletedProcess[str]:
    """Run a short program in `folder`, without standard input, and return its output.

    The output ends when the program ends, even if a process that it started still holds the pipe.

    Raises:
        CommandError: the program does not exist, cannot be run, prints more than `MOST_CAPTURED` bytes, or takes longer than
            `timeout_s` seconds. The program and what it started are ended.
    """
    deadline, parts = time.monotonic() + timeout_s, (bytearray(), bytearray())
    with _running(argv, environ, needs, folder=folder) as process:
        for pipe, block in _blocks(process, deadline):
            parts[pipe].extend(block)
            if sum(map(len, parts)) > MOST_CAPTURED:
                raise CommandError(
                    f"`{argv[0]}` printed more than {MOST_CAPTURED >> 20} MiB", evidence=[" ".join(argv)]
                )
        if process.poll() is None:
            raise CommandError(f"`{argv[0]}` did not answer in {timeout_s:.0f} s", evidence=[" ".join(argv)])
    # Decode here instead of with text=True: output may contain a carriage return, or bytes that are not UTF-8.
    stdout, stderr = (part.decode("utf-8", "surrogateescape") for part in parts)
    # stdout is data and may be an environment; stderr is shown to people.
    return subprocess.CompletedProcess(list(argv), process.returncode, stdout, secrets_here(environ).hide(stderr))


@contextlib.contextmanager
def _running(
    argv: Sequence[str],
    environ: Mapping[str, str],
    needs: Needs,
    *,
    folder: str = START,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int | IO[str] = subprocess.PIPE,
    log: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs, without standard input; at the end of the context it and what it started are ended.

    Raises:
        CommandError: it cannot be run; `log` is for the error.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with interrupts_deferred():
            process = subprocess.Popen(
                list(argv),
                env=child_environ(argv[0], environ, needs),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        yield process
    except BaseException as error:
        if process is not None:
            end(process)
        elif isinstance(error, OSError):
            raise CommandError(
                f"`{argv[0]}` cannot be run", evidence=[str(error)], log=str(log) if log else None
            ) from error
        raise
    finally:
        if process is not None:
            if process.poll() is None:
                end(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _blocks(
    process: subprocess.Popen[bytes], deadline: float | None, on_second: Callable[[], None] | None = None
) -> Iterator[tuple[int, bytes]]:
    """What a program prints, each part with 0 for stdout or 1 for stderr, until it ends or `deadline` (monotonic seconds).

    It stops when the program ends, even if a process that it started still holds the pipe. `on_second` is called about once
    a second until then.
    """
    pipes = {pipe.fileno(): name for name, pipe in enumerate((process.stdout, process.stderr)) if pipe is not None}
    looked = time.monotonic()
    while deadline is None or time.monotonic() < deadline:
        if on_second and time.monotonic() - looked >= 1:
            on_second()
            looked = time.monotonic()
        ended = process.poll() is not None
        # All writers may have closed their pipes, and the program itself need more time.
        ready, _, _ = select.select(list(pipes), [], [], 0 if ended else 0.2 if pipes else 0.02)
        if ended and not ready:
            return
        for descriptor in ready:
            block = os.read(descriptor, 1 << 16)
            if block:
                yield pipes[descriptor], block
            else:
                del pipes[descriptor]


def stream(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    log: Path,
    needs: Needs = "nothing",
    on_line: Callable[[str], None] | None = None,
    on_second: Callable[[], None] | None = None,
    timeout_s: float | None = None,
    shown: Sequence[str] | None = None,
) -> Result:
    """Run a program to its end, and append its output to `log` line by line, without the secrets of this run.

    The last line of the log says how it ended, for `provision explain`: `# exit status 0 after 3 s`, or instead of the status
    `ended by signal 9`, `ended by the time limit`, `could not be started`, `interrupted`, or `stopped: ` and an error of ours.

    A line that is too long becomes several.

    `shown` is written to the log instead of `argv`, for an argv that contains a whole environment. `on_second` is called
    about once a second while the program runs, whether it prints or not.

    Raises:
        CommandError: the program cannot be run.
    """
    tail, length, timed_out = deque[str](), 0, False
    hide = secrets_here(environ).hide
    began, how = time.monotonic(), "could not be started"
    with open_own(log, append=True) as file:
        file.write(f"$ {hide(' '.join(shown or argv))}\n")
        try:
            with _running(argv, environ, needs, stderr=subprocess.STDOUT, log=log) as process:
                how = ""
                deadline = time.monotonic() + timeout_s if timeout_s else None
                for line in map(hide, lines_of(process, deadline, on_second)):
                    file.write(line + "\n")
                    tail.append(line)
                    length += len(line)
                    while len(tail) > TAIL or length > LONGEST_TAIL:
                        length -= len(tail.popleft())
                    if on_line:
                        on_line(line[:LONGEST_SHOWN])
                timed_out = process.poll() is None
            code = process.wait()
            how = f"ended by signal {-code}" if code < 0 else f"exit status {code}"
            how = "ended by the time limit" if timed_out else how
            if code in ENDED_FROM_OUTSIDE:
                time.sleep(OURS_COMES_S)
        except KeyboardInterrupt:
            how = "interrupted"
            raise
        except BaseException as error:
            how = how or f"stopped: {hide(' '.join(str(error).split()))}"
            raise
        finally:
            with contextlib.suppress(OSError):  # the disk may be full, and the log has said all that matters
                file.write(f"# {how} after {time.monotonic() - began:.0f} s\n")
    return Result(argv=tuple(argv), code=code, tail=tuple(tail), timed_out=timed_out)


def serve(argv: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """Run a server until it ends or Ctrl-C; returns its exit code, None after Ctrl-C. It prints on our stderr.

    Raises:
        CommandError: it cannot be run.
    """
    try:
        with _running(argv, environ, "everything", stdout=sys.stderr, stderr=sys.stderr) as process:
            return process.wait()
    except KeyboardInterrupt:
        return None


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Delay Ctrl-C and other signals while a program starts: before we know its process, we could not end it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    # Of these two only a handler in Python: one that another library installed could not be put back.
    others = (number for number in (signal.SIGHUP, signal.SIGUSR1) if callable(signal.getsignal(number)))
    numbers = (signal.SIGINT, signal.SIGTERM, *others)
    before = [signal.signal(number, lambda signum, _: received.append(signum)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    for signum in received:
        signal.raise_signal(signum)


class OutOfTime(KeyboardInterrupt):
    """The scheduler announced the end of the job's time."""


@contextlib.contextmanager
def interrupted_at_time_limit() -> Iterator[None]:
    """Interrupt what runs inside when SIGUSR1 comes: Slurm sends it if the job has the option `--signal=B:USR1@SECONDS`.

    Raises:
        OutOfTime: it came.
    """
    before = signal.signal(signal.SIGUSR1, _announced)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def _announced(number: int, frame: FrameType | None) -> None:
    signal.signal(number, _ignored)
    raise OutOfTime


def _ignored(number: int, frame: FrameType | None) -> None:
    """Nothing: a second one must not interrupt what frees the locks and ends the programs."""


def lines_of(
    process: subprocess.Popen[bytes], deadline: float | None, on_second: Callable[[], None] | None = None
) -> Iterator[str]:
    """The lines that a program prints to stdout: see `_blocks`. After `LONGEST_LINE` bytes a line is split."""
    # The parts of the line that has not ended: joining them once keeps the time linear.
    parts: list[bytes] = []
    length = 0
    for _, block in _blocks(process, deadline, on_second):
        first, *others = block.split(b"\n")
        parts.append(first)
        length += len(first)
        if others:
            *whole, last = others
            for line in (b"".join(parts), *whole):
                yield line.decode("utf-8", "replace").rstrip("\r")
            parts, length = [last], len(last)
        elif length >= LONGEST_LINE:
            whole_line = b"".join(parts)
            # Not within a word, which may be a secret.
            end_of_word = 1 + max(map(whole_line.rfind, (b" ", b",", b'"'))) or length
            yield whole_line[:end_of_word].decode("utf-8", "replace")
            parts, length = [whole_line[end_of_word:]], length - end_of_word
    if length:
        yield b"".join(parts).decode("utf-8", "replace")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all processes that it started: interrupt, terminate, kill. Another Ctrl-C skips the waiting.

    Raises:
        KeyboardInterrupt: it came meanwhile; everything was ended nevertheless.

    A process that left the program's group or session is found as long as the processes between them live.
    """
    started: set[Process] = set()
    interrupted: KeyboardInterrupt | None = None
    for number, patience_s in ((signal.SIGINT, 3), (signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        started |= started_by(process.pid)
        send(number, process.pid, started)
        try:
            process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt as interrupt:
            interrupted = interrupt
            continue
        break
    # The program has ended, but processes that it started may still run.
    send(signal.SIGKILL, process.pid, started)
    if interrupted is not None:
        raise interrupted
