"""An upgrade of a stack: on each arch what users loaded before and what they load after it, and how far it came. Pure."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from provision.model.layout import EnvironmentId
from provision.model.stored import Stored

UpgradeState = Literal["building", "publishing", "published", "undoing", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchUpgrade(Stored):
    """The upgrade of one arch, named as in the profile; `before` is None if users loaded nothing."""

    arch: str
    before: EnvironmentId | None
    after: EnvironmentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(Stored):
    """The upgrade of one stack on its archs.

    `locks` are the paths of its locks in the configuration. Their texts, new and old, are beside the file of the upgrade.
    """

    SCHEMA: ClassVar[int] = 1
    stack: str
    state: UpgradeState
    archs: tuple[ArchUpgrade, ...]
    locks: tuple[str, ...]
