"""Faults in builds of the stack of `parts/tiny.py`, and in what changes and removes them: after each one, what users see is
compared with what they may see.

    python -m parts.torture [--faults 200] [--minutes 60] [--seed N] [--folder DIR]

prints a table. `tests/real/test_torture.py` runs a few of them.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parts.tiny import TinySite, make_site
from provision.machine.programs.process_tree import marked_processes
from provision.machine.sharing.locks import MARK
from provision.model.layout import EnvironmentId

STEPS = ("create", "install", "bytecode", "compile", "horovod", "inspect", "candidate", "proof", "publish")
BOUNDARIES = tuple(f"{kind} {step}" for step in STEPS for kind in ("started", "finished"))
# Values of JSON that differ from run to run.
TIMES = {"seconds", "sync_s", "built", "date", "images_per_second", "host", "hosts", "pid", "bytes"}
# Of `sbom.cdx.json`: a random number, and when it was made.
TIMES |= {"serialNumber", "timestamp"}
END_S = 12.0
# About how many files each verb changes: a later moment is not reached.
MOST_CHANGES = {"build": 160, "publish": 80, "rollback": 9, "verify": 22, "remove": 120, "prune": 140}
# The same as the library of C sees it: what is written, synced and given a mode counts too.
MOST_CALLS = {"build": 750, "publish": 100, "rollback": 15, "verify": 18, "remove": 235, "prune": 265}
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


def content_of(folder: Path) -> dict[str, str]:
    """The hash of each file below a folder, without what differs from run to run: times, and the text of logs."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name in ("manifest.txt", "manifest.json", "generation.json"):
            continue  # times and hashes of the other files; `provision verify` compares with them
        if name == ".provision/receipts/compile.json":
            continue  # its seconds are lost if the build is killed between the wheel and this file
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            data = path.read_bytes()
            if path.suffix == ".pyc":
                data = data[16:]  # behind the time of its source
            elif path.suffix == ".log" or path.name == "uv_cache.json":
                data = b""
            elif path.name == "RECORD":
                data = re.sub(rb"(uv_cache\.json,).*", rb"\1", data)
            elif path.suffix == ".json":
                data = json.dumps(without_times(json.loads(data)), sort_keys=True).encode()
            elif re.fullmatch(r"activate\.sh|.*\.lua", path.name) or path.parent.name == "tensorflow":
                data = re.sub(rb"at [0-9.]+ images/s \([0-9-]+\)", b"", data)
            found[name] = hashlib.sha256(data).hexdigest()
    return found


def without_times(value: Any) -> Any:
    """A value of JSON without its times."""
    if isinstance(value, dict):
        # The compiled wheel is an archive with the times of its files. The installed files are compared.
        compiled = str(value.get("uri", "")).endswith(".whl")
        return {
            name: without_times(part)
            for name, part in value.items()
            if name not in TIMES and not (compiled and name == "digest")
        }
    return [without_times(part) for part in value] if isinstance(value, list) else value


