"""`provision audit`: what it counts, its exit code, and which files of advisories it reads."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import answer
from parts.json_page import faults
from parts.records import ENVIRONMENT, put_published, store_here
from provision import cli

Captured = pytest.CaptureFixture[str]
STACK = "tensorflow-2.15.1"


def osv_zip(path: Path, *records: dict[str, Any]) -> str:
    """A zip file of records as osv.dev exports them: one file of JSON for each."""
    with zipfile.ZipFile(path, "w") as archive:
        for record in records:
            archive.writestr(f"{record['id']}.json", json.dumps(record))
    return str(path)


NUMPY = {
    "id": "CVE-2030-1",
    "modified": "2030-01-02T00:00:00Z",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "numpy"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
        }
    ],
}


def test_a_stack_is_audited_for_each_of_its_pythons(capsys: Captured) -> None:
    code, body = answer(capsys, "audit", "--stack", STACK)
    assert code == 1
    assert faults(body["result"], "audit") == []
    assert [one["subject"] for one in body["result"]["audited"]] == [f"{STACK}, Python 3.{n}" for n in (11, 10, 9)]
    first = body["result"]["audited"][0]["open"]
    assert all(faults(one, "Open advisories") == [] for one in first)
    assert {one["id"] for one in first if one["package"] == "horovod"} == {"CVE-2024-10190", "CVE-2026-31234"}


def test_ignored_advisories_are_listed_but_do_not_count(capsys: Captured) -> None:
    _, body = answer(capsys, "audit", "--stack", STACK)
    found = {one["id"] for audited in body["result"]["audited"] for one in audited["open"]}
    code, body = answer(
        capsys, "audit", "--stack", STACK, *(word for name in found for word in ("--ignore", name.lower()))
    )
    assert (code, body["result"]["counted"]) == (0, 0)
    assert all(one["ignored"] for audited in body["result"]["audited"] for one in audited["open"])
    code, body = answer(capsys, "audit", "--stack", STACK, "--ignore", "CVE-2024-10190")
    assert code == 1


def test_an_alias_is_ignored_too(capsys: Captured) -> None:
    _, body = answer(capsys, "audit", "--stack", STACK, "--ignore", "GHSA-mrhh-3ggq-23p2")
    ignored = {one["id"] for one in body["result"]["audited"][0]["open"] if one["ignored"]}
    assert ignored == {"CVE-2024-10190"}


def test_an_ignored_name_that_no_advisory_has_is_answered_with_the_nearest(capsys: Captured, words: Words) -> None:
    assert cli.main(["audit", "--stack", STACK, "--ignore", "CVE-2024-10191"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "`--ignore CVE-2024-10191`" in line]
    assert "`CVE-2024-10190`" in line
    words("audit", line)


def test_a_newer_file_replaces_what_the_tool_has(capsys: Captured, tmp_path: Path) -> None:
    code, body = answer(capsys, "audit", "--stack", STACK, "--advisories", osv_zip(tmp_path / "all.zip", NUMPY))
    assert code == 1
    assert {one["id"] for audited in body["result"]["audited"] for one in audited["open"]} == {"CVE-2030-1"}
    assert body["result"]["sources"] == [{"name": "all.zip", "date": "2030-01-02"}]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b'{"schema": 1}', b"\xff"])
def test_a_damaged_file_is_refused(capsys: Captured, tmp_path: Path, content: bytes) -> None:
    for name in ("x.zip", "x.json"):
        (tmp_path / name).write_bytes(content)
        code, body = answer(capsys, "audit", "--stack", STACK, "--advisories", str(tmp_path / name))
        assert (code, body["error"]["kind"]) == (2, "invalid-file")


@pytest.mark.usefixtures("tmp_path")
def test_an_environment_is_audited_by_what_is_installed(capsys: Captured) -> None:
    store = store_here()
    put_published(store, modules=())
    packages = Path(store.layout.prefix(ENVIRONMENT)) / "lib/python3.11/site-packages"
    for name in ("horovod-0.28.1+provision.18", "numpy-1.26.4", "tensorflow_cpu-2.2.3"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
        (packages / f"{name}.dist-info" / "INSTALLER").write_text("pip\n")
    (packages / "half_installed-1.0.dist-info").mkdir()
    for words in ((str(ENVIRONMENT),), ("--all",)):
        code, body = answer(capsys, "audit", *words)
        (audited,) = body["result"]["audited"]
        assert (code, audited["subject"], audited["packages"]) == (1, str(ENVIRONMENT), 3)
        assert {one["package"] for one in audited["open"]} == {"horovod", "tensorflow-cpu"}
    assert cli.main(["show", str(ENVIRONMENT)]) == 0
    assert "(tensorflow-cpu 22, horovod 2)" in capsys.readouterr().out
