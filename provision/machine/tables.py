"""Read the tables in the folder `knowledge/`: known failures, and the measurements of `make matrix`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from provision.knowledge.compatibility import Cell, parse_cells
from provision.knowledge.failures import KnownFailure, parse_failures

KNOWLEDGE = Path(__file__).resolve().parents[1] / "knowledge"
CELLS_FILE = KNOWLEDGE / "compatibility.json"


@cache
def known_failures() -> tuple[KnownFailure, ...]:
    """All known failures, in the order in which they are tried."""
    return parse_failures((KNOWLEDGE / "failures.toml").read_text(encoding="utf-8"))


def read_cells() -> tuple[Cell, ...]:
    """All measurements of `make matrix`."""
    return parse_cells(CELLS_FILE.read_text(encoding="utf-8"))
