"""The tool with the stack of `parts/tiny.py`, which can be killed at a chosen moment: `python -m parts.tiny_tool VERB …`.

TINY_FOLDER                 the folder of the packages
TINY_KILL=SIGKILL:EVENT     the process sends itself this signal at an event of the build (`started install`), or before
                            the given number of changes of files (`12`)
TINY_SILENCE=SECONDS        how long the holder of a lock on another machine may be silent
TINY_LATE=SECONDS           how long this machine may not see what a node has written
TINY_CLOCK=SECONDS          the clock of this process is wrong by so much, and jumps at every look

At SIGUSR1 it prints what each of its threads does: who waits for its end learns why it does not come.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from provision import cli
from provision.backends.venv.installer import Installer
from provision.commands.shared.target import Target
from provision.jobs.build_job import Submitter
from provision.machine.root import event_file, observe
from provision.machine.root.store import Store
from provision.machine.sharing import locks
from provision.machine.submission import follow, submit
from provision.model.event import Event, Listener
from provision.model.operation import Prove
from provision.model.request import Request
from provision.planning.preflight import Space
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.proof import proof_shape

CHANGES = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "subprocess.Popen",
)


def use_tiny_stack(folder: Path) -> None:
    """Take the programs of the proof and pip from this folder, and need little space."""
    request_for, environment_argv = Target.request_for, Installer.environment_argv

    def tiny_request(self: Target, minor: str) -> Request:
        return replace(request_for(self, minor), programs_folder=str(folder / "programs"))

    def tiny_argv(self: Installer, into: str, *, pip: bool) -> tuple[str, ...]:
        if self.own_venv:
            copy = 'cp -r "$2"/. "$(echo "$1"/lib/python3*/site-packages)"' if pip else "true"
            script = f'"$0" -m venv --without-pip "$1"; {copy}'
            return ("/bin/sh", "-euc", script, self.python, into, str(folder / "old"))
        *first, last = environment_argv(self, into, pip=pip)
        more = ("--extra-search-dir", str(folder), "--no-setuptools") if pip else ()
        return (*first, *more, last)

    prove_operation = proof_shape.prove_operation

    def tiny_proof(
        site: Site, arch: Arch, stack: Stack, programs_folder: str, prefix: str, deliver: str | None = None
    ) -> Prove:
        return prove_operation(site, arch, stack, str(folder / "programs"), prefix, deliver)

    submitter = submit.submitter

    def tiny_submitter(store: Store) -> Submitter:
        # Not every scheduler hands the variables of the shell on.
        kept = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "TINY_FOLDER", "UV_CACHE_DIR")]
        return replace(submitter(store), tool=("env", *kept, sys.executable, "-m", "parts.tiny_tool"))

    submit.submitter = tiny_submitter
    proof_shape.prove_operation = tiny_proof
    Target.request_for = tiny_request  # type: ignore[method-assign]
    Installer.environment_argv = tiny_argv  # type: ignore[method-assign]
    observe.needed_space = lambda *_, **__: Space(size=0, files=0, source="nothing")


def kill_at(number: int, moment: str) -> None:
    """Send this process a signal at a moment."""

    def die() -> None:
        os.kill(os.getpid(), number)

    if moment.isdigit():
        left = int(moment)

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if threading.current_thread() is not threading.main_thread():
                return
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in CHANGES:
                left -= 1
                if left == 0:
                    die()

        sys.addaudithook(count)
        return
    to_all = event_file.to_all

    def to_all_and_me(*listeners: Listener) -> Listener:
        def listen(event: Event) -> None:
            if f"{event.kind} {event.step}" == moment:
                die()

        return to_all(listen, *listeners)

    event_file.to_all = to_all_and_me


def jump(seconds: float) -> None:
    """Let the clock of this process jump about, also for the times of files that it sets."""
    now: Callable[[], float] = time.time
    time.time = lambda: now() + random.uniform(-seconds, seconds)
    touch = os.utime

    def utime(path: int | Path, times: tuple[float, float] | None = None, **exact: Any) -> None:
        touch(path, times if exact else times or (time.time(), time.time()), **exact)

    locks.os.utime = utime  # type: ignore[assignment]


def main() -> int:
    """Run the tool as the environment says."""
    environ = os.environ
    faulthandler.register(signal.SIGUSR1)
    use_tiny_stack(Path(environ["TINY_FOLDER"]))
    if kill := environ.get("TINY_KILL"):
        name, _, moment = kill.partition(":")
        kill_at(getattr(signal, name), moment)
    if silence := environ.get("TINY_SILENCE"):
        locks.SILENCE_S = float(silence)
    if late := environ.get("TINY_LATE"):
        follow.LATE_S = float(late)
    if clock := environ.get("TINY_CLOCK"):
        jump(float(clock))
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
