"""Profiles, stacks, advisories with anything in any place: they are read, or refused with a list of faults."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from parts.hostile import damaged, fuzzed, garbled, refused, texts
from parts.profiles import PROFILES, SITES, parsed, tomllib
from provision.errors import ConfigError
from provision.knowledge.advisories import open_advisories
from provision.machine.configuration import shipped
from provision.machine.files.tables import given_advisories
from provision.profile.blanks import blanks, fill, keep_archs
from provision.profile.document import refuse_extremes
from provision.profile.site import read_site
from provision.profile.stack import read_stack, read_wish

STACKS = SITES.parent / "stacks"
SITE_DOCUMENTS = tuple(parsed(name) for name in (*PROFILES, "local", "example-slurm"))
STACK_DOCUMENTS = tuple(tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(STACKS.glob("*.toml")))
SITE_TEXTS = tuple(path.read_text(encoding="utf-8") for path in sorted(SITES.glob("*.toml")))


@fuzzed(60)
@given(damaged(SITE_DOCUMENTS), st.one_of(st.just("/root"), texts))
def test_any_profile_is_read_or_refused(document: dict[str, Any], root: str) -> None:
    with refused():
        refuse_extremes(document, "sites/x.toml")
        read_site(document, "sites/x.toml", {"PROVISION_ROOT": root})


@fuzzed(60)
@given(damaged(STACK_DOCUMENTS))
def test_any_stack_is_read_or_refused(document: dict[str, Any]) -> None:
    with refused():
        refuse_extremes(document, "stacks/x.toml")
        read_stack(document, "stacks/x.toml")


@fuzzed(60)
@given(garbled(SITE_TEXTS), texts, texts, st.dictionaries(texts, texts, max_size=2))
def test_any_text_of_a_profile_is_read_filled_in_or_refused(
    text: str, name: str, arch: str, answers: dict[str, str]
) -> None:
    with refused():
        asked = blanks(text, shipped.parse)
        fill(keep_archs(text, [arch]), name, asked, answers)
    with refused():
        read_site(shipped.parse(text, "sites/x.toml"), "sites/x.toml", {"PROVISION_ROOT": "/root"})


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a = " + "[" * 200 + "]" * 200,
        ".".join("a" * 2000) + " = 1",
        "a = " + "9" * 5000,
        f"a = 0x{'f' * 5000}",
        "a = 9223372036854775807",
        "a = nan",
        "a = 1e300",
        f'a = "{"x" * 5000}"',
        f'"{"x" * 5000}" = 1',
    ],
    ids=lambda text: f"{text[:5]}-{text[-5:]}",
)
def test_an_extreme_of_toml_is_a_fault_of_the_file(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shipped.parse(text, "sites/x.toml")
    assert caught.value.kind == "invalid-file"
    assert all(len(line) < 9000 for line in caught.value.evidence)


# Advisories, and stacks with ranges

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
    with refused():
        refuse_extremes(document, "stacks/x.toml")
        wish = read_wish(document, "stacks/x.toml")
        SpecifierSet(wish.tensorflow).contains("2.15.1")
        SpecifierSet(wish.python or "").contains("3.11")
