"""Locks: a live holder is waited for or named, a dead one is replaced, and no file at the path of a lock stops a build."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import StoreError
from provision.machine.programs.process_tree import is_running, start_of
from provision.machine.root.store import Store
from provision.machine.sharing import claims, locks
from provision.machine.sharing.claims import make_claim
from provision.machine.sharing.locks import Waiting

HOLD = """
import os, random, subprocess, sys, time
from pathlib import Path, PurePosixPath
from provision.errors import StoreError
from provision.machine.sharing import claims, locks
from provision.machine.root.store import Store
from provision.model.layout import Layout
locks.BEAT_S = 0.1
if "elsewhere" in sys.argv:
    claims.this_kernel = lambda: "another machine"
try:
    with Store(Layout(PurePosixPath(sys.argv[1]))).held(Path(sys.argv[2]), {"does": "holds"}) as lock:
        environ = {**os.environ, **lock.environ}
        child = subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True) if "child" in sys.argv else None
        import signal
        def stop(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, stop)  # before the line that lets the test continue
        print(child.pid if child else 0, flush=True)
        time.sleep(60)
except StoreError as error:
    print(error.message, flush=True)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the times."""
    monkeypatch.setattr(locks, "SILENCE_S", 1.0)
    monkeypatch.setattr(locks, "NONSENSE_S", 0.3)
    monkeypatch.setattr(locks, "BEAT_S", 0.1)
    monkeypatch.setattr(locks, "POLL_S", 0.05)


@pytest.fixture
def path(store: Store) -> Path:
    """The path of a lock."""
    return store.root / "locks" / "it.lock"


class Holder:
    """Another process that holds a lock, perhaps with a child."""

    def __init__(self, store: Store, path: Path, *words: str) -> None:
        argv = [sys.executable, "-c", HOLD, str(store.root), str(path), *words]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self.child = int(self.output.readline())

    def kill(self) -> None:
        """End the holder as the kernel would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def hold(store: Store) -> Iterator[Callable[..., Holder]]:
    """Have other processes hold locks; they are gone after the test."""
    holders: list[Holder] = []

    def start(path: Path, *words: str) -> Holder:
        holders.append(Holder(store, path, *words))
        return holders[-1]

    yield start
    for holder in holders:
        if holder.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder.child, signal.SIGKILL)
        holder.kill()
        holder.output.close()


def put(path: Path, **says: object) -> dict[str, object]:
    """A claim of a process that is not here, at the path of a lock."""
    claim = {**make_claim({}), "host": "n7", "kernel": "of n7", **says}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(claim))
    return claim


def reason_of(line: str) -> str:
    """Why a lock is taken over: the end of the line about it."""
    return line.rpartition(": ")[2]


def is_free(store: Store, path: Path) -> bool:
    """Whether the lock can be had without waiting for a live process."""
    try:
        with store.held(path, {}, Waiting(says=lambda _: None), wait=False):
            return True
    except StoreError:
        return False


def take(store: Store, path: Path, **waiting: Callable[..., object]) -> list[str]:
    """Take the lock and release it; the lines about the takeover."""
    said: list[str] = []
    with store.held(path, {}, Waiting(says=said.append, **waiting)):  # type: ignore[arg-type]
        pass
    assert not any(path.parent.iterdir()), "nothing stays"
    return said


# Live holders


def test_a_second_build_learns_who_holds_the_lock(store: Store, path: Path, hold: Callable[..., Holder]) -> None:
    holder = hold(path)
    with (
        pytest.raises(StoreError, match=f"process {holder.process.pid}, since 20") as caught,
        store.held(path, {}, wait=False),
    ):
        pass
    assert (caught.value.kind, caught.value.evidence) == ("locked", (f"lock: {path}",))
    content = locks.holder(path)
    assert content is not None
    assert content["does"] == "holds"
    assert str(content["host"]) in caught.value.message


def test_a_waiting_build_reports_the_holder_once_then_gets_the_lock(
    store: Store, path: Path, hold: Callable[..., Holder]
) -> None:
    holder, told_of, looks = hold(path), [], []

    def look() -> None:
        looks.append(1)
        if len(looks) == 4:
            holder.process.terminate()

    waiting = Waiting(waits=lambda other: told_of.append(other["pid"]), looks=look)
    with store.held(path, {"does": "came second"}, waiting):
        assert told_of == [holder.process.pid]
        content = locks.holder(path)
        assert content is not None
        assert (content["pid"], content["does"]) == (os.getpid(), "came second")
    assert locks.holder(path) is None


