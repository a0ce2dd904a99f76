"""Values that are kept as JSON: the fields of a dataclass are the keys, and `profile/reader.py` reads them back.

Another version of the tool may have written the file: unknown keys are passed over, and a key that is missing or `null` has the
default of its field. A wrong type is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from provision.errors import NewerError
from provision.profile.reader import Faults, Mark, Reader, fields_of, parts_of

T = TypeVar("T", bound="Stored")


def refuse_newer(data: Mapping[str, Any], schema: int) -> None:
    """Raise if `schema` of the data is not the one that this version reads.

    Raises:
        NewerError: it is a later one.
        ValueError: it is no schema.
    """
    found = data.get("schema")
    if isinstance(found, int) and not isinstance(found, bool) and found > schema:
        raise NewerError(f"a newer version of provision wrote it (`schema` is {found}, this version reads {schema})")
    if found != schema or isinstance(found, bool):
        raise ValueError(f"`schema` is {found!r}, not {schema}")


class Damage(Faults):
    """The first fault of a file that the tool wrote."""

    def __init__(self) -> None:
        super().__init__("", by_hand=False)

    def add(self, path: str, what: str, cause: str | None = None) -> None:
        """Raise `ValueError` with the key path."""
        raise ValueError(f"`{path}`: {what}")


class Stored:
    """A dataclass that is kept as JSON; with a `SCHEMA`, in a file of its own."""

    __slots__ = ()
    SCHEMA: ClassVar[int | None] = None

    def to_dict(self) -> dict[str, Any]:
        """This value as plain JSON values."""
        return {**({} if self.SCHEMA is None else {"schema": self.SCHEMA}), **_fields(self)}

    @classmethod
    def from_dict(cls: type[T], data: Mapping[str, Any], **given: Any) -> T:
        """Read back what `to_dict` returned; the given fields are kept elsewhere.

        Raises:
            NewerError: a newer version of the tool wrote it.
            ValueError: it is damaged.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"it is {data!r}, not a table")
        if cls.SCHEMA is not None:
            refuse_newer(data, cls.SCHEMA)
        return Reader(data, Damage()).into(cls, **given)


def plain(value: Any) -> Any:
    """A value as plain JSON values."""
    if hasattr(value, "parse"):
        return str(value)
    if isinstance(value, Stored):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _fields(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, key, annotation, _ in fields_of(cast("Any", type(value))):
        inner = plain(getattr(value, name))
        found |= inner if Mark.BESIDE in parts_of(annotation)[1] else {key: inner}
    return found
