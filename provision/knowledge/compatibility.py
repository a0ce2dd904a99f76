"""Which combinations of TensorFlow, Keras and Python were built and proved. `make matrix` measures every one of them.

A cell is the result of one combination on one machine on one day. `compatibility.json` holds one cell per line;
docs/reference/compatibility.md shows the same cells as tables.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from provision.knowledge.versions import release
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of a numerical proof (`provision test --thorough`) on `ranks` ranks; `seconds` is wall time.

    `worst` is the largest difference of any check that compares numbers, including fp16 compression, which is lossy by
    design. `skipped` names the checks that this TensorFlow cannot run.
    """

    ranks: int
    passed: int
    skipped: tuple[str, ...]
    worst: float
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The result of one combination. `failed` is the step that failed and why; it is empty if all proofs passed.

    `patch_set` is the hash of the applied patches: if the patches change, the cell is measured again.
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
        """What identifies the cell: TensorFlow, Keras, Python."""
        return (self.tensorflow, self.keras, self.python)


def parse_cells(text: str) -> tuple[Cell, ...]:
    """The cells in the JSON text."""
    cells = []
    for row in json.loads(text):
        proofs = tuple(Proof(**{**proof, "skipped": tuple(proof["skipped"])}) for proof in row.pop("proofs"))
        cells.append(Cell(proofs=proofs, **row))
    return tuple(cells)


def dump_cells(cells: Sequence[Cell]) -> str:
    """The JSON text: sorted, one cell per line, so that a new measurement changes one line of a diff."""
    ordered = sorted(cells, key=lambda cell: (release(cell.tensorflow), cell.keras, release(cell.python)))
    return "[\n" + ",\n".join(json.dumps(dataclasses.asdict(cell)) for cell in ordered) + "\n]\n"


def find_cell(cells: Sequence[Cell], tensorflow: str, keras: str, python: str) -> Cell | None:
    """The measured result of this combination; None if it was not measured."""
    return next((cell for cell in cells if cell.key == (tensorflow, keras, python)), None)


def describe_cell(tensorflow: str, keras: str, python: str, cell: Cell | None) -> str:
    """One line about the measured result of this combination."""
    combination = f"TensorFlow {tensorflow}, Keras {keras}, Python {python}"
    if cell is None:
        return f"{combination} was never measured; run `make matrix` in a checkout to measure it"
    circumstances = f"({cell.date}, {cell.compiler}, {cell.mpi})"
    if cell.failed:
        return f"{combination} failed {circumstances}: {cell.failed}"
    proofs = ", ".join(f"{count(proof.passed, 'check')} on {count(proof.ranks, 'rank')}" for proof in cell.proofs)
    return f"{combination} passed {proofs} {circumstances}"


def keras_of(tensorflow: str, environ: Sequence[tuple[str, str]]) -> str:
    """The Keras behind `tf.keras`: Keras 3 from TensorFlow 2.16 on, unless `TF_USE_LEGACY_KERAS` selects tf-keras."""
    if release(tensorflow) < (2, 16):
        return "2"
    return "tf-keras" if dict(environ).get("TF_USE_LEGACY_KERAS") in ("1", "true", "True") else "3"