def test_a_lock_that_is_removed_is_still_held(store: Store, path: Path) -> None:
    with store.held(path, {}) as lock:
        shutil.rmtree(path)
        end_at = time.monotonic() + 20
        while not lock.claim.exists() and time.monotonic() < end_at:
            time.sleep(0.02)
        assert not is_free(store, path)
        lock.refuse_lost()
    assert is_free(store, path)
    assert not any(path.parent.iterdir())


def test_a_lock_whose_claim_is_another_one_now_is_lost(
    store: Store, path: Path, hold: Callable[..., Holder], words: Words
) -> None:
    holder, claim, beside = hold(path), make_claim({"does": "builds x"}), path.with_name("beside")
    beside.mkdir()
    (beside / str(claim["token"])).write_text(json.dumps(claim))
    path.rename(path.with_name("away"))
    beside.rename(path)
    line = holder.output.readline()
    assert f"process {os.getpid()}" in line
    words("build", line.partition(": ")[0])


def test_a_holder_that_was_stopped_for_long_ends_when_it_runs_again(
    store: Store, path: Path, hold: Callable[..., Holder], words: Words
) -> None:
    holder = hold(path, "elsewhere")
    holder.process.send_signal(signal.SIGSTOP)
    said: list[str] = []
    with store.held(path, {"does": "took it"}, Waiting(says=said.append)):
        assert f"process {holder.process.pid}" in said[0]
        assert said[0].endswith(" 1 s")
        words("build", reason_of(said[0]))
        holder.process.send_signal(signal.SIGCONT)
        line = holder.output.readline()
        assert line
        words("build", line.partition(": ")[0])
        content = locks.holder(path)
        assert content is not None
        assert content["does"] == "took it"


# A process that ends itself once, when it is about to do something with a lock; perhaps it holds another one already.
DISTURBED = """
import contextlib, os, signal, sys, time
from pathlib import Path, PurePosixPath
from provision.machine.root.store import Store
from provision.model.layout import Layout
event, root, path, outer = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.default_int_handler)
sent = []
def die(name, arguments):
    if armed and name == event and Path(path).name in str(arguments[0]) and not sent:
        sent.append(name)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)  # another thread takes it
armed = False
sys.addaudithook(die)
store = Store(Layout(PurePosixPath(root)))
with store.held(Path(root, "locks", "outer"), {}) if outer else contextlib.nullcontext():
    armed = True
    with store.held(Path(path), {}):
        print("inside")
"""


@pytest.mark.parametrize("outer", ["", "outer"])
@pytest.mark.parametrize("event", ["open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"])
def test_a_signal_while_a_lock_is_taken_or_released_leaves_none(
    store: Store, path: Path, event: str, outer: str
) -> None:
    """Also while the thread of another lock runs: the system may give it the signal."""
    argv = (sys.executable, "-c", DISTURBED, event, str(store.root), str(path), outer)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt", done.stderr
    assert done.stdout == ("inside\n" if event == "os.rmdir" else "")
    assert not list(path.parent.iterdir())


# A process for each line at which a signal can come, until one ends without it.
AT_EACH_LINE = """
import atexit, contextlib, os, signal, sys
from pathlib import Path, PurePosixPath
from provision.machine.sharing import locks
from provision.machine.root.store import Store
from provision.model.layout import Layout
store, path = Store(Layout(PurePosixPath(sys.argv[1]))), Path(sys.argv[2])
signal.signal(signal.SIGTERM, signal.default_int_handler)
for number in range(1, 2000):
    child = os.fork()
    if not child:
        seen = 0
        def trace(frame, event, _):
            global seen
            if frame.f_code.co_filename not in (locks.__file__, contextlib.__file__, "<string>"):
                return None
            seen += event == "line"
            if seen == number:
                sys.settrace(None)
                os.kill(os.getpid(), signal.SIGTERM)
            return trace
        try:
            sys.settrace(trace)
            with store.held(path, {}):
                pass
        except KeyboardInterrupt:
            pass
        sys.settrace(None)
        atexit._run_exitfuncs()
        os._exit(0 if seen < number else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = os.listdir(path.parent) if path.parent.exists() else []
    if left:
        sys.exit(f"line {number}: {left}")
    if code == 0:
        print(number)
        sys.exit(0)
sys.exit("no end")
"""


