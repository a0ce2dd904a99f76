"""How much space a build needs: counted in the wheels that were fetched, or taken from an earlier environment of the stack."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

from parts.published import put_proved
from parts.tiny import TAG, TinySite, make_site
from provision.machine.configuration.shipped import load_stack
from provision.machine.root.observe import needed_space
from provision.model.layout import EnvironmentId
from provision.model.lock import Lock, parse_lock
from provision.planning.preflight import BYTECODE, COMPILATION, MARGIN, USUAL

COMPILED = load_stack("tensorflow-2.15.1")
PLAIN = dataclasses.replace(COMPILED, horovod=None, compiled=())


def locks_of(site: TinySite) -> list[Lock]:
    """The locks of the light stack."""
    folder = site.folder / "config" / "requirements"
    return [parse_lock(path.read_text(), str(path)) for path in sorted(folder.glob(f"*-{TAG}.txt"))]


def test_fetched_wheels_are_counted_as_they_are_unpacked(tmp_path: Path) -> None:
    site, there = make_site(tmp_path), tmp_path / "unpacked"
    for wheel in Path(site.store.layout.wheelhouse).glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(there / wheel.name)
    files = [path for path in there.rglob("*") if path.is_file()]
    modules = [path for path in files if path.suffix == ".py"]
    assert len(modules) > 20
    size, bytecode = (sum(path.stat().st_size for path in paths) for paths in (files, modules))
    needed = needed_space(site.store, PLAIN, locks_of(site))
    assert needed.size == int((size + bytecode * BYTECODE) * MARGIN)
    assert needed.files == int((len(files) + len(modules)) * MARGIN)
    assert needed.source == f"the content of {len(list(there.iterdir()))} fetched wheels"
    compiled = needed_space(site.store, COMPILED, locks_of(site))
    assert compiled.size - needed.size == COMPILATION[0] * MARGIN


def test_without_all_wheels_an_earlier_environment_counts_and_a_damaged_wheel_stops_nothing(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    store, (first, *_) = site.store, sorted(Path(site.store.layout.wheelhouse).glob("*.whl"))
    first.write_bytes(b"x" * first.stat().st_size)
    assert needed_space(store, COMPILED, locks_of(site)) == USUAL["tensorflow"]
    first.unlink()
    assert needed_space(store, COMPILED, locks_of(site)) == USUAL["tensorflow"]
    env = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
    record = put_proved(store, env)
    needed = needed_space(store, PLAIN, locks_of(site))
    files = [path for path in Path(record.prefix).rglob("*") if not path.is_dir() and ".provision" not in path.parts]
    assert needed.source == f"the size of `{env}`"
    assert needed.files == int(len(files) * MARGIN)
    assert 0 < needed.size < 10_000
