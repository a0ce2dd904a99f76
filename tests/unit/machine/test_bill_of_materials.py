"""What is written beside an environment: a bill of materials that CycloneDX's schema accepts, and a provenance record."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from parts.records import make_record
from provision.machine.root.bill_of_materials import PROVENANCE, SBOM, write_bill
from provision.model.record import Record

LOCK = """\
numpy==1.26.4 \\
    --hash=sha256:{} \\
    --hash=sha256:{}
tensorflow-cpu==2.15.1 \\
    --hash=sha256:{}
""".format("a" * 64, "b" * 64, "c" * 64)
DIGEST = "e" * 64
"""That of `record.json`, which is written later."""


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The record of an environment whose prefix has three installed packages."""
    for name in ("horovod-0.28.1+provision.2", "numpy-1.26.4", "tensorflow_cpu-2.15.1"):
        folder = tmp_path / f"lib/python3.11/site-packages/{name}.dist-info"
        folder.mkdir(parents=True)
        (folder / "INSTALLER").write_text("uv\n")
    records = tmp_path / ".provision"
    records.mkdir()
    (records / "tensorflow-2.15.1-py311.txt").write_text(LOCK)
    (records / "manifest.txt").write_text("of a build that was killed while it published")
    identity = {
        "horovod": f"0.28.1 sha256:{'d' * 64}",
        "patches": "0001-x.patch:45f6a6f46383 0002-y.patch:138a74f6b3d7",
    }
    return make_record(prefix=str(tmp_path), identity=identity)


def written(record: Record, wheel: Path | None = None) -> tuple[str | None, dict[str, Any]]:
    """What the writing returned, and the provenance record."""
    records = Path(record.prefix) / ".provision"
    missing = write_bill(record, DIGEST, records, wheel)
    return missing, json.loads((records / PROVENANCE).read_text())


def test_the_bill_of_materials_is_valid_and_names_every_package(record: Record) -> None:
    reason = "cyclonedx-python-lib[json-validation] is not installed; the extra `test` of this package has it"
    pytest.importorskip("cyclonedx", reason=reason)
    pytest.importorskip("jsonschema", reason=reason)
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    missing, _ = written(record)
    text = (Path(record.prefix) / ".provision" / SBOM).read_text()
    assert missing is None
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


def test_the_provenance_has_the_digest_of_every_file_that_it_speaks_for(record: Record, tmp_path: Path) -> None:
    wheel = tmp_path / "horovod-0.28.1-cp311.whl"
    wheel.write_bytes(b"wheel")
    _, statement = written(record, wheel)
    records = Path(record.prefix) / ".provision"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert subjects.pop("record.json") == DIGEST
    assert subjects == {SBOM: hashlib.sha256((records / SBOM).read_bytes()).hexdigest()}
    materials = {one["uri"]: one for one in statement["predicate"]["buildDefinition"]["resolvedDependencies"]}
    lock = hashlib.sha256(LOCK.encode()).hexdigest()
    assert materials["file:tensorflow-2.15.1-py311.txt"]["digest"]["sha256"] == lock
    assert "file:manifest.txt" not in materials
    assert materials["pkg:pypi/horovod@0.28.1"]["digest"]["sha256"] == "d" * 64
    assert materials["pkg:pypi/tensorflow-cpu@2.15.1"]["digest"]["sha256"] == "c" * 64
    assert materials["pkg:pypi/numpy@1.26.4"]["annotations"]["sha256 is one of"] == ["a" * 64, "b" * 64]
    assert materials[f"file:{wheel.name}"]["digest"]["sha256"] == hashlib.sha256(b"wheel").hexdigest()
    assert statement["predicate"]["runDetails"]["metadata"]["finishedOn"] == record.built


def test_without_the_library_the_reason_is_returned_and_the_provenance_written(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    monkeypatch.setitem(sys.modules, "cyclonedx.model", None)
    missing, statement = written(record)
    assert missing is not None
    assert "cyclonedx" in missing
    assert not (Path(record.prefix) / ".provision" / SBOM).exists()
    assert [subject["name"] for subject in statement["subject"]] == ["record.json"]
