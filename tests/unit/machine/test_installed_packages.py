"""Packages are counted when all of their files are there, and not those that were there before."""

from __future__ import annotations

from pathlib import Path

from provision.machine.probes.installed_packages import PackageCounter


def put(prefix: Path, name: str, *, whole: bool = True) -> None:
    """Install a package, or the first half of it."""
    folder = prefix / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("INSTALLER" if whole else "METADATA")).write_text("uv\n")


def test_only_whole_packages_are_counted_and_each_number_is_reported_once(tmp_path: Path) -> None:
    put(tmp_path, "pip-24.0")
    said: list[str] = []
    counter = PackageCounter(prefix=tmp_path, total=2, report=said.append)
    counter.look()
    put(tmp_path, "numpy-1.26.4", whole=False)
    counter.look()
    assert said == []
    put(tmp_path, "numpy-1.26.4")
    counter.look()
    counter.look()
    put(tmp_path, "six-1.17.0")
    counter.look()
    assert said == ["package 1 of 2", "package 2 of 2"]
