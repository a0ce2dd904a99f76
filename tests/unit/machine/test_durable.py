"""A power cut at any moment: what is on the disk then has no receipt, record or pointer without what it speaks for.

The disk is a file. A copy of it at some moment is what a power cut at that moment leaves: what was written but not synced is
not in it, or is empty.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from parts.disks import loop_disk
from parts.plans import carry_out, plan_of
from parts.records import ENVIRONMENT, PROOF
from provision.errors import StoreError
from provision.machine.install import executor as executor_module
from provision.machine.root.observe import existing
from provision.machine.root.store import Store
from provision.model.event import Event
from provision.model.layout import Layout
from provision.model.operation import Command, KeepWheel, Operation, Publish, Seal, WriteFile
from provision.model.plan import Step

FILES = 60
TEXT = "installed by a program that does not sync\n" * 50


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    yield from loop_disk(tmp_path / "image", tmp_path / "disk")


def writing(folder: Path) -> Command:
    """A program that writes files, as an installer does."""
    script = 'mkdir -p "$0"; i=0; while [ $i -lt $1 ]; do printf %s "$2" >"$0/$i"; i=$((i+1)); done'
    return Command(argv=("/bin/sh", "-c", script, str(folder), str(FILES), TEXT))


def steps(store: Store) -> tuple[Step, ...]:
    """Three steps that write files, a compiled wheel, and the publication."""
    prefix, build = Path(store.layout.prefix(ENVIRONMENT)), Path(store.layout.build(ENVIRONMENT))
    verdict = Path(store.layout.records_folder(ENVIRONMENT)) / "verdict.json"
    wheel = Command(argv=("/bin/sh", "-c", 'mkdir -p "$0"; printf %s "$1" >"$0/h.whl"', str(build), TEXT))
    operations: dict[str, tuple[Operation, ...]] = {
        **{name: (writing(prefix / name),) for name in ("create", "install", "bytecode")},
        "compile": (wheel, KeepWheel(folder=str(build), key="k", abi={})),
        "proof": (WriteFile(path=str(verdict), text=json.dumps(PROOF.to_dict())),),
        "publish": (Seal(), Publish()),
    }
    return tuple(
        Step(name=name, title=name, action="create", reason="", operations=these) for name, these in operations.items()
    )


def build(store: Store, listen: Callable[[Event], None]) -> None:
    """Build below this root."""
    carry_out(store, plan_of(store, ENVIRONMENT, steps(store)), listen)


@dataclasses.dataclass
class PowerCuts:
    """Copies of a disk, made at every event of a build."""

    image: Path
    copies: list[tuple[str, Path]] = dataclasses.field(default_factory=list)

    def listen(self, event: Event) -> None:
        """Keep what is on the disk now."""
        if event.kind in ("started", "finished"):
            copy = self.image.with_name(f"cut-{len(self.copies)}")
            subprocess.run(["cp", "--sparse=always", str(self.image), str(copy)], check=True)
            self.copies.append((f"{event.kind} {event.step}", copy))


@contextmanager
def after_the_cut(copy: Path) -> Iterator[Store]:
    """The root on a copy of the disk, after the start of the machine."""
    mounting = loop_disk(copy, copy.with_name(f"{copy.name}-disk"))
    try:
        yield Store(Layout(PurePosixPath(next(mounting) / "root")))
    finally:
        assert next(mounting, None) is None
        copy.unlink()


def lies(store: Store) -> list[str]:
    """What is on this disk that speaks for something that is not there."""
    found = []
    prefix = Path(store.layout.prefix(ENVIRONMENT))
    for step in store.read_receipts(ENVIRONMENT).keys() - {"proof", "compile"}:
        good = [file for file in (prefix / step).glob("*") if file.read_text() == TEXT]
        found += [f"receipt {step}: {len(good)} of {FILES} files"] if len(good) < FILES else []
    if "k" in existing(store).wheels:
        try:
            store.wheels.find("k")
        except StoreError as error:
            found.append(f"wheel: {error.evidence}")
    for name, environment in store.pointers().items():
        found += [] if store.record(ENVIRONMENT) else [f"pointer {name} to {environment}, without its record"]
        modules = [file.stat().st_size for file in Path(store.layout.modules("knl")).glob("*/tensorflow/*")]
        found += [] if len(modules) == 3 and all(modules) else [f"pointer {name}: modulefiles of {modules} bytes"]
    return found


def test_after_a_power_cut_every_receipt_speaks_for_files_that_are_there(disk: Path, tmp_path: Path) -> None:
    cuts = PowerCuts(tmp_path / "image")
    build(Store(Layout(PurePosixPath(disk / "root"))), cuts.listen)
    seen: set[str] = set()
    for moment, copy in cuts.copies:
        with after_the_cut(copy) as store:
            assert lies(store) == [], moment
            seen |= store.read_receipts(ENVIRONMENT).keys()
            published = bool(store.pointers())
    assert seen == {"create", "install", "bytecode", "compile", "proof"}, "otherwise nothing was looked at"
    assert published, "what the last event says is on the disk"


def test_without_the_sync_the_test_above_finds_empty_files(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_module, "sync_file_system", lambda _: None)
    cuts = PowerCuts(tmp_path / "image")
    build(Store(Layout(PurePosixPath(disk / "root"))), cuts.listen)
    found = []
    for _, copy in cuts.copies:
        with after_the_cut(copy) as store:
            found += lies(store)
    assert any(line.startswith("receipt create: ") for line in found), found


def test_an_error_of_the_disk_fails_the_step_and_leaves_no_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(executor_module, "sync_file_system", fail)
    store, events = Store(Layout(PurePosixPath(tmp_path / "root"))), list[Event]()
    with pytest.raises(StoreError, match="Input/output error"):
        build(store, events.append)
    assert store.read_receipts(ENVIRONMENT) == {}
    assert (events[-1].kind, events[-1].step) == ("failed", "create")
