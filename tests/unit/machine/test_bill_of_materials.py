"""What is written beside an environment: a bill of materials that CycloneDX's schema accepts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from parts.records import make_record
from provision.machine.root.bill_of_materials import SBOM, write_bill
from provision.model.record import Record


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The record of an environment whose prefix has three installed packages."""
    for name in ("horovod-0.28.1+provision.2", "numpy-1.26.4", "tensorflow_cpu-2.15.1"):
        folder = tmp_path / f"lib/python3.11/site-packages/{name}.dist-info"
        folder.mkdir(parents=True)
        (folder / "INSTALLER").write_text("uv\n")
    (tmp_path / ".provision").mkdir()
    identity = {
        "horovod": f"0.28.1 sha256:{'d' * 64}",
        "patches": "0001-x.patch:45f6a6f46383 0002-y.patch:138a74f6b3d7",
    }
    return make_record(prefix=str(tmp_path), identity=identity)


def test_the_bill_of_materials_is_valid_and_names_every_package(record: Record) -> None:
    reason = "cyclonedx-python-lib[json-validation] is not installed; the extra `test` of this package has it"
    pytest.importorskip("cyclonedx", reason=reason)
    pytest.importorskip("jsonschema", reason=reason)
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    records = Path(record.prefix) / ".provision"
    write_bill(record, records)
    text = (records / SBOM).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.replace('"bomFormat"', '"bomForm"')) is not None
    bom = json.loads(text)
    by_name = {one["name"]: one for one in bom["components"]}
    assert {name: one["version"] for name, one in by_name.items()} == {
        "horovod": "0.28.1+provision.2",
        "numpy": "1.26.4",
        "tensorflow-cpu": "2.15.1",
    }
    assert by_name["numpy"]["purl"] == "pkg:pypi/numpy@1.26.4"
    # Ours is not the release of the index: it descends from it.
    assert "purl" not in by_name["horovod"]
    assert by_name["horovod"]["pedigree"]["ancestors"][0]["purl"] == "pkg:pypi/horovod@0.28.1"
    assert "0002-y.patch" in by_name["horovod"]["pedigree"]["notes"]
    assert bom["metadata"]["component"]["version"] == "0123456789"


def test_without_the_library_there_is_none(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    monkeypatch.setitem(sys.modules, "cyclonedx.model", None)
    records = Path(record.prefix) / ".provision"
    write_bill(record, records)
    assert not (records / SBOM).exists()