def difference(mine: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The names of the files that differ."""
    return sorted(name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name))


@dataclass(slots=True)
class Torture:
    """A root at which `one` is published and `two`, which has the same module name, is built under faults."""

    site: TinySite
    rng: random.Random
    template: Path
    both: Path
    """A copy of the root after `two` was published."""
    one: EnvironmentId
    two: EnvironmentId
    good: dict[str, dict[str, str]] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    """The modulefiles after `two` was published without a fault."""
    seconds: float = 0.0

    def prefix(self, env: EnvironmentId) -> Path:
        """The prefix of an environment."""
        return Path(self.site.store.layout.prefix(env))

    @property
    def pointer(self) -> Path:
        """What users have on their module path."""
        return Path(self.site.store.layout.modules(self.one.arch))

    def reset(self, template: Path | None = None) -> None:
        """The state before the build of `two`, or another one."""
        for path in self.site.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(template or self.template, self.site.root, symlinks=True, dirs_exist_ok=True)

    def build(self, **environ: str) -> subprocess.CompletedProcess[str]:
        """Build `two`."""
        return self.site.run("build", "--site", "two", **environ)

    # What must hold

    def seen(self) -> str:
        """What users see: `one` or `two`, or what is broken."""
        published = self.site.store.pointers()
        name = published.get(self.one.pointer)
        env = {str(self.one): self.one, str(self.two): self.two}.get(name or "")
        if env is None or len(published) != 1:
            return f"broken: users see {published}"
        for kind in ("lua", "tcl"):
            file = self.pointer / kind / env.name / (f"{env.version}.lua" if kind == "lua" else env.version)
            if str(self.prefix(env)) not in file.read_text():
                return f"broken: `{file}` does not set the prefix of {env}"
        bad = [name for name in self.wrong(env) if ".provision/" not in name]
        return f"broken: {env} differs: {bad[:4]}" if bad else ("one" if env == self.one else "two")

    def wrong(self, env: EnvironmentId) -> list[str]:
        """What differs of an environment from the one that was built without faults."""
        return difference(content_of(self.prefix(env)), self.good[str(env)])

    def lost(self, env: EnvironmentId | None = None) -> int:
        """The bytes of `one`, which was published before, or of another environment, that are not there any more."""
        env = env or self.one
        now = content_of(self.prefix(env))
        names = [name for name, value in self.good[str(env)].items() if now.get(name) != value]
        return sum(max(1, (self.both / "envs" / str(env) / name).lstat().st_size) for name in names)

    def finish(self) -> list[str]:
        """Build to the end; what is wrong afterwards."""
        done = self.build()
        if done.returncode:
            return [f"the next build ended with {done.returncode}: {done.stderr[-800:]}"]
        wrong = [f"{name} differs from an undisturbed build" for name in self.wrong(self.two)[:6]]
        wrong += [] if self.seen() == "two" else [f"users see {self.seen()} after the build"]
        wrong += [f"modulefile {name} differs" for name in difference(content_of(self.pointer), self.modules)]
        return wrong + [f"left behind: {path}" for path in self.left()]

    def left(self) -> list[str]:
        """What no build without faults leaves: temporary files and folders, locks, and processes."""
        names = re.compile(r"^\.(?!provision$|generations$|gitignore$|lock$)|\.removed\.|\.damaged\.")
        root = self.site.root
        found = [path for path in root.rglob("*") if names.search(path.name) and "cache" not in path.parts]
        found += [
            path for path in root.glob("locks/*") if not path.is_dir() or any(path.iterdir())
        ]  # an empty one is free
        found += root.glob("build/*/*")
        return sorted({str(path.relative_to(root)) for path in found}) + [f"process {pid}" for pid in self.running()]

    def claims(self) -> set[str]:
        """The claims of locks, of those that live and of others."""
        return {path.name for path in self.site.root.glob("locks/*.lock/*")}

    def running(self) -> set[int]:
        """The processes that builds below this root started and that still run."""
        return marked_processes(MARK) & marked_processes("TINY_FOLDER", str(self.site.folder))


def prepare(folder: Path, seed: int, *, disk: bool = False) -> Torture:
    """Build `one` and `two` without faults, for comparison. With `disk`, the root is a file system in memory."""
    (folder / "root").mkdir(parents=True)
    if disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=200m", "tmpfs", str(folder / "root")], check=True)
    site = make_site(folder)
    site.good("build", "--site", "one")
    (name,) = site.store.pointers().values()
    one = EnvironmentId.parse(name)
    shutil.rmtree(site.root / "wheels")
    template = folder / "template"
    shutil.copytree(site.root, template, symlinks=True)
    began = time.monotonic()
    site.good("build", "--site", "two")
    seconds = time.monotonic() - began
    (two,) = {EnvironmentId.parse(name) for name in site.store.pointers().values()} - {one}
    both = folder / "both"
    shutil.copytree(site.root, both, symlinks=True)
    torture = Torture(site, random.Random(seed), template, both, one, two, seconds=seconds)
    torture.good = {str(env): content_of(torture.prefix(env)) for env in (one, two)}
    torture.modules = content_of(torture.pointer)
    assert torture.seen() == "two"
    assert not torture.left(), torture.left()
    torture.reset()
    assert torture.seen() == "one"
    return torture


# Faults: each returns what is wrong right after it; None if nothing was injected, because the process had ended before.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of one kind. `alone`: it needs a state of its own, and leaves none that a build continues."""

    kind: str
    inject: Callable[[], list[str] | None]
    alone: bool = False


def killed(torture: Torture, name: str, moment: str) -> list[str] | None:
    """A build that sends itself a signal at a moment."""
    before = torture.claims()
    done = torture.build(TINY_KILL=f"{name}:{moment}")
    return None if done.returncode == 0 else judge_end(torture, name, done.returncode, done.stderr, before)


def killed_from_outside(torture: Torture, name: str, after_s: float) -> list[str] | None:
    """A build that gets a signal after some time."""
    before = torture.claims()
    process = torture.site.start("build", "--site", "two")
    time.sleep(after_s)
    began = time.monotonic()
    process.send_signal(getattr(signal, name))
    try:
        _, stderr = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        return [f"it did not end in 60 s: {what_it_does(torture, process)}"]
    slow = time.monotonic() - began > max(END_S, torture.seconds)  # a busy machine takes longer for everything
    wrong = judge_end(torture, name, process.returncode, stderr, before) + (["it did not end in time"] if slow else [])
    return None if process.returncode == 0 and not wrong else wrong


def what_it_does(torture: Torture, process: subprocess.Popen[str]) -> str:
    """End a process that should have ended; what it and the processes that it started did until now."""
    children = []
    for pid in sorted(torture.running()):
        with contextlib.suppress(OSError):
            children.append(f"{pid}: {Path(f'/proc/{pid}/cmdline').read_text()[:200]!r}")
    process.send_signal(signal.SIGUSR1)
    time.sleep(2)
    process.kill()
    for pid in torture.running():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return "\n".join([*children, process.communicate()[1]])


def verbs(torture: Torture) -> dict[str, tuple[tuple[str, ...], str]]:
    """The verbs that change or remove what is there, once `two` replaced `one`, and the build of `two` before that.

    With what users see after each.
    """
    one = str(torture.one)
    return {
        "build": (("build", "--site", "two"), "two"),
        "publish": (("publish", one, "--site", "two"), "one"),
        "rollback": (("rollback", "--site", "two", "--generation", "1"), "one"),
        "verify": (("verify", "--all", "--site", "two"), "two"),
        "remove": (("remove", one, "--yes", "--site", "two"), "two"),
        "prune": (("prune", "--yes", "--site", "two", "--keep", "0", "--older", "0", "--generations", "0"), "two"),
    }


def before_verb(torture: Torture, verb: str) -> str:
    """The state from which this verb begins; what users see then."""
    torture.reset(torture.template if verb == "build" else torture.both)
    return "one" if verb == "build" else "two"


def verb_killed(torture: Torture, verb: str, name: str, moment: str) -> list[str] | None:
    """A verb that is killed, and then runs again to its end."""
    words, after = verbs(torture)[verb]
    before = before_verb(torture, verb)
    done = torture.site.run(*words, TINY_KILL=f"{name}:{moment}")
    if done.returncode == 0:
        return None
    ended = (130, -signal.SIGKILL, -signal.SIGTERM)
    wrong = [] if done.returncode in ended else [f"{verb} ended with {done.returncode}: {done.stderr[-500:]}"]
    wrong += [] if torture.seen() in (before, after) else [f"after {verb} users see {torture.seen()}"]
    return wrong + run_again(torture, verb)


def run_again(torture: Torture, verb: str) -> list[str]:
    """What is wrong after a verb that did not end well runs again, to its end."""
    words, after = verbs(torture)[verb]
    removes = verb in ("remove", "prune")
    again = torture.site.run(*words)
    wrong = [] if again.returncode in (0, 2) else [f"{verb} again: {again.returncode}: {again.stderr[-500:]}"]
    tidied = torture.site.run("prune", "--yes", "--site", "two")
    wrong += [] if tidied.returncode == 0 else [f"prune: {tidied.stderr[-500:]}"]
    wrong += [] if torture.seen() == after else [f"users see {torture.seen()} after {verb} and not {after}"]
    if removes and torture.prefix(torture.one).exists():
        wrong.append(f"{verb} left {torture.one}")
    whole = [torture.two] if removes else [torture.one, torture.two]
    wrong += [f"{env} lost {lost} bytes" for env in whole for lost in [torture.lost(env)] if lost]
    return wrong + [f"left behind: {path}" for path in torture.left()]


def failed(torture: Torture, verb: str, number: int, at: int, *, ever: bool) -> list[str] | None:
    """A verb whose change number `at` below the root fails with this error, or each from there on; then it runs again."""
    words, after = verbs(torture)[verb]
    before, folder = before_verb(torture, verb), torture.site.folder
    shim, count = folder / "failing_disk.so", folder / "changes"
    if not shim.exists():
        source = Path(__file__).with_name("failing_disk.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    count.write_bytes(bytes(8))
    environ = {"LD_PRELOAD": str(shim), "FAIL_BELOW": str(torture.site.root), "FAIL_COUNT": str(count)}
    environ |= {"FAIL_EVER": "1"} if ever else {}
    done = torture.site.run(*words, "--json", **environ, FAIL_AT=str(at), FAIL_WITH=str(number))
    if int.from_bytes(count.read_bytes(), sys.byteorder) < at:
        return None
    wrong = []
    answer = json.loads(done.stdout) if done.returncode else {}
    if done.returncode and "error" not in answer:
        wrong.append(f"{verb} ended with {done.returncode} without an error: {answer} {done.stderr[-500:]}")
    elif done.returncode:
        error = answer["error"]
        said = f"{error['message']} {error['evidence']} {error['hint']}"
        clear = error["kind"] == "no-space" if number in ERRORS[:2] else os.strerror(number) in said
        wrong += [] if clear else [f"{os.strerror(number)} is reported as {error['kind']}: {said}"]
    wrong += [] if torture.seen() in (before, after) else [f"after {verb} users see {torture.seen()}"]
    when = f"{errno.errorcode[number]} at change {at} of {verb}{' and later' * ever}"
    return [f"{when}: {line}" for line in wrong + run_again(torture, verb)]


def judge_end(torture: Torture, name: str, code: int, stderr: str, before: Collection[str]) -> list[str]:
    """What is wrong about how a build ended: it was killed, or it tidied up, or it was done before.

    The claims of earlier faults, `before`, stay if it ended before it took the lock.
    """
    wrong = [] if code in (0, 130, -signal.SIGKILL, -signal.SIGTERM) else [f"it ended with {code}: {stderr[-500:]}"]
    if name == "SIGTERM" and code == 130:
        wrong += [] if " kept" in stderr else [f"it said {stderr[-300:]!r}"]
        wrong += [f"process {pid} runs on" for pid in torture.running()]
        wrong += [f"the claim {claim} was left" for claim in torture.claims() - set(before)]
    return wrong


def full_disk(torture: Torture, option: str, more: int) -> list[str] | None:
    """A disk with little space, or few inodes; afterwards there is enough again."""
    root = torture.site.root
    status = os.statvfs(root)
    used = (status.f_blocks - status.f_bfree) * status.f_bsize if option == "size" else status.f_files - status.f_ffree
    whole = "size=200m,nr_inodes=100k"
    remount(root, f"{option}={used + more}")
    try:
        done = torture.site.run("build", "--site", "two", "--json")
    finally:
        remount(root, whole)
    if done.returncode == 0:
        return None
    error = json.loads(done.stdout)["error"]
    clear = error["kind"] == "no-space" or "space" in f"{error['message']} {error['evidence']} {error['hint']}".lower()
    return [] if clear else [f"a full disk is reported as {error['message']}: {error['evidence'][:3]}"]


def read_only(torture: Torture) -> list[str]:
    """A disk that cannot be written; afterwards it can."""
    before = content_of(torture.site.root)
    remount(torture.site.root, "ro")
    try:
        done = torture.site.run("build", "--site", "two", "--json")
    finally:
        remount(torture.site.root, "rw")
    error = json.loads(done.stdout)["error"]
    wrong = [] if "cannot be written" in error["message"] else [f"a read-only disk is reported as {error['message']}"]
    return wrong + [f"{name} was changed" for name in difference(before, content_of(torture.site.root))]


def remount(root: Path, options: str) -> None:
    """Change the options of the file system of the root."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(root)], check=True)


def planted_lock(torture: Torture, kind: str) -> list[str]:
    """Something at the path of the lock that is not a lock."""
    path = Path(torture.site.store.layout.lock(torture.two))
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)  # of a build that was killed before
    if kind == "folder":
        (path / "x").mkdir(parents=True)
    else:
        path.write_text(
            {"text": "held by me for ever", "empty": "", "old": '{"user": "x", "pid": 1, "host": "n1"}'}[kind]
        )
        path.chmod(0)
    done = torture.build()
    wrong = [] if done.returncode == 0 else [f"it ended with {done.returncode}: {done.stderr[-500:]}"]
    for place in (path, *path.parent.glob(f".{path.name}*")):
        shutil.rmtree(place, ignore_errors=True)
    return wrong


def many_at_once(torture: Torture, number: int, clock: str = "") -> list[str] | None:
    """Several builds at once, one of which is killed."""
    environ = {"TINY_CLOCK": clock} if clock else {}
    running = [torture.site.start("build", "--site", "two", **environ) for _ in range(number)]
    time.sleep(torture.rng.uniform(0.5, 1.5) * torture.seconds)
    victim, *others = running
    injected = victim.poll() is None
    victim.kill()
    outputs = [process.communicate(timeout=300)[1] for process in running]
    wrong = [
        f"a build ended with {process.returncode}: {text[-500:]}"
        for process, text in zip(others, outputs[1:], strict=True)
        if process.returncode
    ]
    published = sum("[9/9] publish: done" in line for text in outputs for line in text.splitlines() if line[:1] == "[")
    wrong += [f"{published} builds published"] if published > 2 else []
    return wrong if injected or wrong else None


def faults(torture: Torture, *, disk: bool) -> Iterator[Fault]:
    """Faults without end: the boundaries of all steps first, then all kinds by chance."""
    for moment in BOUNDARIES:
        for name in ("SIGKILL", "SIGTERM"):
            inject = functools.partial(killed, torture, name, moment)
            yield Fault(kind=f"{name} of a build at a step boundary", inject=inject)
    rng = torture.rng
    kinds = ["change"] * 8 + ["moment"] * 8 + ["verb"] * 8 + ["fails"] * 6 + ["lock", "many", "clock"]
    kinds += (["full"] * 4 + ["inodes", "ro"]) * disk
    while True:
        name = rng.choice(("SIGKILL", "SIGKILL", "SIGTERM"))
        match rng.choice(kinds):
            case "change":
                inject = functools.partial(killed, torture, name, str(rng.randint(1, 160)))
                yield Fault(kind=f"{name} of a build before a change of a file", inject=inject)
            case "moment":
                after = rng.uniform(0.1, 1.1) * torture.seconds
                inject = functools.partial(killed_from_outside, torture, name, after)
                yield Fault(kind=f"{name} of a build at any moment", inject=inject)
            case "verb":
                verb = rng.choice(tuple(MOST_CHANGES))
                inject = functools.partial(verb_killed, torture, verb, name, str(rng.randint(1, MOST_CHANGES[verb])))
                yield Fault(kind=f"{name} of {verb} before a change of a file", inject=inject, alone=True)
            case "fails":
                verb, number, ever = rng.choice(tuple(MOST_CALLS)), rng.choice(ERRORS), rng.random() < 0.5
                inject = functools.partial(failed, torture, verb, number, rng.randint(1, MOST_CALLS[verb]), ever=ever)
                how = "all changes" if ever else "one change"
                yield Fault(kind=f"{how} of files by {verb} fail", inject=inject, alone=True)
            case "lock":
                kind = rng.choice(("text", "empty", "old", "folder"))
                yield Fault(
                    kind="nonsense at the path of the lock", inject=functools.partial(planted_lock, torture, kind)
                )
            case "many":
                inject = functools.partial(many_at_once, torture, 5)
                yield Fault(kind="five builds at once, one killed", inject=inject)
            case "clock":
                inject = functools.partial(many_at_once, torture, 3, "300000")
                yield Fault(kind="clocks that jump by days, one of three killed", inject=inject)
            case "full":
                inject = functools.partial(full_disk, torture, "size", rng.randrange(1, 700) * 4096)
                yield Fault(kind="full disk", inject=inject)
            case "inodes":
                inject = functools.partial(full_disk, torture, "nr_inodes", rng.randrange(1, 150))
                yield Fault(kind="no inodes left", inject=inject)
            case "ro":
                yield Fault(kind="read-only disk", inject=functools.partial(read_only, torture))


@dataclass(slots=True)
class Table:
    """What was injected, and what came of it."""

    injected: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    """Faults that were not injected: the process had ended before the moment came."""
    survived: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The table as text."""
        width = max(map(len, [*self.injected, "fault"]))
        head = f"{'fault':{width}}  injected  survived  published broken  bytes lost"
        counters = (self.injected, self.survived, self.broken, self.lost)
        rows = [(kind, *(counter[kind] for counter in counters)) for kind in sorted(self.injected)]
        rows.append(("all", *(sum(counter.values()) for counter in counters)))
        missed = f"{self.missed} more were not injected: the process ended before the moment came"
        return [head, *(f"{row[0]:{width}}  {row[1]:8}  {row[2]:8}  {row[3]:16}  {row[4]:10}" for row in rows), missed]


def run(torture: Torture, number: int, *, disk: bool, most_s: float = 1e9, chain: int = 8) -> Table:
    """Inject faults, one after the other into the same build, `chain` at most; then the build must finish."""
    table, began, length, longest = Table(), time.monotonic(), 0, chain

    def finish(kinds: list[str]) -> None:
        wrong = torture.finish()
        table.complaints.extend(f"after {kinds}: {line}" for line in wrong)
        if not wrong:
            table.survived.update(kinds)
        torture.reset()

    kinds: list[str] = []
    for fault in faults(torture, disk=disk):
        if sum(table.injected.values()) >= number or time.monotonic() - began > most_s:
            break
        if fault.alone and length:
            finish(kinds)
            kinds, length = [], 0
        wrong = fault.inject()
        if wrong is None:
            table.missed += 1
            wrong = []
        else:
            table.injected[fault.kind] += 1
            kinds += [] if wrong else [fault.kind]
        seen = torture.seen()
        if seen.startswith("broken"):
            table.broken[fault.kind] += 1
            wrong.append(seen)
        table.complaints.extend(f"{fault.kind}: {line}" for line in wrong)
        print(f"{sum(table.injected.values())} {fault.kind}: {seen}", *wrong, file=sys.stderr, flush=True)
        if fault.alone:
            table.survived.update(kinds)
            kinds = []
            torture.reset()
            continue
        table.lost[fault.kind] += torture.lost()
        length += 1
        if seen == "two" or length >= longest:
            finish(kinds)
            kinds, length, longest = [], 0, torture.rng.randint(1, chain)
    if length:
        finish(kinds)
    return table


def main() -> int:
    """Run as the command line says; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="provision-torture-"))
    disk = os.geteuid() == 0
    began = time.monotonic()
    try:
        torture = prepare(folder, args.seed, disk=disk)
        print(f"seed {args.seed}; an undisturbed build takes {torture.seconds:.1f} s", flush=True)
        if not disk:
            print("without the faults of a disk: mounting one needs root")
        table = run(torture, args.faults, disk=disk, most_s=60 * args.minutes)
    finally:
        if disk:
            subprocess.run(["umount", "-l", str(folder / "root")], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(*table.lines(), *table.complaints, f"{time.monotonic() - began:.0f} s", sep="\n")
    return 1 if table.complaints or sum(table.lost.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
