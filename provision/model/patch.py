"""A patch of ours to Horovod's source, and how its file is read.

A patch is a unified diff with a head that says what breaks without it, for which TensorFlow, and how it was proved:

    Subject: one line
    Applies-To: tensorflow>=2.16
    Needs: gpu (only of a patch that builds for GPUs need, and no other)
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
    """One concern. `applies_to` is a PEP 440 specifier set over the TensorFlow version; `name` is the file's."""

    name: str
    subject: str
    applies_to: str
    gpu_only: bool
    breaks_without: str
    text: str

    @property
    def sha256(self) -> str:
        """Of what it changes: words in the head, such as one more proof, change no build."""
        _, separator, change = self.text.partition("\n--- ")
        return hashlib.sha256((separator + change).encode()).hexdigest()


def parse_patch(name: str, text: str) -> Patch:
    """The patch in a file.

    Raises:
        ConfigError: its head lacks a field, or its range is none; every fault is listed.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    head = text.split("\n--- ", 1)[0]
    fields = {key: " ".join(value.split()) for key, value in FIELD.findall(head)}
    faults = [f"no `{key}:` in its head" for key in REQUIRED_FIELDS if not fields.get(key)]
    framework, _, versions = re.sub(r"\s", "", fields.get("Applies-To", "")).partition("tensorflow")
    try:
        SpecifierSet(versions)
    except InvalidSpecifier as error:
        faults.append(f"Applies-To: {error}")
    needs = fields.get("Needs", "")
    if needs not in ("", "gpu"):
        faults.append(f"Needs: `{needs}` is not `gpu`, the only thing that a patch may need")
    if framework:
        faults.append(f"Applies-To: `{fields['Applies-To']}` does not begin with `tensorflow`")
    if faults:
        raise ConfigError(f"`{name}` is not a patch of ours", evidence=faults)
    return Patch(
        name=name,
        subject=fields["Subject"],
        applies_to=versions,
        gpu_only=needs == "gpu",
        breaks_without=fields["Breaks-Without"],
        text=text,
    )
