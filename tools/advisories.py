"""Write provision/knowledge/advisories.json again from newer records of OSV.

    .venv/bin/python tools/advisories.py FOLDER-OR-ZIP --name "OSV, all records of PyPI" --date 2026-11-22

FOLDER-OR-ZIP: files of OSV's format (osv.dev exports all records of PyPI as one zip file; a checkout of PyPA's advisory
database has YAML, for which PyYAML must be installed). Only advisories of packages that the locks pin are kept. Advisories
that the file has and the records lack stay, with their notes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provision.knowledge.advisories import (
    Advisories,
    Advisory,
    dump_advisories,
    parse_advisories,
    parse_osv,
)
from provision.machine.files.tables import ADVISORIES_FILE, osv_records
from provision.model.lock import parse_lock

ROOT = Path(__file__).resolve().parents[1]


def pinned() -> set[str]:
    """Every package that a lock of this checkout pins."""
    locks = (path for path in sorted((ROOT / "requirements").glob("*-py*.txt")))
    return {pin.name for path in locks for pin in parse_lock(path.read_text(encoding="utf-8"), str(path)).pins}


def records(place: Path) -> Iterator[dict[str, Any]]:
    """The records in a folder or zip file."""
    if place.suffix == ".zip":
        yield from osv_records(place)
        return
    for path in sorted(place.rglob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(place.rglob("*.yaml")):
        import yaml

        yield yaml.safe_load(path.read_text(encoding="utf-8"))


def merge(old: Advisories, rows: tuple[Advisory, ...], source: tuple[str, str]) -> Advisories:
    """The new rows, with the notes of the old ones, and the old rows that the new ones lack."""
    names = {(row.package, name) for row in rows for name in row.names}
    notes = {(row.package, name): row.note for row in old.rows if row.note for name in row.names}
    noted = [
        dataclasses.replace(row, note=next((notes[row.package, n] for n in row.names if (row.package, n) in notes), ""))
        for row in rows
    ]
    kept = [row for row in old.rows if not any((row.package, name) in names for name in row.names)]
    sources = (*(one for one in old.sources if one[0] != source[0]), source)
    return Advisories(sources=sources, rows=(*noted, *kept))


def main() -> int:
    """Write the file; print how many advisories it holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("place", type=Path, metavar="FOLDER-OR-ZIP")
    parser.add_argument("--name", required=True, help="name of the database, for people")
    parser.add_argument("--date", required=True, help="date of its newest record")
    args = parser.parse_args()
    old = Advisories(sources=(), rows=())
    if ADVISORIES_FILE.is_file():
        old = parse_advisories(ADVISORIES_FILE.read_text(encoding="utf-8"))
    new = merge(old, parse_osv(records(args.place), pinned()), (args.name, args.date))
    ADVISORIES_FILE.write_text(dump_advisories(new), encoding="utf-8")
    print(f"{len(new.rows)} advisories ({new.taken})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
