"""Damage of an environment, in every way: it is seen, another one is built beside, and the damaged one stays as it is.

The steps are small programs instead of installers; planner, store and executor are the real ones.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words
from parts.memory import folder_in_memory
from parts.plans import executor_of, plan_of, sh
from parts.records import PROOF
from provision.backends.backend import Row
from provision.errors import StoreError
from provision.machine.files.disk import MOST_JSON
from provision.machine.root import bill_of_materials, sealing
from provision.machine.root.checking import examine, glance
from provision.machine.root.observe import existing
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout
from provision.model.manifest import HEAD
from provision.model.operation import (
    Command,
    Expectation,
    Inspect,
    InstallWheel,
    KeepWheel,
    Publish,
    Remove,
    Seal,
    WriteCandidate,
    WriteFile,
)
from provision.model.plan import Plan, fingerprint
from provision.planning.planner import choose_build, decide_steps

IDENTITY = {"python": "3.11.7", "framework": "tensorflow 2.15.1"}
ENV = EnvironmentId("knl", "tensorflow", "2.15.1", fingerprint(IDENTITY))
SECOND = ENV.rebuilt(2)
KEY = "0123456789abcdef"
REPORT = json.dumps({"versions": {"tensorflow": "2.15.1"}, "mapped_objects": ["/lib/libc.so"]})
SPEAKING = ("create", "install", "horovod", "bytecode", "inspect", "candidate", "proof")
FILES = ("record.json", "verdict.json", "plan.json", *(f"receipts/{step}.json" for step in SPEAKING))


def rows(store: Store, env: EnvironmentId) -> tuple[Row, ...]:
    """The steps of a build, as small programs."""
    prefix, records = str(store.layout.prefix(env)), store.layout.records_folder(env)
    build = str(store.layout.build(env))
    programs = {
        "create": (
            Remove(path=prefix),
            sh(f"mkdir -p '{prefix}'; echo $$ >'{prefix}/made'"),
            WriteFile(path=str(records / "plan.json"), text=json.dumps(IDENTITY, indent=1) + "\n"),
        ),
        "install": (sh(f"echo packages >'{prefix}/packages'"),),
        "compile": (
            Remove(path=build),
            sh(f"mkdir -p '{build}'; echo compiled >'{build}/horovod.whl'"),
            KeepWheel(folder=build, key=KEY, abi={"mpi": "mpich"}),
        ),
        "horovod": (InstallWheel(key=KEY, command=Command(argv=("/bin/sh", "-c", f'cp "$0" {prefix}'))),),
        "bytecode": (sh("true"),),
        "inspect": (
            Inspect(
                command=Command(argv=("/bin/sh", "-c", 'printf "%s\\n" "$0"', REPORT)),
                expectation=Expectation(framework="tensorflow", versions=(), mpi_libraries=(), allowed=("/",)),
            ),
        ),
        "candidate": (WriteCandidate(),),
        # What the ranks' judge writes.
        "proof": (
            sh(f"test -e '{store.layout.candidate(env, 'lua')}'"),
            WriteFile(path=str(records / "verdict.json"), text=json.dumps(PROOF.to_dict())),
        ),
        "publish": (Seal(), Publish()),
    }
    cached = "cached" if KEY in existing(store).wheels else None
    special = {"install": {"starts_over": True}, "compile": {"receipt": "horovod", "reuse": cached}}
    return tuple(
        Row(name=name, title=name, reason="", operations=operations, **special.get(name, {}))  # type: ignore[arg-type]
        for name, operations in programs.items()
    )


@dataclasses.dataclass
class Builder:
    """Builds as the verb does: plan, execute."""

    store: Store

    @property
    def prefix(self) -> Path:
        """The prefix of the first environment."""
        return Path(self.store.layout.prefix(ENV))

    @property
    def records(self) -> Path:
        """The folder of its records."""
        return Path(self.store.layout.records_folder(ENV))

    @property
    def wheel(self) -> Path:
        """The folder of the cached wheel."""
        return Path(self.store.layout.wheel(KEY))

    def plan(self) -> Plan:
        """The plan, from what exists."""
        there = existing(self.store)
        env = choose_build(ENV, there, rebuild=False)
        steps = decide_steps(rows(self.store, env), there, env)
        return plan_of(self.store, env, steps, identity=IDENTITY, abi_key=KEY)

    def build(self, *, before: str = "") -> tuple[EnvironmentId, list[str]]:
        """Build, up to this step; the environment, and the steps that ran."""
        plan = self.plan()
        names = [step.name for step in plan.steps if step.action == "create"]
        names = names[: names.index(before)] if before else names
        plan = dataclasses.replace(plan, steps=tuple(step for step in plan.steps if step.name in names))
        with self.store.held(Path(self.store.layout.lock(plan.environment)), {}) as lock:
            executor_of(self.store, plan, lock).run()
        return plan.environment, names

    def assert_sound(self, env: EnvironmentId = ENV) -> None:
        """Everything is done, published and readable, and a second build finds nothing to do."""
        assert self.store.pointers() == {env.pointer: str(env)}
        assert examine(self.store, env, hashes=True).differences == ()
        record = glance(self.store, env, loaded=True).record
        assert record is not None
        assert (record.verdict, record.versions, record.identity) == (PROOF, {"tensorflow": "2.15.1"}, IDENTITY)
        assert set(SPEAKING) <= set(record.seconds)
        assert self.store.wheels.find(KEY).read_text() == "compiled\n"
        assert self.build() == (env, [])

    def snapshot(self) -> dict[str, tuple[object, ...]]:
        """What is below the first prefix: mode, time and content of everything."""
        found = {}
        for path in (self.prefix, *sorted(self.prefix.rglob("*"))):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() and status.st_size < MOST_JSON else status.st_size
            found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found

    def assert_built_beside(self) -> None:
        """Users load what they loaded until a second one is proved; nothing of the first one was touched."""
        before = self.snapshot()
        env, ran = self.build(before="publish")
        assert (env, ran) == (SECOND, [*SPEAKING])
        assert self.store.pointers() == {ENV.pointer: str(ENV)}
        assert self.build() == (SECOND, ["publish"])
        assert self.snapshot() == before
        self.assert_sound(SECOND)


memory = pytest.fixture(folder_in_memory, scope="module")


@pytest.fixture(scope="module")
def built(memory: Path) -> Builder:
    """An environment that was built and published."""
    builder = Builder(Store(Layout(PurePosixPath(memory / "root"))))
    builder.build()
    builder.assert_sound()
    shutil.copytree(builder.store.root, memory / "sound", symlinks=True)
    return builder


@pytest.fixture
def builder(built: Builder) -> Builder:
    """The environment as it was built: records name its path, so each test finds a copy of it at the same path."""
    shutil.rmtree(built.store.root)
    shutil.copytree(built.store.root.with_name("sound"), built.store.root, symlinks=True)
    return Builder(Store(built.store.layout))


def put_folder(path: Path) -> None:
    """A folder with a file instead of the file."""
    path.unlink()
    path.mkdir()
    (path / "file").write_text("of a person")


def put_link(path: Path) -> None:
    """A link to nothing instead of the file."""
    path.unlink()
    path.symlink_to("nothing")


def put_fifo(path: Path) -> None:
    """A FIFO instead of the file."""
    path.unlink()
    os.mkfifo(path)


def with_wrong_types(path: Path) -> None:
    """Each value becomes a list of itself."""
    data = json.loads(path.read_text())
    path.write_text(json.dumps({name: [[value]] for name, value in data.items()}))


def make_huge(path: Path) -> None:
    """More than a JSON file may have; the rest is zeros."""
    os.truncate(path, MOST_JSON + 1)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_text(""),
    "a folder": put_folder,
    "a link": put_link,
    "a FIFO": put_fifo,
    "wrong types": with_wrong_types,
    "another value": lambda path: path.write_text("[1]"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe{\xff}"),
    "nested": lambda path: path.write_text("[" * 200_000),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "huge": make_huge,
    "missing": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_seen_at_once_and_another_one_is_built_beside(builder: Builder, damage: str) -> None:
    DAMAGES[damage](builder.records / "record.json")
    assert str(glance(builder.store, ENV, loaded=True).why).startswith("record.json: ")
    builder.assert_built_beside()


@pytest.mark.parametrize("damage", DAMAGES)
def test_other_damaged_records_are_found_by_the_thorough_look(builder: Builder, damage: str) -> None:
    paths = [builder.records / name for name in FILES[1:]]
    for path in paths:
        DAMAGES[damage](path)
    found = examine(builder.store, ENV, hashes=False)
    assert {difference.name for difference in found.differences} == set(map(str, paths))
    assert found.condition == "broken"
    assert glance(builder.store, ENV, loaded=True).why is None


LOSSES: dict[str, Callable[[Path], object]] = {
    "the manifest": lambda records: (records / HEAD).unlink(),
    "record and manifest": lambda records: ((records / "record.json").unlink(), (records / HEAD).unlink()),
    "all files": lambda records: [path.unlink() for path in records.rglob("*") if path.is_file()],
    "all records": shutil.rmtree,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_lost_its_records_stays_and_another_one_is_built_beside(builder: Builder, loss: str) -> None:
    LOSSES[loss](builder.records)
    builder.assert_built_beside()


@pytest.mark.parametrize("loss", ["the manifest", "all files", "all records"])
def test_it_also_stays_if_users_cannot_load_it_now(builder: Builder, loss: str) -> None:
    """Shells and jobs may have loaded it before."""
    Publisher(builder.store).unpublish(ENV)
    LOSSES[loss](builder.records)
    before = builder.snapshot()
    assert builder.build()[0] == SECOND
    assert builder.snapshot() == before
    builder.assert_sound(SECOND)


def test_nothing_unfinished_is_where_users_load_it(builder: Builder) -> None:
    shutil.rmtree(builder.prefix)
    assert builder.build() == (SECOND, [*SPEAKING, "publish"])
    assert not builder.prefix.exists()


def test_a_record_of_a_newer_version_is_left_alone(builder: Builder) -> None:
    path = builder.records / "record.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2', 1))
    before = builder.snapshot()
    assert builder.plan().done
    builder.store.generations.pointer(ENV.arch).unlink()
    with pytest.raises(StoreError) as caught:
        builder.build()
    assert caught.value.kind == "newer"
    assert builder.snapshot() == before


@pytest.fixture
def unfinished(memory: Path) -> Builder:
    """An environment that is proved, but not sealed."""
    shutil.rmtree(memory / "root", ignore_errors=True)
    builder = Builder(Store(Layout(PurePosixPath(memory / "root"))))
    builder.build(before="publish")
    return builder


# Which step is repeated does not depend on the damage.
@pytest.mark.parametrize(
    ("name", "damage"), list(zip(FILES[1:], ("missing", "cut in half", "wrong types", "nested") * 3, strict=False))
)
def test_a_damaged_file_of_an_unfinished_environment_repeats_its_step(
    unfinished: Builder, name: str, damage: str
) -> None:
    DAMAGES[damage](unfinished.records / name)
    env, ran = unfinished.build()
    first = {"verdict.json": "candidate", "plan.json": "publish", "receipts/install.json": "create"}
    steps = (*SPEAKING, "publish")  # the wheel is in the cache
    assert (env, ran) == (ENV, list(steps[steps.index(first.get(name, Path(name).stem)) :]))
    unfinished.assert_sound()


@pytest.mark.parametrize("killed_after", ["manifest.txt", "activate.sh", bill_of_materials.SBOM, HEAD])
def test_a_seal_that_was_killed_is_done_again(
    unfinished: Builder, monkeypatch: pytest.MonkeyPatch, killed_after: str
) -> None:
    def deadly(write: Callable[[Path, Any], None]) -> Callable[[Path, Any], None]:
        def write_and_die(path: Path, content: Any) -> None:
            write(path, content)
            if path.name == killed_after:
                raise KeyboardInterrupt

        return write_and_die

    for module, name in ((sealing, "write"), (sealing, "write_json"), (bill_of_materials, "write")):
        monkeypatch.setattr(module, name, deadly(getattr(module, name)))
    with pytest.raises(KeyboardInterrupt):
        unfinished.build()
    monkeypatch.undo()
    assert unfinished.store.pointers() == {}
    assert unfinished.build() == (ENV, ["publish"])
    unfinished.assert_sound()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("wheel.json", damage) for damage in DAMAGES),
        *(("horovod.whl", damage) for damage in ("missing", "cut in half", "empty", "a folder", "a FIFO")),
    ],
)
def test_a_damaged_wheel_is_compiled_again_when_it_is_needed(builder: Builder, name: str, damage: str) -> None:
    DAMAGES[damage](builder.wheel / name)
    assert builder.build() == (ENV, []), "an environment that is built needs it no more"
    Publisher(builder.store).unpublish(ENV)
    shutil.rmtree(builder.prefix)
    assert builder.build() == (ENV, ["create", "install", "compile", *SPEAKING[2:], "publish"])
    builder.assert_sound()


def test_a_flipped_byte_of_the_wheel_is_an_error_whose_hint_works(builder: Builder, words: Words) -> None:
    (builder.wheel / "horovod.whl").write_text("cOmpiled\n")
    Publisher(builder.store).unpublish(ENV)
    shutil.rmtree(builder.prefix)
    with pytest.raises(StoreError) as caught:
        builder.build()
    (reason,) = caught.value.evidence
    assert "`horovod.whl`" in reason and "`wheel.json`" in reason
    words("build", f"{caught.value.message.replace(str(builder.store.root), 'ROOT')}\n{reason}")
    subprocess.run(str(caught.value.hint).split("`")[1], shell=True, check=True)
    assert builder.build() == (ENV, ["compile", *SPEAKING[2:], "publish"])
    builder.assert_sound()
