"""The operations that carry out the steps of a plan, as data: only `machine/install/executor.py` interprets them.

`Command` and `WriteFile` do most of the work; the others change the root or check a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.errors import ConfigError
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.frameworks.interface import MathLibrary
from provision.profile.arch import Gpu, Launcher
from provision.profile.stack import ONE_PROCESS_PROGRAMS, Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Run a program with the arch's modules loaded. `path` is prepended to PATH; `environ` is set in addition.

    `launcher` starts it on a node of the arch if the job script runs on another kind of node.
    """

    argv: tuple[str, ...]
    path: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    launcher: Launcher | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Run programs at the same time, each with the name of its log; the first has that of the step. One that fails stops all."""

    commands: tuple[tuple[str, Command], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """Write a file atomically."""

    path: str
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove a folder with its contents, if it exists."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSource:
    """Make sure that a source package with one of these hashes is at `path`; if it is not, run `download`.

    `download` must write the file to `folder`.
    """

    path: str
    hashes: tuple[str, ...]
    folder: str
    download: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFile:
    """A patch to apply: the name of its file, its subject, and its whole text."""

    name: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpack:
    """Unpack the source package at `path` into `folder`, which does not exist, and apply these patches in order."""

    path: str
    folder: str
    patches: tuple[PatchFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWheel:
    """Move the only wheel in `folder` to the wheel cache, together with the values that determine its ABI."""

    folder: str
    key: str
    abi: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallWheel:
    """Install the cached wheel of this key: its path is appended to `argv`."""

    key: str
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeReadable:
    """Make all files below `path` readable for all users: installers copy the modes of the files in their caches."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceData:
    """Put the files of wheels whose data folder has the name of another package where they belong."""

    site_packages: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLock:
    """Make sure that all packages of a lock are in the wheelhouse. `requirements` are the lines that pip downloads."""

    path: str
    sha256: str
    requirements: str
    minor: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpack:
    """Run Spack with this environment and nothing else, except the settings of the package index and the proxy.

    With `without`, a failure is only a warning: the text says what is missing then.
    """

    argv: tuple[str, ...]
    environ: tuple[tuple[str, str], ...]
    without: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpackLock:
    """Judge the spack.lock at `path`.

    `targets` are the packages that are built, with the CPU of each; `externals` are name, prefix and CPU of what the site
    provides. With `caches`, folders of build caches, each package that is built must be in one of them.
    """

    path: str
    root_specs: tuple[str, ...]
    targets: tuple[tuple[str, str], ...]
    externals: tuple[tuple[str, str, str], ...]
    caches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TryMpi:
    """Compile a small MPI program with `wrapper`, compare the libmpi that it loads with `libraries`, and start its ranks.

    `folder` is one that all nodes see. Without `libraries`, what is loaded is not compared.
    """

    wrapper: str
    libraries: tuple[str, ...]
    launcher: Launcher
    nodes: int
    ranks_per_node: int
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGpu:
    """What the inspection of a GPU build must find in addition. Without Horovod, device code and NCCL are not inspected.

    `nccl_library` is None if NCCL is linked statically, `cuda_version` if any is right.
    """

    capabilities: tuple[str, ...] = ()
    cuda_version: str | None
    nccl_version: str | None = None
    nccl_library: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the inspection of a built environment must find."""

    framework: str
    """The name of the framework in its stack."""
    versions: tuple[tuple[str, str], ...]
    mpi_libraries: tuple[str, ...]
    allowed: tuple[str, ...]
    """Folders from which libraries may be loaded, in addition to the system's."""
    gpu: ExpectedGpu | None = None
    math: MathLibrary | None = None
    """The library with which the framework must compute on CPUs; None if any is right."""

    @property
    def horovod(self) -> bool:
        """Whether the environment contains Horovod, which links an MPI."""
        return "horovod" in dict(self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """Run the inspection program and compare its report with the expectation."""

    command: Command
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Make one image of the environment, and the program `provision-deliver`.

    `mount_with` are the words of the site's own program that mounts images; see `Arch`. `only`: the files go at the publication.
    """

    mount_with: tuple[str, ...] = ()
    only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCandidate:
    """Write the modulefiles that the proof loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prove:
    """Load the candidate modulefile, train, and judge the reports of the processes.

    Raises:
        ConfigError: the shape has several processes, but the program is a single process.
    """

    program: str
    launcher: Launcher
    mpiexec: str
    nodes: int
    ranks_per_node: int
    cpus_per_task: int
    timeout_s: int
    training: tuple[Training, ...]
    gpu: Gpu | None = None
    """If this is set, every rank must use a GPU."""
    devices: int = 1
    """The number of devices on which one process trains."""
    communication: str = "AUTO"
    """How the workers of this program exchange gradients at this site."""
    deliver: str | None = None
    """The program that starts each process with the image of the environment; None: they read its files."""
    others: tuple[Prove, ...] = ()
    """What else trains after it in the same environment, for one verdict."""

    def __post_init__(self) -> None:
        if self.strategy in ONE_PROCESS_PROGRAMS and self.processes != 1:
            raise ConfigError(
                f"the proof `{self.strategy}` is one process on one node, not {self.ranks_per_node} on each of {self.nodes}",
                hint="for several ranks, set `proof.program` in the stack to a program such as `horovod_keras`",
            )

    @property
    def strategy(self) -> str:
        """The name of its program, as in the stack."""
        return PurePosixPath(self.program).stem

    @property
    def title(self) -> str:
        """With what it trains, for people."""
        if self.strategy == "keras_torch":
            return "Keras on torch"
        return next((one.title for one in FRAMEWORKS.values() if self.strategy in one.programs), self.strategy)

    @property
    def processes(self) -> int:
        """The number of processes on all nodes."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Write the manifest and the record, and take away the right to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Replace the pointer with one rename."""


Operation = (
    Command
    | Together
    | WriteFile
    | Remove
    | FetchSource
    | Unpack
    | KeepWheel
    | InstallWheel
    | MakeReadable
    | PlaceData
    | FetchLock
    | RunSpack
    | CheckSpackLock
    | TryMpi
    | Inspect
    | Pack
    | WriteCandidate
    | Prove
    | Seal
    | Publish
)
