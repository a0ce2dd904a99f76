"""A patch of ours to Horovod's source, and the reader of its file.

A patch is a unified diff with a head that states what fails without it, for which TensorFlow, and how it was proved:

    Subject: one line
    Applies-To: tensorflow>=2.16
    Needs: gpu (only if just the builds for GPUs need the patch)
    Breaks-Without: the error text, or the silent fault
    Proved-By: how
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from provision.errors import ConfigError

REQUIRED_FIELDS = ("Subject", "Applies-To", "Breaks-Without", "Proved-By")
FIELD = re.compile(r"^([A-Z][A-Za-z-]+): *(.*(?:\n[ \t]+.*)*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch with one purpose. `applies_to` is a PEP 440 specifier set for TensorFlow's version, `name` the file's name."""

    name: str
    subject: str
    applies_to: str
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
    framework, _, versions = re.sub(r"\s", "", fields.get("Applies-To", "")).partition("tensorflow")
    try:
        SpecifierSet(versions)
    except InvalidSpecifier as error:
        faults.append(f"Applies-To: {error}")
    needs = fields.get("Needs", "")
    if needs not in ("", "gpu"):
        faults.append(f"Needs: `{needs}` is not valid; the only valid value is `gpu`")
    if framework:
        faults.append(f"Applies-To: `{fields['Applies-To']}` does not begin with `tensorflow`")
    if faults:
        raise ConfigError(f"`{name}` is not a patch of ours", evidence=faults)
    return Patch(
        name=name,
        subject=fields["Subject"],
        applies_to=versions,
        gpu_only=needs == "gpu",
        text=text,
    )
