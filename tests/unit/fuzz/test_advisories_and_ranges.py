"""Records of advisories and stacks with ranges that have anything in any place: they are read, or refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from parts.hostile import damaged, fuzzed, refused
from provision.knowledge.advisories import open_advisories
from provision.machine.tables import given_advisories
from provision.profile.document import refuse_extremes
from provision.profile.wish import read_wish

RECORD = {
    "id": "GHSA-1",
    "aliases": ["CVE-1"],
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "numpy"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}],
            "versions": ["1.0"],
        }
    ],
}
OURS = {
    "schema": 1,
    "sources": [{"name": "x", "date": "2026-01-01"}],
    "advisories": [{"package": "numpy", "id": "CVE-1", "spans": [{"introduced": "0"}], "source": "https://x"}],
}
WISH = {
    "name": "w",
    "summary": "s",
    "choose": {"tensorflow": ">=2.13,<2.16", "python": ">=3.9", "keras": "2", "horovod": True},
}
PACKAGES = (("numpy", "1.1"), ("numpy", "not a version"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of one example after another."""
    return tmp_path_factory.mktemp("advisories")


@fuzzed(40)
@given(record=damaged((RECORD,)), ours=damaged((OURS,)))
def test_any_file_of_advisories_is_read_or_refused(folder: Path, record: dict[str, Any], ours: dict[str, Any]) -> None:
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.json", json.dumps(record, default=str))
    (folder / "x.json").write_text(json.dumps(ours, default=str), encoding="utf-8", errors="surrogateescape")
    for name in ("all.zip", "x.json"):
        with refused():
            open_advisories(PACKAGES, given_advisories(str(folder / name), {"numpy"}))


@fuzzed(40)
@given(damaged((WISH,)))
def test_any_stack_with_ranges_is_read_or_refused(document: dict[str, Any]) -> None:
    from packaging.specifiers import SpecifierSet

    with refused():
        refuse_extremes(document, "stacks/x.toml")
        wish = read_wish(document, "stacks/x.toml")
        SpecifierSet(wish.tensorflow).contains("2.15.1")
        SpecifierSet(wish.python or "").contains("3.11")
