"""Reading JSON that lies on disk: a value of the right type, or a ValueError that names the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class NewerError(ValueError):
    """A newer version of the tool wrote this file: it is not damaged, but must not be changed."""


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


def text(data: Mapping[str, Any], key: str) -> str:
    """The string under `key`. Raises `ValueError` for anything else."""
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueError(f"`{key}` is {value!r}, not a string")
    return value


def optional_text(data: Mapping[str, Any], key: str) -> str | None:
    """The string under `key`, or None. Raises `ValueError` for anything else."""
    return None if data.get(key) is None else text(data, key)


LARGEST = 1e15
"""Seconds, ranks, images per second: nothing that we store comes near it, and it is a number in every language."""


def number(data: Mapping[str, Any], key: str) -> float:
    """The number under `key`, neither NaN nor infinite. Raises `ValueError` for anything else."""
    value = data.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not -LARGEST <= value <= LARGEST:
        raise ValueError(f"`{key}` is {value!r}, not a number")
    return value


def optional_number(data: Mapping[str, Any], key: str) -> float | None:
    """The number under `key`, or None. Raises `ValueError` for anything else."""
    return None if data.get(key) is None else number(data, key)


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`. Raises `ValueError` for anything else."""
    value = data.get(key)
    if not isinstance(value, Mapping):
        raise ValueError(f"`{key}` is {value!r}, not an object")
    return value


def sequence(data: Mapping[str, Any], key: str) -> Sequence[Any]:
    """The list under `key`. Raises `ValueError` for anything else."""
    value = data.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"`{key}` is {value!r}, not a list")
    return value


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The list of strings under `key`. Raises `ValueError` for anything else."""
    values = sequence(data, key)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"`{key}` is {list(values)!r}, not a list of strings")
    return tuple(values)


def pairs(data: Mapping[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    """The list of pairs of strings under `key`. Raises `ValueError` for anything else."""
    values = sequence(data, key)
    for value in values:
        if not isinstance(value, list | tuple) or len(value) != 2 or not all(isinstance(part, str) for part in value):
            raise ValueError(f"`{key}` has {value!r}, not a pair of strings")
    return tuple((first, second) for first, second in values)
