"""Write beside an environment what it is made of: `sbom.cdx.json`, a bill of materials in the format CycloneDX 1.6.

Other programs read it; this tool does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from provision.machine.files.disk import write
from provision.machine.probes.installed_packages import installed_versions
from provision.model.record import Record

SBOM = "sbom.cdx.json"


def write_bill(record: Record, records: Path) -> None:
    """Write the bill of materials to the folder of the records, unless the tool is a checkout that lacks the library."""
    with contextlib.suppress(ImportError):
        write(records / SBOM, bill_of_materials(record, installed_versions(Path(record.prefix))))


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