def test_a_signal_at_any_line_leaves_no_lock(store: Store, path: Path) -> None:
    argv = (sys.executable, "-c", AT_EACH_LINE, str(store.root), str(path))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


# Dead holders


def test_the_lock_of_a_killed_process_is_taken_over_at_once(
    store: Store, path: Path, hold: Callable[..., Holder], words: Words
) -> None:
    holder = hold(path)
    assert not is_free(store, path)
    holder.kill()
    assert locks.holder(path) is None
    (line,) = take(store, path)
    reason = reason_of(line)
    assert f"process {holder.process.pid}" in reason
    words("build", reason.replace(str(holder.process.pid), "PID"))


def test_only_the_lock_of_an_ended_process_of_this_machine_is_left(
    store: Store, path: Path, hold: Callable[..., Holder]
) -> None:
    assert not locks.is_left(path)
    put(path)
    assert not locks.is_left(path), "a process of another machine may live"
    path.unlink()
    holder = hold(path)
    assert not locks.is_left(path)
    holder.kill()
    assert locks.is_left(path)
    take(store, path)
    assert not locks.is_left(path)


def test_what_a_killed_holder_left_is_ended_before_the_lock_is_taken(
    store: Store, path: Path, hold: Callable[..., Holder], words: Words
) -> None:
    holder = hold(path, "child")
    holder.kill()
    (line,) = take(store, path)
    reason = reason_of(line)
    assert f"process {holder.process.pid}" in reason and "1 process" in reason
    words("build", reason.replace(str(holder.process.pid), "PID"))
    assert start_of(holder.child) is None or is_running(holder.child) is False


def test_another_process_with_the_number_of_the_holder_is_not_the_holder(
    store: Store, path: Path, words: Words
) -> None:
    put(path, kernel=claims.this_kernel(), pid=os.getppid(), started="1")
    (line,) = take(store, path)
    assert f"process {os.getppid()} " in reason_of(line)
    words("build", reason_of(line).replace(str(os.getppid()), "PID"))
    put(path, kernel=claims.this_kernel(), pid=os.getppid(), started=start_of(os.getppid()))
    assert not is_free(store, path)


@pytest.mark.parametrize("clock", [0, 2**31, 2**40])
def test_a_silent_holder_on_another_machine_is_dead_whatever_the_clocks_say(
    store: Store, path: Path, clock: int, words: Words
) -> None:
    put(path)
    os.utime(path, (clock, clock))
    began = time.monotonic()
    (line,) = take(store, path)
    assert line.endswith(" 1 s")
    words("build", reason_of(line))
    assert time.monotonic() - began >= 1


