"""Write beside an environment what it is made of (`sbom.cdx.json`) and how it was made (`provenance.json`).

Formats: CycloneDX 1.6, and an in-toto statement (version 1) with the predicate SLSA provenance (version 1). Other programs read
both; this tool reads neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from provision.machine.files.disk import sha256_of, write
from provision.machine.probes.installed_packages import installed_versions
from provision.model.lock import normalized, pins_in
from provision.model.manifest import FILES
from provision.model.record import Record

SBOM, PROVENANCE = "sbom.cdx.json", "provenance.json"
# What other programs recognise our builds by; there is no page behind it.
BUILD_TYPE = "urn:provision:environment:1"


def write_bill(record: Record, digest: str, records: Path, wheel: Path | None) -> str | None:
    """Write both files to the folder of the records.

    `digest`: the sha256 of `record.json`, which is written later. `wheel`: the compiled Horovod. Returns why there is no bill of
    materials, or None if it was written: an installation of the tool that was not updated lacks the library.
    """
    packages, missing = installed_versions(Path(record.prefix)), None
    try:
        write(records / SBOM, bill_of_materials(record, packages))
    except ImportError as error:
        missing = f"no bill of materials: {error}; `make build` of the checkout, or pip, installs it"
    subjects = {"record.json": digest} | ({} if missing else {SBOM: sha256_of(records / SBOM)})
    write(records / PROVENANCE, json.dumps(provenance(record, packages, records, subjects, wheel), indent=1) + "\n")
    return missing


def bill_of_materials(record: Record, packages: Sequence[tuple[str, str]]) -> str:
    """The bill of materials as text: the environment, and one component for each installed package.

    Raises:
        ImportError: cyclonedx-python-lib is not installed.
    """
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType, Pedigree
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    # The library's own `json` output needs no schema; tests validate it against CycloneDX's.
    environment = Component(
        type=ComponentType.PLATFORM,
        name=record.environment.rpartition("-")[0],
        version=record.environment.rpartition("-")[2],
        bom_ref="environment",
        properties=[Property(name=f"provision:{key}", value=text) for key, text in record.identity.items() if text],
    )
    components = []
    for name, version in packages:
        released, _, local = version.partition("+")
        origin = PackageURL(type="pypi", name=name, version=released)
        pedigree = None
        if local:  # compiled here from a patched source
            ancestor = Component(type=ComponentType.LIBRARY, name=name, version=released, purl=origin)
            pedigree = Pedigree(ancestors=[ancestor], notes=f"patches: {record.identity.get('patches', 'unknown')}")
        components.append(
            Component(
                type=ComponentType.LIBRARY,
                name=name,
                version=version,
                purl=origin if not local else None,
                bom_ref=f"{name}=={version}",
                pedigree=pedigree,
            )
        )
    bom = Bom(components=components)
    bom.metadata.component = environment
    bom.register_dependency(environment, components)
    return str(JsonV1Dot6(bom).output_as_string(indent=1)) + "\n"


def provenance(
    record: Record,
    packages: Sequence[tuple[str, str]],
    records: Path,
    subjects: Mapping[str, str],
    wheel: Path | None,
) -> dict[str, Any]:
    """The statement: the files it speaks for, what decided the build, what went into it, and who built it."""
    materials = [{"uri": f"file:{path.name}", "digest": {"sha256": sha256_of(path)}} for path in _locks(records)]
    name, _, digest = record.identity.get("horovod", "").partition(" sha256:")
    if digest:
        materials.append({"uri": f"pkg:pypi/horovod@{name}", "digest": {"sha256": digest}})
    for patch in record.identity.get("patches", "").split():
        file, _, short = patch.rpartition(":")
        materials.append({"uri": f"file:{file}", "annotations": {"sha256 begins with": short}})
    if wheel is not None:
        materials.append({"uri": f"file:{wheel.name}", "digest": {"sha256": sha256_of(wheel)}})
    hashes = _hashes(records)
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"site": record.site, "stack": record.stack, "environment": record.environment},
                "internalParameters": {"identity": dict(record.identity), "modules": list(record.modules)},
                "resolvedDependencies": [
                    *materials,
                    *(
                        {"uri": f"pkg:pypi/{name}@{version}", **hashes.get((name, version), {})}
                        for name, version in packages
                    ),
                ],
            },
            "runDetails": {
                "builder": {"id": f"urn:provision:host:{record.host}", "version": {"provision": record.provision}},
                "metadata": {
                    "invocationId": record.job or hashlib.sha256(record.built.encode()).hexdigest()[:12],
                    "finishedOn": record.built,
                },
            },
        },
    }


def _locks(records: Path) -> list[Path]:
    """The locks that were installed. The manifest of a build that was killed while it published is no material of the next."""
    return [path for path in sorted(records.glob("*.txt")) if path.name != FILES]


def _hashes(records: Path) -> Mapping[tuple[str, str], dict[str, Any]]:
    """For each locked package, the hashes of which the installer required one: a lock has those of all its files."""
    found = {}
    for path in _locks(records):
        for pin in pins_in(path.read_text(encoding="utf-8")):
            allowed = [value.removeprefix("sha256:") for value in pin.hashes]
            found[normalized(pin.name), pin.version] = (
                {"digest": {"sha256": allowed[0]}}
                if len(allowed) == 1
                else {"annotations": {"sha256 is one of": allowed}}
            )
    return found
