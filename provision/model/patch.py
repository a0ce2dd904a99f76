"""The patches of ours to Horovod's source: the reader of their files, and the choice of those that a build needs. Pure.

A patch is a unified diff with a head that states what fails without it, for which frameworks, and how it was proved:

    Subject: one line
    Applies-To: tensorflow>=2.16; pytorch>=2.1 (one framework, or several)
    Needs: gpu (only if just the builds for GPUs need the patch)
    Breaks-Without: the error text, or the silent fault
    Proved-By: how
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from provision.errors import ConfigError
from provision.knowledge.frameworks import FRAMEWORKS

REQUIRED_FIELDS = ("Subject", "Applies-To", "Breaks-Without", "Proved-By")
FIELD = re.compile(r"^([A-Z][A-Za-z-]+): *(.*(?:\n[ \t]+.*)*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch with one purpose. `applies_to` are PEP 440 specifier sets by the names of frameworks, `name` the file's name."""

    name: str
    subject: str
    applies_to: Mapping[str, str]
    gpu_only: bool
    text: str

    @property
    def sha256(self) -> str:
        """The digest of the change alone: an edit of the head must not cause a new build."""
        _, separator, change = self.text.partition("\n--- ")
        return hashlib.sha256((separator + change).encode()).hexdigest()


def parse_patch(name: str, text: str) -> Patch:
    """Read the patch in a file.

    Raises:
        ConfigError: the head lacks a field or has an invalid value; the error lists every fault.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    head = text.split("\n--- ", 1)[0]
    fields = {key: " ".join(value.split()) for key, value in FIELD.findall(head)}
    faults = [f"the head has no `{key}:`" for key in REQUIRED_FIELDS if not fields.get(key)]
    applies_to = {}
    for part in re.sub(r"\s", "", fields.get("Applies-To", "")).split(";"):
        framework = next((name for name in FRAMEWORKS if part.startswith(name)), None)
        if framework is None:
            names = " or ".join(f"`{name}`" for name in FRAMEWORKS)
            faults += [f"Applies-To: `{part}` does not begin with {names}"] if part else []
            continue
        applies_to[framework] = part.removeprefix(framework)
        try:
            SpecifierSet(applies_to[framework])
        except InvalidSpecifier as error:
            faults.append(f"Applies-To: {error}")
    needs = fields.get("Needs", "")
    if needs not in ("", "gpu"):
        faults.append(f"Needs: `{needs}` is not valid; the only valid value is `gpu`")
    if faults:
        raise ConfigError(f"`{name}` is not a patch of ours", evidence=faults)
    return Patch(
        name=name,
        subject=fields["Subject"],
        applies_to=applies_to,
        gpu_only=needs == "gpu",
        text=text,
    )


def select_patches(patches: Sequence[Patch], versions: Mapping[str, str], *, gpu: bool = False) -> tuple[Patch, ...]:
    """The patches that a build against these versions of frameworks needs, in the order in which they apply.

    `gpu`: the build is for GPUs. A CPU build leaves out the patches for GPUs, so that a change of those does not change
    any CPU plan.
    """
    from packaging.specifiers import SpecifierSet

    return tuple(
        patch
        for patch in sorted(patches, key=lambda patch: patch.name)
        if (gpu or not patch.gpu_only)
        and any(
            name in patch.applies_to and SpecifierSet(patch.applies_to[name]).contains(version, prereleases=True)
            for name, version in versions.items()
        )
    )
