"""Two users, of whom one exchanges what is at a name while the other one works: tried at each moment of the work."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from parts.users import User, shared_group

# An event comes before its call: what was looked at is decided by then, and what is opened or changed is not.
MOMENTS = {
    *("open", "os.listdir", "os.scandir", "os.mkdir", "os.chmod", "os.chown", "os.rename", "os.remove", "os.rmdir"),
    *("os.link", "os.symlink", "os.utime", "shutil.rmtree"),
}
MOST = 400


def at_each_moment(
    victim: User,
    attacker: User,
    *,
    prepare: Callable[[], None],
    act: Callable[[], object],
    exchange: Callable[[], None],
) -> int:
    """Let `victim` act again and again, and `attacker` exchange something at the first, second, … moment of that.

    `prepare` runs as this process, before each time. Returns the number of moments; what the two may not do ends only that.
    """
    for moment in range(MOST):
        prepare()
        if not _once(victim, attacker, act, exchange, moment):
            return moment
    raise AssertionError("the work never ended")


def _once(victim: User, attacker: User, act: Callable[[], object], exchange: Callable[[], None], moment: int) -> bool:
    """Whether the work came to this moment."""
    called, answered = os.pipe(), os.pipe()

    def wait() -> int:
        os.close(called[1])
        if os.read(called[0], 1):
            with contextlib.suppress(OSError):
                exchange()
        os.write(answered[1], b"x")
        return 0

    def run() -> int:
        os.close(answered[1])
        return _run(called[1], answered[0], act, moment)

    children = [_fork(attacker, wait), _fork(victim, run)]
    for descriptor in (*called, *answered):
        os.close(descriptor)
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ended in ([0, 0], [0, 1])
    return ended == [0, 1]


def _fork(user: User, work: Callable[[], int]) -> int:
    """Start a process of this user; its exit code is what `work` returns."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setgroups([shared_group().gr_gid])
        os.setgid(user.gid)
        os.setuid(user.uid)
        os.umask(0o022)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _run(call: int, answer: int, act: Callable[[], object], moment: int) -> int:
    """Act, and wait for the other user at this moment; 1 if it came, 0 if the work ended before it."""
    seen = []

    def look(event: str, _: tuple[Any, ...]) -> None:
        if event in MOMENTS:
            seen.append(event)
            if len(seen) == moment + 1:
                os.write(call, b"x")
                os.read(answer, 1)

    sys.addaudithook(look)
    with contextlib.suppress(Exception):  # what counts is what is on the disk afterwards
        act()
    return int(len(seen) > moment)
