"""Facts: what was observed on a machine. Probes fill them; the planner only reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provision.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processor. `target` is archspec's best match, `features` what the CPU itself says it has."""

    target: str
    features: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python. `executable` is the real file, no shim and no virtual environment.

    `own_venv`: virtualenv has no pip for it any more, so its own `venv` makes the environments, with the pip of its time.
    """

    executable: str
    version: str
    tag: str
    own_venv: bool = False

    @property
    def minor(self) -> str:
        """`3.11` of `3.11.7`."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerFacts:
    """A C++ compiler: its family (`gcc`, `clang`), version and path."""

    family: str
    version: str
    cxx: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiFacts:
    """An MPI: its family and version, the compiler wrapper, what that wrapper adds, and the libmpi files it links."""

    family: str
    version: str
    cxx: str
    show: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """CUDA and NCCL: their folders and versions, the NCCL library to link, and the toolkit's `cuobjdump` if it has one.

    What is of NCCL is empty where nothing links it: TensorFlow brings its own.
    """

    cuda_home: str
    cuda_version: str
    cuobjdump: str | None = None
    nccl_home: str = ""
    nccl_version: str = ""
    nccl_library: str = ""

    @property
    def nccl_shared(self) -> bool:
        """Whether the library is loaded at run time, and not linked in."""
        return not self.nccl_library.endswith(".a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The file system of the root: whether we may write there, free bytes and inodes (None: the file system has no count)."""

    path: str
    writable: bool
    free_bytes: int
    free_inodes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is here. A part is None where it was not found, and a problem then says why."""

    host: str
    job: str | None
    cpu: Cpu
    python: Interpreter | None
    compiler: CompilerFacts | None
    mpi: MpiFacts | None
    modules: tuple[str, ...]
    tool_python: str
    uv: str | None
    cores: int
    place: Place
    gpu: GpuFacts | None = None
    """None on CPU archs too."""
    problems: tuple[Problem, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The environment that building happens in: cleaned, with the arch's modules loaded. Not part of any comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """What earlier runs left behind: receipts by environment, the compiled wheels, and where module names point."""

    receipts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The steps that each unfinished or finished environment has a receipt for."""
    wheels: frozenset[str] = frozenset()
    fetched: frozenset[str] = frozenset()
    """The sha256 of each lock whose packages are all in the wheelhouse."""
    sources: frozenset[str] = frozenset()
    """The files of the source packages that are here."""
    pointers: Mapping[str, str] = field(default_factory=dict)
    """`<arch>/<module name>/<version>` to the environment that users get by loading it."""
