"""Facts: what was observed on a machine. Probes fill them; the planner only reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provision.errors import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processor. `target` is archspec's best match, `features` are those that the CPU reports."""

    target: str
    features: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python. `executable` is the real file, not a shim or a virtual environment.

    `own_venv`: virtualenv no longer has a pip for it, so its own module `venv` makes the environments, with an older pip.
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
    """An MPI: its family and version, its compiler wrapper, the options that the wrapper adds, and the libmpi files it links.

    `cc` is the wrapper for C beside the one for C++; empty if there is none.
    """

    family: str
    version: str
    cxx: str
    cc: str = ""
    show: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """CUDA and NCCL: their folders and versions, the NCCL library to link, and the toolkit's `cuobjdump` if it has one.

    The values of NCCL are empty if nothing links it: TensorFlow contains its own copy.
    """

    cuda_home: str
    cuda_version: str
    cuobjdump: str | None = None
    nccl_home: str = ""
    nccl_version: str = ""
    nccl_library: str = ""

    @property
    def nccl_shared(self) -> bool:
        """Whether the library is loaded at run time instead of being linked in."""
        return not self.nccl_library.endswith(".a")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpackFacts:
    """The site's Spack: its checkout and commit, and the Python with clingo that runs it.

    `sets` and `prepends` are what loading the arch's modules changes: variables, and what comes in front of lists of paths.
    """

    root: str
    version: str
    commit: str
    python: str
    cache: str = ""
    """The address of another root's build cache, from which packages are installed and never built; empty: none."""
    sets: tuple[tuple[str, str], ...] = ()
    prepends: tuple[tuple[str, str], ...] = ()
    closed: str = ""
    """The folder that this user cannot write, although Spack installs packages there; empty: there is none."""
    took_s: float = field(default=0.0, compare=False)
    """The seconds of solving and installing when Spack last built this stack below this root; 0: it never did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder in which programs write: whether it is one, can be written, and lets a program in it run."""

    path: str
    is_folder: bool
    writable: bool
    runs: bool
    free_bytes: int
    free_files: int | None = None
    """How many files may still be made; None if the file system has no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was seen on this node. None: it is not known, or the node has no such thing."""

    glibc: str | None
    umask: int
    """Of the shell; the tool writes with its own."""
    tmp: Folder
    root: Folder
    """The root, or the nearest folder above it that exists."""
    user_packages: tuple[str, ...]
    """The packages in the user's home that Python would import, for the Python of the environment."""
    user_site: str
    shell: Mapping[str, str] = field(repr=False)
    """The variables of the caller's shell, before they are cleaned."""
    locale: str
    locale_works: bool
    shared_memory_bytes: int | None
    """The size of /dev/shm."""
    available_memory_bytes: int | None
    process_limit: int | None
    driver: str | None
    """The version of NVIDIA's driver."""
    mpiexec: str | None
    """The mpiexec that the loaded modules give."""
    root_mount: tuple[str, str] = ("", "")
    """The type and the options of the file system of the root, as the kernel lists them."""
    open_files_limit: int | None = None
    locked_memory_bytes: int | None = None
    """How much memory a process may lock; None: any amount."""
    infiniband: bool = False
    """Whether this node has InfiniBand, RoCE or another network with verbs."""
    lost_certificates: tuple[tuple[str, str], ...] = ()
    """Variables that name a file of certificates that does not exist, with the file."""
    over_quota: tuple[str, ...] = ()
    """What `quota` and `lfs quota` print of file systems on which the user has more than allowed."""
    tool_on_path: str = ""
    """The folder of this tool's own Python, as PATH names it, if a shell finds its `python3` before any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the probes found on this machine. A part is None if it was not found; then a fault gives the reason."""

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
    place: Folder
    """The root: what is known of it is that of the nearest folder that exists."""
    gpu: GpuFacts | None = None
    """None on CPU archs too."""
    spack: SpackFacts | None = None
    """None if the backend is another one."""
    faults: tuple[Fault, ...] = ()
    closed: tuple[str, ...] = ()
    """Folders and files of Python that other users cannot read, although they can enter the root: `drwx------ /home/ada`."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The environment for builds: cleaned, and with the arch's modules loaded. Comparisons ignore it."""

    def target_of(self, target: str) -> str:
        """The CPU to build for, by archspec's name: the arch's `target`, or this machine's if that is `native`."""
        return self.cpu.target if target == "native" else target


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """What earlier runs left below the root: receipts, compiled wheels, downloads, and published module names."""

    receipts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each environment, finished or not, the steps that are done; `publish` is one of them if it has a record."""
    wheels: frozenset[str] = frozenset()
    fetched: frozenset[str] = frozenset()
    """The sha256 of each lock whose packages are all in the wheelhouse."""
    sources: frozenset[str] = frozenset()
    """The names of the source packages that were downloaded."""
    pointers: Mapping[str, str] = field(default_factory=dict)
    """`<arch>/<module name>/<version>` to the environment that users get when they load that module."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Finished environments that are broken, each with the reason."""
