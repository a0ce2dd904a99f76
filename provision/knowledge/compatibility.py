"""What was built and proved, cell by cell: a TensorFlow with a Keras on a Python. Measured by `make matrix`, never claimed.

A cell is what happened on one machine on one day. `compatibility.json` holds them, one a line; docs/reference/compatibility.md
is the same for people.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from provision.knowledge.versions import release


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The numerical proof (`provision test --thorough`) on so many ranks; `seconds` of wall time.

    `worst` is the largest difference of any check that compares numbers, fp16 compression (lossy by intent) included;
    `skipped` names what this TensorFlow lacks.
    """

    ranks: int
    passed: int
    skipped: tuple[str, ...]
    worst: float
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination. `failed` says at which step and why, and is empty where all proofs passed.

    `patch_set` is the hash of the patches that were applied: a cell of another set is measured again.
    """

    tensorflow: str
    keras: str
    python: str
    horovod: str
    patch_set: str
    mpi: str
    compiler: str
    date: str
    build_seconds: int
    proofs: tuple[Proof, ...]
    failed: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it this cell."""
        return (self.tensorflow, self.keras, self.python)


def parse_cells(text: str) -> tuple[Cell, ...]:
    """The cells in the JSON text."""
    cells = []
    for row in json.loads(text):
        proofs = tuple(Proof(**{**proof, "skipped": tuple(proof["skipped"])}) for proof in row.pop("proofs"))
        cells.append(Cell(proofs=proofs, **row))
    return tuple(cells)


def dump_cells(cells: Sequence[Cell]) -> str:
    """The JSON text: sorted, a cell a line, so that a new measurement is one line of a diff."""
    ordered = sorted(cells, key=lambda cell: (release(cell.tensorflow), cell.keras, release(cell.python)))
    return "[\n" + ",\n".join(json.dumps(dataclasses.asdict(cell)) for cell in ordered) + "\n]\n"


def find_cell(cells: Sequence[Cell], tensorflow: str, keras: str, python: str) -> Cell | None:
    """What was measured of this combination, if it was."""
    return next((cell for cell in cells if cell.key == (tensorflow, keras, python)), None)


def describe_cell(tensorflow: str, keras: str, python: str, cell: Cell | None) -> str:
    """One line on what was measured of this combination."""
    what = f"TensorFlow {tensorflow}, Keras {keras}, Python {python}"
    if cell is None:
        return f"{what} was never measured together; `make matrix` in a checkout does it"
    where = f"({cell.date}, {cell.compiler}, {cell.mpi})"
    if cell.failed:
        return f"{what} failed {where}: {cell.failed}"
    proofs = ", ".join(f"{proof.passed} checks on {proof.ranks} ranks" for proof in cell.proofs)
    return f"{what} passed {proofs} {where}"


def keras_of(tensorflow: str, environ: Sequence[tuple[str, str]]) -> str:
    """Which Keras `tf.keras` is: from TensorFlow 2.16 it is Keras 3, unless `TF_USE_LEGACY_KERAS` asks for tf-keras."""
    if release(tensorflow) < (2, 16):
        return "2"
    return "tf-keras" if dict(environ).get("TF_USE_LEGACY_KERAS") in ("1", "true", "True") else "3"
