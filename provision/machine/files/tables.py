"""Read the tables in the folder `knowledge/`: measurements of `make matrix`, advisories, combinations."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from provision.errors import ConfigError
from provision.knowledge.advisories import Advisories, open_advisories, parse_advisories, parse_osv, summary
from provision.knowledge.combinations import Cell, Combinations, parse_cells
from provision.knowledge.combinations import read_combinations as read_rows
from provision.knowledge.keras_files import KerasFile, parse_keras_files
from provision.machine.files.disk import toml_table

KNOWLEDGE = Path(__file__).resolve().parents[2] / "knowledge"
CELLS_FILE = KNOWLEDGE / "compatibility.json"
ADVISORIES_FILE = KNOWLEDGE / "advisories.json"
COMBINATIONS_FILE = KNOWLEDGE / "combinations.toml"


def read_cells() -> tuple[Cell, ...]:
    """All measurements of `make matrix`."""
    return parse_cells(CELLS_FILE.read_text(encoding="utf-8"))


@cache
def read_keras_files() -> Mapping[str, tuple[KerasFile, ...]]:
    """The files that Keras downloads, by the name of the data set or network."""
    return parse_keras_files((KNOWLEDGE / "keras_files.json").read_text(encoding="utf-8"))


@cache
def read_advisories() -> Advisories:
    """The advisories that come with the tool."""
    return parse_advisories(ADVISORIES_FILE.read_text(encoding="utf-8"))


def advisories_line(packages: Iterable[tuple[str, str]]) -> str:
    """How many advisories are open in these packages, and what users must not do."""
    advisories = read_advisories()
    return summary(open_advisories(packages, advisories), advisories)


@cache
def read_combinations() -> Combinations:
    """What goes with what."""
    return read_rows(toml_table(COMBINATIONS_FILE.read_text(encoding="utf-8")))


def given_advisories(name: str, packages: Collection[str]) -> Advisories:
    """The advisories in a file that the user named: one like ours, or a zip file of OSV's records (`all.zip` of PyPI).

    `packages`: of a zip file, only records about these are read.

    Raises:
        ConfigError: the file cannot be read, or is neither.
    """
    path = Path(name)
    try:
        if path.suffix == ".zip":
            records = list(osv_records(path))
            if not records:
                raise ValueError("it holds no record of OSV (`*.json`)")
            newest = max(str(record.get("modified", "")) for record in records)[:10]
            return Advisories(sources=((path.name, newest),), rows=parse_osv(records, packages))
        return parse_advisories(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"`{name}` holds no advisories that can be read",
            evidence=[str(error)],
            hint="give a file like `advisories.json` of this tool, or the zip file of all PyPI records that osv.dev offers",
            kind="invalid-file",
        ) from error


def osv_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records in a zip file, each a file of JSON.

    Raises:
        ValueError: it is not a zip file, or a file in it is not JSON.
    """
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    record = json.loads(archive.read(name))
                    if isinstance(record, dict):
                        yield record
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, RecursionError) as error:
        raise ValueError(str(error)) from error
