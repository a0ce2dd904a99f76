"""A plan: ordered steps, each with its action, its reason, and the operations that carry it out.

Operations are data. `executor` is their one interpreter; `Command` and `WriteFile` do the work, the others are the
moments at which the root changes or something is judged.
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
    """Run a program with the arch's modules loaded. `path` goes in front of PATH; `environ` is set besides.

    `launcher` starts it on a node of the arch, where the job's script runs on another one.
    """

    argv: tuple[str, ...]
    path: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    launcher: Launcher | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """Write a file, atomically."""

    path: str
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove a folder and all below it, if it is there."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSource:
    """Have the source package of one of these hashes at `path`: what is there and right is kept, else `download` runs.

    `download` is to leave the file in `folder`.
    """

    path: str
    hashes: tuple[str, ...]
    folder: str
    download: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFile:
    """A patch to apply: its file's name, what it is for, and its whole text."""

    name: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpack:
    """Unpack the source package at `path` into `folder`, and apply these patches in order."""

    path: str
    folder: str
    patches: tuple[PatchFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWheel:
    """Move the one wheel in `folder` to the cache of wheels, with what decides its ABI beside it."""

    folder: str
    key: str
    abi: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallWheel:
    """Install the cached wheel of this key: its path is put behind `argv`."""

    key: str
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeReadable:
    """Let everybody read what stands below `path`: installers take over the modes of their caches."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGpu:
    """What the inspection of a GPU build must find besides. Device code and NCCL are Horovod's: not asked without it.

    `nccl_library`: None where NCCL is linked in.
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
    """Folders that libraries may be mapped from, besides the system's."""
    gpu: ExpectedGpu | None = None

    @property
    def horovod(self) -> bool:
        """Whether the environment has Horovod, and with it an MPI that it links."""
        return "horovod" in dict(self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """Run the inspection program and hold what it reports against the expectation."""

    command: Command
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCandidate:
    """Write the modulefiles that the proof loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prove:
    """Train through the candidate modulefile, and judge what the processes report.

    Raises:
        ConfigError: several processes, and the program is one.
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
    """Where these are, every rank must use one."""
    devices: int = 1
    """How many of a node's devices a process trains on at once."""
    communication: str = "AUTO"
    """How MultiWorkerMirroredStrategy reduces, at this site."""

    def __post_init__(self) -> None:
        """Refuse a shape that the program does not have."""
        if self.strategy in ONE_PROCESS_PROGRAMS and self.processes != 1:
            raise ConfigError(
                f"the proof `{self.strategy}` is one process on one node, not {self.ranks_per_node} on each of {self.nodes}",
                hint="`proof.program` in the stack's file names a program of several ranks: `horovod_keras`",
            )

    @property
    def strategy(self) -> str:
        """The name of its program, as a stack's file has it."""
        return PurePosixPath(self.program).stem

    @property
    def processes(self) -> int:
        """How many are started."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Write the record, then flip the pointer: one rename."""


Operation = (
    Command
    | WriteFile
    | Remove
    | FetchSource
    | Unpack
    | KeepWheel
    | InstallWheel
    | MakeReadable
    | Inspect
    | WriteCandidate
    | Prove
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
    """What will be done for one environment. `identity` is everything that decides it, and what its fingerprint hashes.

    `not_fetched` names what the package index would be asked for; nothing, where all comes from the wheelhouse.
    `abi_key` is that of the compiled Horovod, None if the stack has none. `replaces` is the environment that users of the
    module get until this one is published, None if there is none.
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

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return all(step.action == "keep" for step in self.steps)

    @property
    def asks_network(self) -> bool:
        """Whether a step that is to be done downloads."""
        downloads = [step for step in self.steps if step.name in DOWNLOADING and step.action == "create"]
        return bool(self.not_fetched and downloads)

    def to_dict(self) -> dict[str, Any]:
        """The whole plan as JSON-able data, each operation with its kind."""
        data = dataclasses.asdict(self, dict_factory=_without_gpu)
        data["environment"], data["held"] = str(self.environment), held(self)
        if not self.modulefile.unload:  # most sites have nothing to take away
            del data["modulefile"]["unload"]
        for step, described in zip(self.steps, data["steps"], strict=True):
            described["operations"] = [
                {"kind": type(operation).__name__, **dataclasses.asdict(operation, dict_factory=_without_gpu)}
                for operation in step.operations
            ]
        return data


def _without_gpu(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A value as a dictionary, in which a plan for CPUs says nothing of GPUs."""
    return {name: value for name, value in pairs if name != "gpu" or value is not None}


def held(plan: Plan) -> dict[str, str]:
    """What a plan from elsewhere is held against, as text: what decides the environment, where it goes, how it is proved."""
    proof = next((one for step in plan.steps for one in step.operations if isinstance(one, Prove)), None)
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
    """Ten hexadecimal digits of the sha256 over the canonical JSON of what decides an environment."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]


def differences(planned: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Where a plan that was made elsewhere differs from what is here, a line each."""
    lines = []
    for name in dict.fromkeys((*planned, *here)):
        if planned.get(name) != here.get(name):
            lines.append(f"{name}: planned {planned.get(name, 'nothing')!r}, here {here.get(name, 'nothing')!r}")
    return lines
