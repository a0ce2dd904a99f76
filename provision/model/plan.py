"""A plan: ordered steps, each with an action, a reason, and the operations that carry it out.

Operations are data, and only `executor` interprets them. `Command` and `WriteFile` do most of the work; the others change
the root or check a result.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from provision.errors import ConfigError
from provision.knowledge.math_libraries import MathLibrary
from provision.model.layout import EnvironmentId
from provision.model.modulefile import Modulefile
from provision.profile.gpu import Gpu
from provision.profile.launcher import Launcher
from provision.profile.stack import ONE_PROCESS_PROGRAMS, Training

Action = Literal["create", "reuse", "keep"]
# The only steps that may download, whatever the backend.
DOWNLOADING = ("install", "compile")


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
class ResumeCompile:
    """Remove the folder in which a wheel is compiled, unless it has objects of the wheel with this key that can be used."""

    folder: str
    key: str


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
    """Unpack the source package at `path` into `folder`, and apply these patches in order.

    If `folder` is there already, files that are as they should be stay as they are, and so do those whose path begins with
    `keep`; all others are removed.
    """

    path: str
    folder: str
    patches: tuple[PatchFile, ...]
    keep: str


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
    root_spec: str
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

    `nccl_library` is None if NCCL is linked statically.
    """

    capabilities: tuple[str, ...] = ()
    cuda_version: str
    nccl_version: str | None = None
    nccl_library: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the inspection of a built environment must find."""

    versions: tuple[tuple[str, str], ...]
    mpi_libraries: tuple[str, ...]
    allowed: tuple[str, ...]
    """Folders from which libraries may be loaded, in addition to the system's."""
    gpu: ExpectedGpu | None = None
    math: MathLibrary | None = None
    """The library with which TensorFlow must compute on CPUs; None if any is right."""

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
    """How MultiWorkerMirroredStrategy reduces gradients at this site."""

    def __post_init__(self) -> None:
        """Refuse a shape that the program does not support."""
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
    | WriteFile
    | Remove
    | ResumeCompile
    | FetchSource
    | Unpack
    | KeepWheel
    | InstallWheel
    | MakeReadable
    | FetchLock
    | RunSpack
    | CheckSpackLock
    | TryMpi
    | Inspect
    | WriteCandidate
    | Prove
    | Seal
    | Publish
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One unit of a plan. `packages`: how many packages it installs, 0 if they are not to be counted."""

    name: str
    title: str
    action: Action
    reason: str
    operations: tuple[Operation, ...] = ()
    packages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps to build one environment. `identity` are the values that determine it; the fingerprint is their hash.

    `not_fetched` names the locks whose packages would be downloaded from the package index; it is empty if all packages are
    in the wheelhouse. `abi_key` is the key of the compiled Horovod, or None if the stack has no Horovod. `replaces` is the
    environment that users of the module get until this one is published, or None if there is none.
    """

    site: str
    stack: str
    environment: EnvironmentId
    prefix: str
    identity: Mapping[str, str]
    modulefile: Modulefile
    abi_key: str | None
    not_fetched: tuple[str, ...]
    steps: tuple[Step, ...]
    replaces: str | None = None
    broken: str | None = None
    """Why the build before this one is broken, if this is a rebuild."""
    notes: tuple[str, ...] = ()
    """What the backend says of the plan before anything starts, one line each."""

    @property
    def done(self) -> bool:
        """Whether there is nothing to do."""
        return all(step.action == "keep" for step in self.steps)

    @property
    def asks_network(self) -> bool:
        """Whether a step to do downloads packages."""
        downloads = [step for step in self.steps if step.name in DOWNLOADING and step.action == "create"]
        return bool(self.not_fetched and downloads)

    def to_dict(self) -> dict[str, Any]:
        """The whole plan as plain JSON values, each operation with its kind."""
        data = dataclasses.asdict(self, dict_factory=_without_empty)
        data["environment"], data["held"] = str(self.environment), held(self)
        if self.broken is None:
            del data["broken"]
        if not self.notes:
            del data["notes"]
        if not self.modulefile.unload:  # most sites have no modules to unload
            del data["modulefile"]["unload"]
        for step, described in zip(self.steps, data["steps"], strict=True):
            described["operations"] = [
                {"kind": type(operation).__name__, **dataclasses.asdict(operation, dict_factory=_without_empty)}
                for operation in step.operations
            ]
        return data


def _without_empty(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A value as a dictionary, without the key `gpu` if the plan is for CPUs, and `math` if no library is required."""
    return {name: value for name, value in pairs if name not in ("gpu", "math") or value is not None}


def held(plan: Plan) -> dict[str, str]:
    """The values that a saved plan must share with a new one, as text: the identity, the prefix, and the shape of the proof."""
    proof = next(
        (operation for step in plan.steps for operation in step.operations if isinstance(operation, Prove)), None
    )
    shape = ""
    if proof:
        program, each = PurePosixPath(proof.program).stem, f", {proof.devices} devices each" * (proof.devices > 1)
        shape = f"{program}: {proof.nodes} nodes, {proof.ranks_per_node} ranks each{each}, {proof.launcher.name}"
    return {
        **plan.identity,
        "prefix": plan.prefix,
        "proof": " ".join((shape, *(proof.launcher.options if proof else ()))),
    }


def fingerprint(identity: Mapping[str, str]) -> str:
    """Ten hexadecimal digits of the sha256 of the canonical JSON of an environment's identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]


def differences(planned: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """The differences between a plan made elsewhere and this machine, one line for each."""
    lines = []
    for name in dict.fromkeys((*planned, *here)):
        if planned.get(name) != here.get(name):
            lines.append(f"{name}: planned {planned.get(name, 'nothing')!r}, here {here.get(name, 'nothing')!r}")
    return lines
