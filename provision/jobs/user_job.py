"""A user's job: what the user asked for, and what the site's profile makes of it. Pure.

`decide` looks up everything once; `user_job_checks` refuses what cannot work, and `user_script` writes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from provision.errors import ConfigError
from provision.jobs.scheduler_request import batch_for
from provision.knowledge.frameworks import framework_module, image_framework
from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.knowledge.frameworks.pytorch import PYTORCH
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.versions import release
from provision.launch.available_modules import without_horovod
from provision.launch.rank_threads import INTER, INTRA, OMP, cpus_of_rank, job_environ, parts_of_node
from provision.model.batch import Batch, Shape
from provision.model.quoting import quote_sh
from provision.profile.arch import Arch, Deliver, Launcher
from provision.profile.choices import LAUNCHERS, LauncherName
from provision.profile.container import Runtime
from provision.profile.patterns import MEMORY
from provision.profile.site import Site
from provision.profile.stack import ONE_PROCESS_PROGRAMS, Framework
from provision.profile.strategy import PLUGINS, StrategyName
from provision.schedulers import TITLES, SchedulerInterface, scheduler_for

# The MPI whose ranks these launchers start: Open MPI's own, and Hydra of MPICH. The others start ranks of either.
FAMILIES: dict[LauncherName, str] = {"mpirun": "openmpi", "mpiexec": "mpich"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserJob:
    """What a user asked for. If a value is None, the site's profile decides it.

    `module` is that of our environment, with this `framework` if that is known, and `activate` the file to source instead if the
    site has no module system. `site_modules` are modules of the site to
    load instead of those that its profile names. `arguments` are texts, or code in which the node expands variables. `script`
    is an absolute path, or a path in the folder from which the job is submitted, or it begins with a `$VARIABLE` that the
    modules set (the example of a plug-in). `command` is the command that wrote the job. `memory` is for one CPU, `extra` are
    options in the scheduler's notation, and `inter` and `intra` are TensorFlow's thread pools (0: TensorFlow decides).
    """

    kind: StrategyName
    site: Site
    arch: Arch
    command: str
    module: str
    modulepath: str
    site_modules: tuple[str, ...] = ()
    activate: str | None = None
    stack: str | None = None
    """The value of `--stack` that names the stack of our environment; None if only its module was named."""
    framework: Framework | None = None
    alternative: str | None = None
    """A stack with which the site can run this kind of job, for hints."""
    script: str = "train.py"
    arguments: tuple[str, ...] = ()
    nodes: int | None = None
    gpus: int | None = None
    ranks_per_node: int | None = None
    cpus: int | None = None
    use_gpu: bool = True
    runtime: Runtime | None = None
    image: str | None = None
    overlays: tuple[str, ...] = ()
    """The user's own overlays, which are mounted over the profile's in this order, read-only."""
    use_overlay: bool = True
    """Whether the profile's overlay is mounted."""
    venv: str | None = None
    time: str | None = None
    account: str | None = None
    queue: str | None = None
    data: str | None = None
    resume: str | None = None
    stage_in: str | None = None
    burst_buffer_gb: int | None = None
    name: str | None = None
    memory: str | None = None
    qos: str | None = None
    constraint: str | None = None
    mail: str | None = None
    array: str | None = None
    requeue: bool = False
    extra: tuple[str, ...] = ()
    inter: int | None = None
    intra: int | None = None
    watch_gpus: bool = False
    record: bool = False
    deliver: Deliver | None = None

    @property
    def provided(self) -> tuple[str, ...]:
        """The modules of the site with which the job gets its framework if its runtime is `modules`."""
        if self.kind in PLUGINS:
            return self.site.strategy(self.kind).modules
        if self.site_modules or self.kind in ("horovod", "mpi"):
            return self.site_modules or self.arch.provided
        # Only Horovod's jobs need its module, which may be of other versions, or gone.
        others = without_horovod(self.arch.provided)
        return others if framework_module(others) else self.arch.provided

    @property
    def alone(self) -> bool:
        """Whether the job is one process, however many devices it uses."""
        return self.kind in ONE_PROCESS_PROGRAMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is decided for a job: how the framework is run, on which nodes and ranks, and what the scheduler is asked for."""

    job: UserJob
    runtime: Runtime
    nodes: Arch
    """The kind of node that the job asks for: the arch, or one without GPUs if the job uses none."""
    shape: Shape
    scheduler: SchedulerInterface | None
    """None if the site has no scheduler, as for `batch`."""
    batch: Batch | None
    threads: tuple[tuple[str, str], ...]
    """The variables of threads that the job sets."""
    deliver: Deliver = "files"
    """How the ranks get the environment."""

    @property
    def framework(self) -> tuple[FrameworkInterface, str, tuple[int, ...]] | None:
        """The framework, the module that provides it, and its version; None if no name gives a version."""
        if self.runtime == "venv":
            of_stack = self.job.framework
            return (of_stack.interface, self.job.module, release(of_stack.version)) if of_stack else None
        return framework_module(self.job.provided) if self.runtime == "modules" else None

    @property
    def without_launcher(self) -> bool:
        """Whether the job script starts the program itself: one process, and the script does not run on a service node."""
        return self.shape.ranks == 1 and self.job.alone and self.job.site.scheduler.script_on == "node"

    @property
    def watched_by_ranks(self) -> bool:
        """Whether the ranks record the load of the GPUs of their nodes; without a launcher the job script does."""
        return self.job.watch_gpus and not self.without_launcher

    @property
    def reverses_gpus(self) -> bool:
        """Whether ranks take the GPUs of their node from the end."""
        return self.job.arch.gpus_reversed and bool(self.shape.gpus_per_node) and self.shape.ranks_per_node > 1


def decide(job: UserJob) -> Decision:
    """What the options of a job and the profile of its site decide. It may be something that cannot work."""
    shape, name = shape_of(job), job.site.scheduler.name
    return Decision(
        job=job,
        runtime=_runtime(job),
        nodes=nodes_of(job),
        shape=shape,
        scheduler=None if name == "none" else scheduler_for(name),
        batch=None if name == "none" else _batch(job, shape),
        threads=_threads(job, shape),
        deliver=job.deliver or (job.arch.deliver if _runtime(job) == "venv" else "files"),
    )


def nodes_of(job: UserJob) -> Arch:
    """The kind of node of a job. One without GPUs uses the site's nodes without them, if they have the same CPU.

    Sites keep the partitions of their GPUs for jobs that use them. A site whose profile has only nodes with GPUs, or one
    whose other nodes have another CPU, keeps the arch; `user_job_checks` refuses the latter.
    """
    if job.use_gpu or job.arch.gpu is None:
        return job.arch
    return next((one for one in nodes_without_gpus(job.site) if one.target == job.arch.target), job.arch)


def nodes_without_gpus(site: Site) -> tuple[Arch, ...]:
    """The archs of a site that have no GPUs."""
    return tuple(arch for arch in site.archs if arch.gpu is None)


def shape_of(job: UserJob) -> Shape:
    """The nodes, ranks, CPUs and GPUs of a job. `user_job_checks` refuses a shape that this kind of job cannot have."""
    arch = nodes_of(job)
    gpu = arch.gpu if job.use_gpu else None
    gpus = job.gpus or (0 if gpu is None else 1 if job.kind == "single" else gpu.per_node)
    if job.alone:
        ranks = 1
    elif gpus:
        ranks = job.ranks_per_node or gpus
    else:
        ranks = job.ranks_per_node or (arch.node.sockets if arch.node else arch.proof.ranks_per_node)
    return Shape(
        nodes=job.nodes or (1 if job.alone else arch.proof.nodes),
        ranks_per_node=ranks,
        cpus_per_rank=job.cpus or _cpus(job, ranks, gpus),
        gpus_per_node=gpus,
        devices=max(1, gpus // ranks),
    )


def _cpus(job: UserJob, ranks: int, gpus: int) -> int:
    """The CPUs of a rank. Without GPUs a job is a test, for which those of one GPU are enough where nodes are shared."""
    nodes = nodes_of(job)
    share = cpus_of_rank(job.site, nodes, ranks, gpus)
    if job.arch.gpu is None or job.use_gpu or nodes.job.exclusive:
        return share
    return min(share, cpus_of_rank(job.site, job.arch, 1)) or share


def _runtime(job: UserJob) -> Runtime:
    """How the framework is run: as the user asked, or with the first of the site's runtimes that this arch has."""
    if job.kind in PLUGINS:
        return "modules"
    usable = [runtime for runtime in job.site.runtimes if runtime != "modules" or job.provided]
    return job.runtime or (usable or job.site.runtimes)[0]


