"""An arch: one kind of node at a site (`[archs.<arch>]`), with all its tables: compiler, MPI, node, GPUs, jobs …"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from provision.knowledge.frameworks.interface import MathLibrary
from provision.knowledge.toolchains import mixture
from provision.knowledge.whole_numbers import whole_number
from provision.profile.absolute import Program
from provision.profile.choices import LAUNCHERS, LauncherName
from provision.profile.patterns import MEMORY, NAME, TIME, Command, Folder, Form, Module, Name, Option, Time
from provision.profile.reader import Choices, Count, Environ, FormRule, Mark, Named, Positive, Reader, Via
from provision.wording import count

Deliver = Literal["files", "image", "image-only"]
MpiFamily = Literal["mpich", "openmpi"]
NcclLink = Literal["SHARED", "STATIC"]
CAPABILITY = Form(r"[1-9][0-9]{1,2}", "of a compute capability without the point: `80` for 8.0")
FOLDER = Form(r"(/|\$\{[A-Za-z_][A-Za-z0-9_]*\})[^\x00-\x1f]*")
CONSTRAINT = Form(r"[A-Za-z0-9_&|*()\[\],.:=-]+", "of a constraint, such as `a100` or `gpu&hbm80g`, without blanks")
Constraint = Annotated[str, CONSTRAINT]
# `24: 03:00:00`: jobs of up to 24 nodes have three hours.
UP_TO = Form(r"[1-9][0-9]{0,5}: " + TIME.pattern)
Share = Annotated[float, FormRule(lambda value: None if 0 <= value <= 1 else f"must be from 0 to 1, but is {value}")]


def in_numeric_order(capabilities: tuple[str, ...]) -> tuple[str, ...]:
    """Each capability once: the order in the profile has no meaning."""
    return tuple(sorted(set(capabilities), key=lambda text: whole_number(text) or 0))  # 0: a fault


Capabilities = Annotated[
    tuple[str, ...], Via(Annotated[tuple[Annotated[str, CAPABILITY], ...], Mark.NOT_EMPTY], in_numeric_order)
]


def sorted_times(texts: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """The numbers of nodes and the time limits of such texts, the fewest nodes first."""
    pairs = (text.split(": ") for text in texts if UP_TO.fullmatch(text))
    return tuple(sorted((int(most), time) for most, time in pairs))


def launchers_of(profile: Mapping[str, Any]) -> tuple[LauncherName, ...]:
    """The launchers that a parsed profile can name: those of its scheduler."""
    scheduler = profile.get("scheduler")
    system = scheduler.get("system") if isinstance(scheduler, Mapping) else None
    return next((names for name, names in LAUNCHERS.items() if name == system), LAUNCHERS["none"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch job on this arch requests. `time` is in the scheduler's notation.

    `exclusive` requests whole nodes. `cpus_per_task` (0: not set) is also passed to the launcher, which does not inherit it.
    `constraint` selects the kind of node: `--constraint` of Slurm, a part of `select` of PBS, `--attrs` of Cobalt.
    `memory` is for one CPU (`8G`; G is GiB, 2³⁰ bytes), also if jobs at the site request it for a node. `least_gpu_use` is
    the percentage of use of its GPUs below which the site cancels a job (0: it does not).
    """

    time: Time = "01:00:00"
    partition: Name | None = None
    constraint: Constraint | None = None
    account: Name | None = None
    qos: Name | None = None
    exclusive: bool = False
    cpus_per_task: Count = 0
    options: tuple[Option, ...] = ()
    filesystems: tuple[Name, ...] = ()
    memory: Annotated[str, MEMORY] | None = None
    least_gpu_use: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The limits of a queue (in Slurm a partition or QOS) for one job of this arch: nodes and time (None: no limit).

    `times` are the limits for jobs of up to this many nodes, the smallest number first; `time` is that of larger jobs. `qos`: it
    is a QOS beside the partition of `[archs.<arch>.job]`, not a partition. `constraint` selects its nodes instead of the
    constraint of `[archs.<arch>.job]`. `run_with` are words before the program of each rank: on nodes in another memory mode,
    `numactl`. `shared`: jobs get parts of its nodes, at a site that gives whole ones.
    """

    name: str
    least_nodes: Positive = 1
    most_nodes: Annotated[int | None, Via(Count, lambda nodes: nodes or None)] = None
    time: Time | None = None
    constraint: Constraint | None = None
    run_with: tuple[str, ...] = ()
    qos: bool = False
    times: Annotated[tuple[tuple[int, str], ...], Via(tuple[Annotated[str, UP_TO], ...], sorted_times)] = ()
    shared: bool = False

    def add_faults(self, table: Reader) -> None:
        """Record a largest job that is smaller than the smallest."""
        if self.most_nodes is not None and self.most_nodes < self.least_nodes:
            table.fault("most_nodes", f"is less than `least_nodes` ({self.least_nodes})")

    def time_for(self, nodes: int) -> str | None:
        """The time limit of a job of this many nodes; None: no limit."""
        return next((time for most, time in self.times if nodes <= most), self.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The program that starts ranks, with the site's options for it (`--mpi=pmi2`).

    `mpiexec` is Hydra of MPICH, `mpirun` is Open MPI's, `mpiexec-pals` is HPE's, and `none` starts one process.
    """

    name: Annotated[LauncherName, Choices(launchers_of)]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of one node: their number, the scheduler's name for the model, and their compute capabilities.

    Device code is built for the capabilities, which are spelt as in Spack (`80`). `cuda_home` and `nccl_home` may contain
    variables that the arch's modules set (`${CUDA_HOME}`, `${EBROOTNCCL}`); if they are None, the usual folders are
    searched. `nccl_link` is SHARED if a network plugin belongs to the site's NCCL.
    """

    per_node: Positive
    model: Name | None = None
    capabilities: Capabilities
    cuda_home: Annotated[str, FOLDER] | None = None
    nccl_home: Annotated[str, FOLDER] | None = None
    nccl_link: NcclLink = "SHARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The names of the C++ and C compilers once the arch's modules are loaded (`CC` and `cc` on a Cray)."""

    cxx: Program = "g++"
    cc: Program = "gcc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpi:
    """The provider of MPI.

    `site`: the compiler wrapper `cxx`, which is on PATH after the modules are loaded. `pypi`: a wheel that is installed
    into the environment from the lock named `requirements`.
    """

    provider: Literal["site", "pypi"]
    family: MpiFamily = "mpich"
    cxx: Program = "mpicxx"
    requirements: Name | None = None

    def add_faults(self, table: Reader) -> None:
        """Record a lock without `pypi`, and `pypi` without a lock."""
        if table.data.get("provider") == "site" and self.requirements is not None:
            table.fault("requirements", "is only for provider `pypi`; the site's MPI comes from its modules")
        if self.provider == "pypi" and self.requirements is None:
            table.missing("requirements", "with provider `pypi` it names the lock in `requirements/` that contains MPI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: its sockets, and the physical cores and hardware threads of all sockets (0: not known).

    `memory_gb` is in GiB (2³⁰ bytes), as schedulers count `G`, although the pages of sites and the key call it GB.
    """

    sockets: Positive = 1
    cores: Positive
    threads: Positive = 0
    memory_gb: Count = 0

    def __post_init__(self) -> None:
        """Without hyper-threading, each core is one thread."""
        object.__setattr__(self, "threads", self.threads or self.cores)

    def add_faults(self, table: Reader) -> None:
        """Record cores and threads that do not fit sockets and cores."""
        if self.cores > 1 and self.cores % self.sockets:  # 1 replaces a value that is already a fault
            table.fault(
                "cores", f"is for the whole node, but {self.cores} is not a multiple of its {self.sockets} sockets"
            )
        if self.threads % self.cores:
            table.fault(
                "threads", f"is for the whole node, but {self.threads} is not a multiple of its {self.cores} cores"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """The site's settings of threads. `owner`: whether the modulefile sets them and jobs do not, or each job sets them.

    `omp` is `OMP_NUM_THREADS` of one rank that uses the whole node; `inter` and `intra` are TensorFlow's thread pools
    (`NUM_INTER_THREADS`, `NUM_INTRA_THREADS`); 0 means computed from the node's hardware. `environ` are related variables
    (`KMP_…`).
    """

    owner: Literal["module", "job"] = "job"
    omp: Count = 0
    inter: Count = 0
    intra: Count = 0
    environ: Environ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSettings:
    """The shape of the proof: nodes, ranks per node, and the time limit in seconds, after which it counts as stalled.

    `slowdown` and `accuracy_loss` are how much worse than its own history a proof may be: a share of the images per second,
    and a difference of the accuracy (0..1).
    """

    nodes: Positive = 1
    ranks_per_node: Positive = 2
    timeout_s: Positive = 900
    slowdown: Share = 0.2
    accuracy_loss: Share = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Arch:
    """A kind of node. `target` is archspec's name for its CPU, or `native` for the CPU of this machine.

    `stack` is the stack to build for this arch if it is not the site's: GPUs need another TensorFlow.
    `unload` are the modules to unload before `modules` are loaded. `provided` are the modules with which the site itself
    provides TensorFlow and Horovod, `provided_unload` those to unload before them, and `provided_setup` the commands after
    them (`conda activate`). Our modulefile sets `environ`; `build_environ` is set only while something is compiled.
    `library_path` are the folders that the program finds libraries in before others (`LD_LIBRARY_PATH`), as a plug-in of NCCL.
    `launcher_only`: the site warns of all other launchers.
    `math` is the library with which TensorFlow must compute on its CPUs, or None if any is right.
    `gpus_reversed`: the last GPU is the nearest to the first cores, so ranks take GPUs from the end.
    `deliver`: ranks read the files of an environment, or mount one image of it, beside its files or in place of them.
    `deliver_with` are the words of the site's own program that mounts an image, before the program that it starts; without them
    `provision-deliver` mounts it.
    """

    name: str
    target: Name
    stack: Name | None = None
    modules: tuple[Module, ...] = ()
    python: Annotated[Program, Mark.EXPAND] | None = None
    compiler: Compiler
    mpi: Mpi
    launcher: Launcher
    launcher_only: bool = False
    job: Job
    proof: ProofSettings
    environ: Environ = ()
    library_path: tuple[Folder, ...] = ()
    unload: tuple[Module, ...] = ()
    provided: tuple[Module, ...] = ()
    provided_unload: tuple[Module, ...] = ()
    provided_setup: tuple[Command, ...] = ()
    build_environ: Environ = ()
    node: Node | None = None
    threads: Threads
    gpu: Gpu | None = None
    queues: Annotated[tuple[Queue, ...], Named("a queue", NAME)] = ()
    gpus_reversed: bool = False
    math: MathLibrary | None = None
    deliver: Deliver = "files"
    deliver_with: tuple[str, ...] = ()

    def add_faults(self, table: Reader) -> None:
        """Record modules of several generations, a proof with more ranks than GPUs, and a way to mount without an image."""
        for key, names in (("modules", self.modules), ("provided", self.provided)):
            if mixed := mixture(names):
                table.fault(key, mixed)
        if self.gpu and not table.has_fault("gpu.per_node") and self.proof.ranks_per_node > self.gpu.per_node:
            gpus = count(self.gpu.per_node, "GPU")
            what = f"is {self.proof.ranks_per_node}, but a node has only {gpus}, and every rank needs one"
            table.fault("proof.ranks_per_node", what)
        if self.deliver_with and not any("{image}" in word for word in self.deliver_with):
            table.fault("deliver_with", "no word contains `{image}`, where the path of the image stands")

    def queues_of(self, partition: str | None, qos: str | None) -> tuple[Queue, ...]:
        """What the profile says about the queues of a job: its partition and its QOS."""
        return tuple(queue for queue in self.queues if queue.name in (partition, qos))