def test_a_beating_holder_on_another_machine_is_waited_for_or_named(
    store: Store, path: Path, hold: Callable[..., Holder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SILENCE_S", 2.0)
    holder = hold(path, "elsewhere")
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 45:  # more than 2 s
            holder.process.terminate()

    assert not is_free(store, path)
    assert take(store, path, looks=look) == []


@pytest.mark.parametrize(
    ("ended", "end"),
    [(True, "job 42 "), (False, " 1 s"), (None, " 1 s")],
)
def test_the_scheduler_is_asked_about_the_job_of_a_silent_holder(
    store: Store, path: Path, ended: bool | None, end: str, words: Words
) -> None:
    put(path, job="42")
    asked: list[str] = []

    def ask(job: str) -> bool | None:
        asked.append(job)
        return ended

    (line,) = take(store, path, ended=ask)
    assert end in reason_of(line)
    words("build", reason_of(line))
    assert asked == ["42"]


def test_a_job_that_was_requeued_takes_its_own_lock_over(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURMD_NODENAME", "n8")
    put(path)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    (line,) = take(store, path)
    assert "job 42" in reason_of(line)
    words("build", reason_of(line))


# What is not a claim


FILES = ("empty", "cut", "text", "JSON", "bytes", "huge", "unreadable")


@pytest.mark.parametrize("kind", [*FILES, "folder", "FIFO", "link", "dangling link", "hard link"])
def test_something_else_at_the_path_of_a_lock_stops_no_build(
    store: Store, path: Path, tmp_path: Path, kind: str, words: Words
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("work of years")
    path.parent.mkdir(parents=True)
    match kind:
        case "folder":
            (path / "x").mkdir(parents=True)
        case "FIFO":
            os.mkfifo(path)
        case "link" | "dangling link":
            path.symlink_to(precious if kind == "link" else "nothing")
        case "hard link":
            os.link(precious, path)
        case "huge":
            path.touch()
            os.truncate(path, 1 << 40)
        case _:
            texts = {"cut": json.dumps(make_claim({}))[:-9], "text": "nonsense", "JSON": '{"pid": [], "token": 3}'}
            path.write_bytes(b"\xff\x00" if kind == "bytes" else texts.get(kind, "").encode())
    if kind == "unreadable":
        path.chmod(0)
    said: list[str] = []
    with store.held(path, {"does": "builds"}, Waiting(says=said.append)):
        (line,) = said
        assert f"`{path}`" in line
        words("build", line)
        assert locks.holder(path) is not None
        assert not is_free(store, path)
    assert is_free(store, path)
    assert precious.read_text() == "work of years"


def test_without_waiting_what_is_not_a_claim_is_refused(store: Store, path: Path) -> None:
    """It may be one that is being written."""
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(StoreError) as caught:
        take_now(store, path)
    assert (caught.value.kind, caught.value.evidence[0]) == ("locked", f"lock: {path}")


@pytest.mark.parametrize("does_not_answer", [False, True])
def test_without_waiting_a_holder_that_is_not_known_to_be_dead_is_refused_at_once(
    store: Store, path: Path, does_not_answer: bool
) -> None:
    put(path, job="42")
    began = time.monotonic()
    with contextlib.suppress(StoreError) if does_not_answer else contextlib.nullcontext():
        waiting = Waiting(says=lambda _: None, ended=lambda _: None if does_not_answer else True)
        with store.held(path, {}, waiting, wait=False):
            assert not does_not_answer
    assert time.monotonic() - began < locks.SILENCE_S
    assert path.exists() == does_not_answer


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("publishes knl/t/1-a", "knl/t/1-a is being published by"),
        ("builds knl/t/1-a", "knl/t/1-a is being built by"),
        ("upgrades t", "t is being upgraded by"),
        ("removes knl/t/1-a", "knl/t/1-a is being removed by"),
        ("changes what users load on arch knl", "what users load on arch knl is being changed by"),
    ],
)
def test_a_refused_lock_says_what_its_holder_does(store: Store, path: Path, does: str, words: str) -> None:
    with store.held(path, {"does": does}):
        with pytest.raises(StoreError, match=f"{words} .*, process {os.getpid()}, since 20") as caught:
            take_now(store, path)
        assert "end that process" not in str(caught.value.hint)


def take_now(store: Store, path: Path) -> None:
    """Take the lock without waiting."""
    with store.held(path, {}, wait=False):
        pass


# Many at once

RACE = """
import fcntl, os, random, sys, time
from pathlib import Path, PurePosixPath
from provision.machine.root.store import Store
from provision.machine.sharing import locks
from provision.model.layout import Layout
locks.POLL_S = 0.01
root, path, inside, times, faults = sys.argv[1:]
def fault(name, arguments):
    if armed and arguments and ".lock" in str(arguments[0]):
        moment = random.random()
        if moment < 0.03:
            os._exit(0)  # as if it were killed
        if moment < 0.2:
            time.sleep(random.random() / 30)
armed = False
if faults:
    sys.addaudithook(fault)
store = Store(Layout(PurePosixPath(root)))
for _ in range(int(times)):
    child = os.fork()
    if not child:
        random.seed(os.getpid())
        armed = True
        with store.held(Path(path), {}, locks.Waiting(says=lambda _: None)):
            with open(inside, "a") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if another process is inside
                time.sleep(random.random() / 100)
                if random.random() < 0.5:
                    # The kernel lets go of the file with the last thread, which may be after the process counts as ended.
                    fcntl.flock(file, fcntl.LOCK_UN)
                    os._exit(0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("faults", ["", "faults"])
def test_of_many_processes_that_take_dead_locks_over_one_is_inside(
    store: Store, path: Path, tmp_path: Path, faults: str
) -> None:
    """With faults, they stall or die before any of the changes that they make to the lock. At the end it is free."""
    words = ["-c", RACE, str(store.root), str(path), str(tmp_path / "inside"), "8", faults]
    running = [subprocess.Popen([sys.executable, *words]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in running] == [0] * 4
    with store.held(path, {}, Waiting(says=lambda _: None)):
        pass
    assert [found.name for found in path.parent.iterdir() if not found.name.startswith(".")] == []
