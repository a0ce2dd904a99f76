"""What goes with what (frameworks, CUDA, MPI, CPU targets): facts with their sources, and what was measured.

`combinations.toml` holds the rows. A fact of which we are sure may refuse a build; of another one a user is warned. What was
really built and proved is in `compatibility.json`, and is better evidence than every row: one cell per line, the result of one
combination of TensorFlow, Keras and Python on one machine on one day. `make matrix` measures every one of them;
docs/reference/compatibility.md shows them as tables.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.knowledge.cuda import describe_capabilities
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.versions import release
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkRow:
    """The wheel of one minor version of a framework. `checked`: when `python`, `glibc` and the requirements were read from it.

    `unsure` names the keys that were not read from the wheel or from the framework's own table; an empty value does not apply.
    """

    framework: str

    version: str
    release: str
    python: tuple[str, ...]
    machines: tuple[str, ...]
    glibc: str
    numpy: str
    protobuf: str = ""
    keras: str = ""
    cudnn: str
    nccl: str
    compiler: str = ""
    cxx: str = ""
    abi: int
    source: str
    checked: str
    unsure: tuple[str, ...]

    @property
    def cuda(self) -> str | None:
        """The CUDA version that the wheel is built with."""
        return FRAMEWORKS[self.framework].cuda_of(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorovodRow:
    """What Horovod's last release does with some versions of TensorFlow: `first` up to and including `last`."""

    first: str
    last: str
    builds: str
    source: str
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaRow:
    """What one major version of CUDA needs and knows. `driver`: the oldest driver with which its programs start."""

    version: str
    driver: str
    capabilities: str
    source: str
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiRow:
    """One family of MPI libraries whose members can replace each other, and a symbol of all of them."""

    name: str
    symbol: str
    source: str
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """A compiler that no longer builds for a CPU target, from version `since` on."""

    target: str
    compiler: str
    since: str
    source: str
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations:
    """All rows, in the order of the file."""

    tensorflow: tuple[FrameworkRow, ...]
    pytorch: tuple[FrameworkRow, ...]
    horovod: tuple[HorovodRow, ...]
    cuda: tuple[CudaRow, ...]
    mpi: tuple[MpiRow, ...]
    target: tuple[TargetRow, ...]

    @property
    def frameworks(self) -> tuple[FrameworkRow, ...]:
        """The rows of all frameworks."""
        return (*self.tensorflow, *self.pytorch)

    def of_framework(self, name: str, version: str) -> FrameworkRow | None:
        """The row of this version (`2.15.1`) of a framework; None if it is not known."""
        minor = ".".join(version.split(".")[:2])
        return next((row for row in self.frameworks if (row.framework, row.version) == (name, minor)), None)

    def of_horovod(self, tensorflow: str) -> HorovodRow | None:
        """The row about Horovod on this version of TensorFlow; None if nothing is known."""
        minor = release(tensorflow)[:2]
        return next((row for row in self.horovod if release(row.first) <= minor <= release(row.last)), None)

    def of_cuda(self, version: str) -> CudaRow | None:
        """The row of the major version of this CUDA."""
        return next((row for row in self.cuda if row.version == version.split(".")[0]), None)

    def dropped(self, target: str, compiler: str, version: str) -> TargetRow | None:
        """The row if this version of the compiler no longer builds for the target."""
        rows = (row for row in self.target if (row.target, row.compiler) == (target, compiler))
        return next((row for row in rows if release(version) >= release(row.since)), None)

    def mpi_family(self, symbols: Sequence[str] | frozenset[str]) -> MpiRow | None:
        """The family to which a library belongs that defines or uses these symbols."""
        return next((row for row in self.mpi if row.symbol and row.symbol in symbols), None)


def read_combinations(data: Mapping[str, Any]) -> Combinations:
    """The rows of the parsed file; a missing or unknown key is an error of ours (TypeError)."""

    def rows(name: str) -> list[dict[str, Any]]:
        return [{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()} for row in data[name]]

    return Combinations(
        **{name: tuple(FrameworkRow(framework=name, **row) for row in rows(name)) for name in FRAMEWORKS},
        horovod=tuple(HorovodRow(**row) for row in rows("horovod")),
        cuda=tuple(CudaRow(**row, capabilities=describe_capabilities(row["version"])) for row in rows("cuda")),
        mpi=tuple(MpiRow(**row) for row in rows("mpi")),
        target=tuple(TargetRow(**row) for row in rows("target")),
    )


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
