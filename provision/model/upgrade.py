"""An upgrade of a stack: on each arch what users loaded before and what they load after it, and how far it came. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from provision.model import stored
from provision.model.layout import EnvironmentId

SCHEMA = 1
UpgradeState = Literal["building", "publishing", "published", "undoing", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchUpgrade:
    """The upgrade of one arch, named as in the profile; `before` is None if users loaded nothing."""

    arch: str
    before: EnvironmentId | None
    after: EnvironmentId

    def to_dict(self) -> dict[str, Any]:
        """This part as plain JSON values."""
        return {"arch": self.arch, "before": str(self.before) if self.before else None, "after": str(self.after)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """The upgrade of one stack on its archs.

    `locks` are the paths of its locks in the configuration. Their texts, new and old, are beside the file of the upgrade.
    """

    stack: str
    state: UpgradeState
    archs: tuple[ArchUpgrade, ...]
    locks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """This upgrade as plain JSON values."""
        return {
            "schema": SCHEMA,
            "stack": self.stack,
            "state": self.state,
            "archs": [arch.to_dict() for arch in self.archs],
            "locks": list(self.locks),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Upgrade:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        stored.refuse_newer(data, SCHEMA)
        state = stored.text(data, "state")
        if state not in get_args(UpgradeState):
            raise ValueError(f"`state` is {state!r}")
        archs = []
        for one in stored.sequence(data, "archs"):
            before = stored.optional_text(one, "before")
            archs.append(
                ArchUpgrade(
                    arch=stored.text(one, "arch"),
                    before=EnvironmentId.parse(before) if before else None,
                    after=EnvironmentId.parse(stored.text(one, "after")),
                )
            )
        return cls(
            stack=stored.text(data, "stack"),
            state=cast("UpgradeState", state),
            archs=tuple(archs),
            locks=stored.texts(data, "locks"),
        )
