"""Advisories: which versions OSV's ranges affect, how records of one CVE are joined, and what the shipped file holds."""

from __future__ import annotations

from typing import Any

import pytest

from parts.loops import for_each
from provision.knowledge.advisories import (
    Advisories,
    Open,
    dump_advisories,
    open_advisories,
    parse_advisories,
    parse_osv,
    summary,
)
from provision.knowledge.frameworks import FRAMEWORKS
from provision.machine.files.tables import read_advisories


def record(name: str, package: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    """A record of OSV's format (schema 1.6): one package, one range of versions."""
    affected = {"package": {"ecosystem": "PyPI", "name": package}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": name, "modified": "2026-01-01T00:00:00Z", "affected": [affected], **more}


def opened(records: list[dict[str, Any]], package: str, version: str) -> list[tuple[str, str | None]]:
    """The ID and the fix of everything that is open in one version."""
    rows = parse_osv(records, {package})
    return [
        (one.advisory.id, one.fixed_in)
        for one in open_advisories([(package, version)], Advisories(sources=(), rows=rows))
    ]


@for_each(
    ("version", "fixed"),
    [
        ("1.15.5", "2.5.3"),
        ("2.5.2", "2.5.3"),
        ("2.5.3", None),
        ("2.6.0rc1", None),
        ("2.6.0", "2.6.3"),
        ("2.6.2", "2.6.3"),
        ("2.6.3", None),
        ("2.10.0", None),
    ],
)
def test_a_version_is_affected_from_introduced_up_to_but_not_at_fixed(version: str, fixed: str | None) -> None:
    events = ({"introduced": "0"}, {"fixed": "2.5.3"}, {"introduced": "2.6.0"}, {"fixed": "2.6.3"})
    wanted = [("CVE-1", fixed)] if fixed else []
    assert opened([record("CVE-1", "tensorflow", *events)], "tensorflow", version) == wanted


def test_last_affected_is_affected_and_no_end_is_all_newer() -> None:
    last = [record("CVE-1", "keras", {"introduced": "3.0"}, {"last_affected": "3.2"})]
    assert [opened(last, "keras", version) for version in ("2.9", "3.2", "3.2.1")] == [[], [("CVE-1", None)], []]
    assert opened([record("CVE-2", "horovod", {"introduced": "0"})], "horovod", "0.28.1+provision.18") == [
        ("CVE-2", None)
    ]


def test_records_of_one_cve_count_once_and_the_newest_decides() -> None:
    old = record("PYSEC-1", "keras", {"introduced": "0"}, {"fixed": "9"}, aliases=["CVE-1"], modified="2024-01-01")
    new = record("GHSA-1", "keras", {"introduced": "0"}, {"fixed": "3"}, aliases=["CVE-1"], modified="2025-01-01")
    for records in ([old, new], [new, old]):
        rows = parse_osv(records, {"keras"})
        assert [(row.id, set(row.aliases)) for row in rows] == [("CVE-1", {"PYSEC-1", "GHSA-1"})]
        assert opened(records, "keras", "2.0") == [("CVE-1", "3")]


def test_withdrawn_records_other_packages_and_other_ecosystems_do_not_count() -> None:
    events = ({"introduced": "0"},)
    withdrawn = record("CVE-1", "keras", *events, withdrawn="2025-01-01")
    other = record("CVE-2", "numpy", *events)
    npm = record("CVE-3", "keras", *events)
    npm["affected"][0]["package"]["ecosystem"] = "npm"
    assert not parse_osv([withdrawn, other, npm], {"keras"})


def test_an_advisory_of_tensorflow_is_one_of_its_other_packages() -> None:
    assert opened([record("CVE-1", "tensorflow-gpu", {"introduced": "0"})], "tensorflow-cpu", "2.2.3") == [
        ("CVE-1", None)
    ]


def test_the_text_is_read_back_and_one_line_is_one_advisory() -> None:
    rows = parse_osv([record("CVE-1", "keras", {"introduced": "0"}, {"fixed": "3"})], {"keras"})
    kept = Advisories(sources=(("x", "2026-01-01"),), rows=rows)
    assert parse_advisories(dump_advisories(kept)) == kept
    shipped = read_advisories()
    assert dump_advisories(shipped).count("\n") == len(shipped.rows) + 3


@for_each(
    "text",
    ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "sources": [], "advisories": [{"id": 1}]}', "[" * 100_000],
)
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_advisories(text)


def test_every_shipped_advisory_has_a_source_and_says_what_is_affected() -> None:
    for row in read_advisories().rows:
        assert row.source.startswith("https://"), row.id
        assert row.spans or row.versions, row.id


def test_both_advisories_of_horovod_are_open_in_the_last_release() -> None:
    found = open_advisories([("horovod", "0.28.1")], read_advisories())
    assert {one.advisory.id for one in found} == {"CVE-2024-10190", "CVE-2026-31234"}
    assert all("horovodrun" in one.advisory.note for one in found)


def test_an_old_tensorflow_says_how_many_are_not_listed_and_the_newest_has_none() -> None:
    def found(version: str) -> tuple[Open, ...]:
        return open_advisories([("tensorflow-cpu", version)], read_advisories())

    # CVE-2023-25658 is fixed in 2.11.1.
    assert len(found("2.10.1")) > 10
    assert found("2.11.1") == found("2.21.0") == ()
    for version, number in (("1.15.5", 202), ("2.2.3", 129)):
        notes = [one.advisory.note for one in found(version) if one.advisory.note]
        (note,) = notes
        assert f"2024-10-10 has {number} advisories for TensorFlow {version}, which are not listed here" in note


def test_the_summary_counts_and_has_what_it_means() -> None:
    found = open_advisories([("horovod", "0.28.1"), ("setuptools", "69.5.1")], read_advisories())
    line = summary(found, read_advisories())
    assert line.startswith("4 open (horovod 2, setuptools 2); CVE-2024-10190 and CVE-2026-31234: no release")
    assert "2026-11-22" in summary((), read_advisories())


def test_every_framework_has_records() -> None:
    read = {row.package for row in read_advisories().rows}
    assert {one.package for one in FRAMEWORKS.values()} <= read


def test_what_torch_export_loads_is_open_in_the_newest_torch() -> None:
    assert [one.advisory.id for one in open_advisories([("torch", "2.14.1")], read_advisories())] == ["CVE-2026-4538"]
    assert len(open_advisories([("torch", "2.7.1")], read_advisories())) == 9
