"""A receipt: that one step of an environment is done, on which host, in how many seconds, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.model import stored
from provision.model.verdict import Check

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One step that is done. `details` are those of its operations: `wheel`, `checks`, `versions`, `summary`."""

    step: str
    seconds: float
    host: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return this receipt as plain JSON values; the details stand beside the other keys."""
        return {"step": self.step, "seconds": self.seconds, "host": self.host, **self.details}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Receipt:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        if "schema" in data:  # none has one until receipts change
            stored.refuse_newer(data, SCHEMA)
        details = {key: value for key, value in data.items() if key not in ("step", "seconds", "host")}
        # The record is made of these.
        for check in stored.sequence(details, "checks") if details.get("checks") is not None else ():
            Check.from_dict(check)
        if details.get("versions") is not None:
            stored.mapping(details, "versions")
        return cls(
            step=stored.text(data, "step"),
            seconds=stored.number(data, "seconds"),
            host=stored.text(data, "host"),
            details=details,
        )