def interface_of(job: UserJob, runtime: Runtime) -> FrameworkInterface:
    """The framework whose variables the job sets: that of the kind of job, of the stack or of a name; else TensorFlow."""
    if job.kind == "ddp":
        return PYTORCH
    if runtime == "venv" and job.framework:
        return job.framework.interface
    if runtime == "container":
        found = image_framework(job.image or (job.site.container.image if job.site.container else ""))
    else:
        module = framework_module((job.module,) if runtime == "venv" else job.provided)
        found = module[0] if module else None
    return found or TENSORFLOW


def unstaged(job: UserJob, shape: Shape) -> str | None:
    """The advice to use the burst buffer, if the job has so many nodes that its site recommends it and the job does not."""
    files = job.site.files
    if job.stage_in is not None or not files.needs_burst_buffer(shape.nodes):
        return None
    return (
        f"{shape.nodes} nodes read the data from the parallel file system: from {files.burst_buffer_from} nodes on "
        "they belong on the burst buffer, `--stage-in FOLDER`"
    )


def _batch(job: UserJob, shape: Shape) -> Batch:
    """What the job asks its scheduler for."""
    name = job.name or f"{job.kind}-{job.arch.name}"
    batch = batch_for(job.site, nodes_of(job), shape, name=name, time=job.time, account=job.account, queue=job.queue)
    scheduler = batch.scheduler
    if scheduler.gpus == "gpus-per-task" and (job.arch.launcher.name in FAMILIES or job.kind == "ddp"):
        # Its daemon is the one task of a node: with a GPU for each task, all ranks of that node would get the first GPU.
        # And programs of PyTorch take the GPU with the number LOCAL_RANK, so each process must see all of its node.
        scheduler = replace(scheduler, gpus="gpus-per-node")
    return replace(
        batch,
        scheduler=scheduler,
        memory=job.memory if job.memory and MEMORY.fullmatch(job.memory) else batch.memory,  # a wrong one is refused
        qos=job.qos or batch.qos,
        constraint=job.constraint or batch.constraint,
        mail=job.mail,
        array=job.array,
        requeue=job.requeue,
        extra=job.extra,
    )


