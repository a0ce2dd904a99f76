"""A receipt: that one step of an environment is done, on which host, in how many seconds, and what it found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.model.check import Check
from provision.model.stored import Damage, Stored, refuse_newer
from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Stored):
    """The details of the inspection, of which the record is made."""

    checks: tuple[Check, ...] = ()
    versions: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Stored):
    """One step that is done. `details` are those of its operations: `wheel`, `checks`, `versions`, `summary`."""

    step: str
    seconds: float
    host: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """This receipt as plain JSON values; the details stand beside the other keys."""
        return {"step": self.step, "seconds": self.seconds, "host": self.host, **self.details}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **given: Any) -> "Receipt":
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        if "schema" in data:  # none has one until receipts change
            refuse_newer(data, 1)
        Findings.from_dict(data)
        details = {key: value for key, value in data.items() if key not in ("step", "seconds", "host")}
        return Reader(data, Damage()).into(cls, details=details)
