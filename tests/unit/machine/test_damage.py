"""Every file that speaks for a step, damaged in every way: the next build notices it and makes it again, without a person.

The steps are small programs instead of installers; planner, store and executor are the real ones.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.memory import folder_in_memory
from parts.plans import carry_out, executor_of, plan_of, sh
from parts.records import PROOF
from provision.backends.backend import Row
from provision.errors import StoreError
from provision.machine.files.disk import MOST_JSON
from provision.machine.root.damage import find_damage, repair
from provision.machine.root.existing import existing
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout
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
from provision.model.receipt import Receipt
from provision.planning.steps import decide_steps

IDENTITY = {"python": "3.11.7", "framework": "tensorflow 2.15.1"}
ENV = EnvironmentId("knl", "tensorflow", "2.15.1", fingerprint(IDENTITY))
KEY = "0123456789abcdef"
REPORT = json.dumps({"versions": {"tensorflow": "2.15.1"}, "mapped_objects": ["/lib/libc.so"]})
SPEAKING = ("create", "install", "horovod", "bytecode", "inspect", "candidate", "proof")
FILES = ("record.json", "verdict.json", "plan.json", *(f"receipts/{step}.json" for step in SPEAKING))


def rows(store: Store) -> tuple[Row, ...]:
    """The steps of a build, as small programs."""
    prefix, records = str(store.layout.prefix(ENV)), store.layout.records_folder(ENV)
    build = str(store.layout.build(ENV))
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
                expectation=Expectation(versions=(), mpi_libraries=(), allowed=("/",)),
            ),
        ),
        "candidate": (WriteCandidate(),),
        # What the ranks' judge writes.
        "proof": (
            sh(f"test -e '{store.layout.candidate(ENV, 'lua')}'"),
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
    """Builds as the verb does: repair, plan, execute."""

    store: Store

    @property
    def prefix(self) -> Path:
        """The prefix of the environment."""
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
        steps = decide_steps(rows(self.store), existing(self.store), ENV)
        return plan_of(self.store, ENV, steps, identity=IDENTITY, abi_key=KEY)

    def build(self) -> tuple[list[str], list[str]]:
        """Build; what was said about damage, and the steps that ran."""
        with self.store.held(Path(self.store.layout.lock(ENV)), {}) as lock:
            said = repair(self.store, self.plan())
            plan = self.plan()
            executor_of(self.store, plan, lock).run()
        return said, [step.name for step in plan.steps if step.action == "create"]

    def unpublish(self) -> None:
        """As if the build had ended just before it published."""
        (self.records / "manifest.json").unlink()
        (self.records / "record.json").unlink()
        shutil.rmtree(self.store.root / "modules")
        self.store.write_receipt(ENV, Receipt(step="candidate", seconds=1, host="n"))
        candidate = [row for row in rows(self.store) if row.name == "candidate"]
        steps = decide_steps(candidate, dataclasses.replace(existing(self.store), receipts={}), ENV)
        carry_out(self.store, dataclasses.replace(self.plan(), steps=steps))

    def assert_sound(self) -> None:
        """Everything is done, published and readable, and a second build finds nothing to do."""
        plan = self.plan()
        assert plan.done, [(step.name, step.action) for step in plan.steps]
        assert find_damage(self.store, plan) == []
        record = self.store.record(ENV)
        assert record is not None
        assert record.verdict == PROOF
        assert record.versions == {"tensorflow": "2.15.1"}
        assert set(SPEAKING) <= set(record.seconds)
        assert self.store.read_receipts(ENV).keys() - {"compile"} == set(SPEAKING)  # compiled, or cached
        assert json.loads((self.records / "plan.json").read_text()) == IDENTITY
        assert self.store.pointers() == {ENV.pointer: str(ENV)}
        assert self.store.wheels.find(KEY).read_text() == "compiled\n"
        assert self.build() == ([], [])


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
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_a_published_environment_is_written_again(builder: Builder, damage: str) -> None:
    made, before = (builder.prefix / "made").read_text(), builder.store.record(ENV)
    for names in (FILES[:1], FILES[1:]):
        paths = [builder.records / name for name in names]
        for path in paths:
            DAMAGES[damage](path)
        reasons = {found.path: found.reason for found in find_damage(builder.store, builder.plan())}
        assert sorted(reasons) == sorted(paths)
        lines, ran = builder.build()
        assert ran == [], "the record has the content of the others, and the manifest has a copy of the record"
        for path, reason in reasons.items():
            (said,) = [line for line in lines if line.startswith(f"damaged: `{path}` ({reason})")]
            assert reason
            aside = re.search(r"moved to `([^`]+)`", said)
            assert aside, said
            assert os.path.lexists(path.with_name(aside[1])), "nothing is lost"
        assert builder.store.record(ENV) == before
    builder.assert_sound()
    assert (builder.prefix / "made").read_text() == made, "users have this environment loaded"


# Which step is repeated does not depend on the damage.
@pytest.mark.parametrize(
    ("name", "damage"), list(zip(FILES[1:], ("empty", "a folder", "wrong types", "nested") * 3, strict=False))
)
def test_a_damaged_file_of_an_unfinished_environment_repeats_its_step(builder: Builder, name: str, damage: str) -> None:
    builder.unpublish()
    DAMAGES[damage](builder.records / name)
    (said,), ran = builder.build()
    assert said.startswith(f"damaged: `{builder.records / name}` (")
    first = {"verdict.json": "candidate", "plan.json": "publish", "receipts/install.json": "create"}
    steps = (*SPEAKING, "publish")  # the wheel is in the cache
    assert ran == list(steps[steps.index(first.get(name, Path(name).stem)) :])
    builder.assert_sound()


def test_a_missing_verdict_is_noticed(builder: Builder) -> None:
    (builder.records / "verdict.json").unlink()
    (said,), ran = builder.build()
    assert ("it is missing" in said, ran) == (True, [])
    builder.assert_sound()
    builder.unpublish()
    (builder.records / "verdict.json").unlink()
    (said,), ran = builder.build()
    assert ("it is missing" in said, ran) == (True, ["candidate", "proof", "publish"])
    builder.assert_sound()


def test_a_missing_record_is_written_again_as_it_was(builder: Builder) -> None:
    before = builder.store.record(ENV)
    (builder.records / "record.json").unlink()
    (said,), ran = builder.build()
    assert ("it is missing" in said, ran) == (True, [])
    assert builder.store.record(ENV) == before
    builder.assert_sound()


def test_a_record_without_a_manifest_is_written_again_from_receipts_and_verdict(builder: Builder) -> None:
    before = builder.store.record(ENV)
    assert before
    (builder.records / "record.json").unlink()
    (builder.records / "manifest.json").unlink()
    assert builder.build() == ([], ["publish"])
    after = builder.store.record(ENV)
    assert after
    assert dataclasses.replace(after, built=before.built, seconds=before.seconds) == before
    builder.assert_sound()


def test_an_end_of_a_build_that_was_killed_before_its_last_file_is_done_again(builder: Builder) -> None:
    """Between the record and the head of the manifest, which is the last: `publish` went on without the head."""
    before = builder.store.record(ENV)
    for name in ("manifest.json", "sbom.cdx.json", "provenance.json"):
        (builder.records / name).unlink()
    builder.store.generations.pointer(ENV.arch).unlink()
    assert builder.build() == ([], ["publish"])
    assert builder.store.record(ENV) == before
    builder.assert_sound()


@pytest.mark.parametrize("damage", ["cut in half", "a folder", "huge"])
def test_a_damaged_record_and_receipt_repeat_the_step_of_the_receipt(builder: Builder, damage: str) -> None:
    (builder.records / "manifest.json").unlink()  # it has a copy of the record
    for name in ("record.json", "receipts/bytecode.json"):
        DAMAGES[damage](builder.records / name)
    said, ran = builder.build()
    assert len(said) == 2
    assert ran[0] == "bytecode"
    builder.assert_sound()


WHEEL_DAMAGES: dict[str, Callable[[Path], object]] = {
    **{
        f"wheel.json is {name}": lambda wheel, damage=damage: damage(wheel / "wheel.json")
        for name, damage in DAMAGES.items()
    },  # type: ignore[misc]
    "wheel cut": lambda wheel: (wheel / "horovod.whl").write_text("comp"),
    "wheel empty": lambda wheel: (wheel / "horovod.whl").write_text(""),
    "wheel is a folder": lambda wheel: put_folder(wheel / "horovod.whl"),
    "wheel is a FIFO": lambda wheel: put_fifo(wheel / "horovod.whl"),
    "wheel missing": lambda wheel: (wheel / "horovod.whl").unlink(),
    "a byte of the wheel": lambda wheel: (wheel / "horovod.whl").write_text("cOmpiled\n"),
    "all is a file": lambda wheel: (shutil.rmtree(wheel), wheel.write_text("")),
    "all is empty": lambda wheel: (shutil.rmtree(wheel), wheel.mkdir()),
}


@pytest.mark.parametrize("damage", ["wheel.json is empty", "wheel is a folder", "wheel missing", "all is a file"])
def test_a_damaged_wheel_is_compiled_again_when_it_is_needed(builder: Builder, damage: str) -> None:
    WHEEL_DAMAGES[damage](builder.wheel)
    shutil.rmtree(builder.prefix)
    (said,), ran = builder.build()
    assert said.startswith(f"damaged: `{builder.wheel}` (")
    assert ran == ["create", "install", "compile", *SPEAKING[2:], "publish"]
    builder.assert_sound()


@pytest.mark.parametrize("damage", WHEEL_DAMAGES)
def test_a_damaged_wheel_does_not_disturb_an_environment_that_is_built(
    builder: Builder, damage: str, words: Words
) -> None:
    WHEEL_DAMAGES[damage](builder.wheel)
    (said,), ran = builder.build()
    words("build", said.replace(str(builder.store.root), "ROOT"))
    assert ran == []
    assert not builder.wheel.exists()


def test_a_wheel_that_is_damaged_between_plan_and_use_is_an_error(builder: Builder, words: Words) -> None:
    WHEEL_DAMAGES["a byte of the wheel"](builder.wheel)
    with pytest.raises(StoreError) as caught:
        builder.store.wheels.find(KEY)
    (reason,) = caught.value.evidence
    assert "`horovod.whl`" in reason and "`wheel.json`" in reason
    words("build", f"{caught.value.message.replace(str(builder.store.root), 'ROOT')}\n{reason}")
    assert "provision build" in str(caught.value.hint)


def test_an_environment_of_another_admin_is_not_repaired(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    DAMAGES["empty"](builder.records / "verdict.json")
    monkeypatch.setattr("provision.machine.root.damage.os.access", lambda *_: False)
    assert builder.build() == ([], [])