def _threads(job: UserJob, shape: Shape) -> tuple[tuple[str, str], ...]:
    """The threads of a rank: its share of the node, or the pools that the user wants, which OpenMP follows."""
    nodes = nodes_of(job)
    parts = parts_of_node(job.site, nodes, shape.ranks_per_node, shape.cpus_per_rank)
    threads = dict(job_environ(nodes, parts, shape.ranks_per_node))
    if job.intra and OMP in threads and nodes.threads.owner == "job":
        threads[OMP] = str(job.intra)
    of_others = interface_of(job, _runtime(job)) is not TENSORFLOW  # the pools are TensorFlow's
    for name, pool in ((INTER, job.inter), (INTRA, job.intra)):
        if of_others:
            threads.pop(name, None)
        elif pool is not None:
            threads[name] = str(pool)
    return tuple(threads.items())


def with_launcher(site: Site, arch: Arch, name: LauncherName | None) -> Arch:
    """The arch with another launcher, if the user names one. The site's options are for its own launcher only.

    Raises:
        ConfigError: the site's scheduler or MPI cannot have this launcher.
    """
    if name is None or name == arch.launcher.name:
        return arch
    if arch.launcher_only:
        source = site.source(f"archs.{arch.name}.launcher_only")
        raise ConfigError(
            f"site `{site.name}` starts ranks only with `{arch.launcher.name}`, not with `{name}`",
            evidence=[f"`archs.{arch.name}.launcher_only` in `{site.origin}`" + (f" ({source})" if source else "")],
            hint="leave `--launcher` out",
        )
    known = LAUNCHERS[site.scheduler.name]
    family = FAMILIES.get(name)
    if name not in known or (family is not None and family != arch.mpi.family):
        usable = [one for one in known if FAMILIES.get(one) in (None, arch.mpi.family)]
        raise ConfigError(
            f"`{name}` cannot start the ranks of a job on arch `{arch.name}`",
            evidence=[
                f"launchers of {TITLES.get(site.scheduler.name, 'a site without a scheduler')}: {', '.join(known)}",
                f"`archs.{arch.name}.mpi.family` in `{site.origin}` is `{arch.mpi.family}`",
            ],
            hint=f"`--launcher {usable[0]}`, or leave `--launcher` out",
        )
    return replace(arch, launcher=Launcher(name=name, options=()))


def without_prefix(site: Site, text: str) -> str:
    """The option of a directive: `--nice=100` of `#SBATCH --nice=100`."""
    name = site.scheduler.name
    return text if name == "none" else text.removeprefix(scheduler_for(name).PREFIX).strip()


def run_by_hand(decision: Decision) -> str:
    """How to run the program at a site without a scheduler."""
    job, site, arch = decision.job, decision.job.site, decision.job.arch
    if decision.runtime != "venv":
        return f"name a site that has one: `provision job {job.kind} --site SITE`"
    if job.activate is None:
        return get_environment(job)
    if site.modules.name == "none":
        load = f'eval "$(provision activate --site {site.typed} --arch {arch.name} {quote_sh(job.module)})"'
    else:
        load = site.modules.load_command(job.modulepath, job.module)
    ranks = f"{arch.launcher.name} -n 2 " if job.kind in ("horovod", "mpi") else ""
    return f"`{load}`, then `{ranks}python {quote_sh(job.script)}`"


def get_environment(job: UserJob) -> str:
    """How to get the environment of a job that is not published: a module that was named may be of any stack."""
    if job.stack is None:
        return f"`provision list --site {job.site.typed}` lists the modules that there are"
    build = f"provision build --site {job.site.typed} --arch {job.arch.name} --stack {quote_sh(job.stack)}"
    return f"`{build}` builds it and prints the command that loads it"
