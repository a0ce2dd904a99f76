"""A user's job: what was asked for, to its shape and to what its scheduler is asked for. Pure.

What cannot work is refused here, before anything is printed: two tasks for MirroredStrategy, GPUs where there are none,
more nodes than a queue takes, an image that sees no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import ConfigError
from provision.jobs.containers import refuse_cpu_image
from provision.jobs.limits import refuse
from provision.jobs.scheduler_request import batch_for
from provision.launch.rank_threads import cpus_of_node
from provision.model.batch import Batch
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.container import Runtime
from provision.profile.patterns import MODULE, SHELL_PATH, TIME
from provision.profile.site import Site
from provision.profile.strategy import PLUGINS, STRATEGIES, StrategyName
from provision.schedulers import scheduler_for


@dataclass(frozen=True, slots=True, kw_only=True)
class UserJob:
    """What somebody asked for. What is None is by the site: nodes, GPUs and ranks of each, time, runtime, module.

    `script` is absolute, or stands in the folder that the job is submitted from, or begins with a `$VARIABLE` that the
    modules set (a plug-in's own example); `command` is how the file was made.
    """

    kind: StrategyName
    site: Site
    arch: Arch
    command: str
    module: str
    modulepath: str
    script: str = "train.py"
    arguments: tuple[str, ...] = ()
    nodes: int | None = None
    gpus: int | None = None
    ranks_per_node: int | None = None
    cpus: int | None = None
    use_gpu: bool = True
    runtime: Runtime | None = None
    image: str | None = None
    venv: str | None = None
    time: str | None = None
    account: str | None = None
    queue: str | None = None
    data: str | None = None
    resume: str | None = None
    stage_in: str | None = None
    watch_gpus: bool = False
    record: bool = False


def shape_of(job: UserJob) -> Shape:
    """The shape of a job.

    Raises:
        ConfigError: this kind of job does not have such a shape.
    """
    arch, gpu = job.arch, job.arch.gpu if job.use_gpu else None
    alone = job.kind in ("single", "mirrored")
    nodes = job.nodes or (1 if alone else arch.proof.nodes)
    if job.gpus and not job.use_gpu:
        raise ConfigError("`--gpus` and `--no-gpu` contradict each other", hint="leave one of them out")
    if alone and nodes > 1:
        raise ConfigError(
            f"a `{job.kind}` job has one node, and `--nodes` is {nodes}",
            evidence=["MirroredStrategy sees the GPUs of its own node only"] if job.kind == "mirrored" else [],
            hint="leave `--nodes` out, or `provision job horovod` or `multiworker`",
        )
    if alone and (job.ranks_per_node or 1) > 1:
        raise ConfigError(
            f"a `{job.kind}` job has one task, and `--ranks-per-node` is {job.ranks_per_node}",
            evidence=["one process uses all GPUs; a second one would take them too"] if job.kind == "mirrored" else [],
            hint="leave `--ranks-per-node` out, or `provision job horovod`: one task a GPU",
        )
    gpus = job.gpus or (0 if gpu is None else 1 if job.kind == "single" else gpu.per_node)
    if alone:
        ranks = 1
    elif gpus:
        ranks = job.ranks_per_node or gpus
        if ranks != gpus:
            raise ConfigError(
                f"{ranks} ranks and {gpus} GPUs on each node: `{job.kind}` has one rank for each GPU",
                hint=f"`--gpus {ranks}`, or leave `--ranks-per-node` out",
            )
    else:
        ranks = job.ranks_per_node or (arch.node.sockets if arch.node else arch.proof.ranks_per_node)
    cpus = job.cpus or _cpus(job, ranks, gpus)
    return Shape(
        nodes=nodes,
        ranks_per_node=ranks,
        cpus_per_rank=cpus,
        gpus_per_node=gpus,
        devices=max(1, gpus // ranks),
    )


def _cpus(job: UserJob, ranks: int, gpus: int) -> int:
    """CPUs of a rank: those that belong to its GPUs, or its share of the node."""
    per_gpu, whole = job.arch.job.cpus_per_task, cpus_of_node(job.site, job.arch)
    if job.arch.gpu is not None:
        per_gpu = per_gpu or whole // job.arch.gpu.per_node
        return per_gpu * max(1, gpus // ranks)
    return per_gpu or whole // ranks


def runtime_of(job: UserJob) -> Runtime:
    """How TensorFlow is run.

    Raises:
        ConfigError: the site does not have it so.
    """
    site = job.site
    if job.kind in PLUGINS:
        if job.runtime not in (None, "modules"):
            raise ConfigError(
                f"`{job.kind}` is what the site's own modules bring, and `--runtime {job.runtime}` has others",
                hint="leave `--runtime` out",
            )
        return "modules"
    usable = [one for one in site.runtimes if one != "modules" or job.arch.provided]
    runtime = job.runtime or (usable or site.runtimes)[0]
    if runtime not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` does not run TensorFlow by `{runtime}`",
            evidence=[f"`runtimes` in `{site.origin}`: {', '.join(site.runtimes)}"],
            hint=f"`--runtime {site.runtimes[0]}`, or describe it in `{site.origin}`",
        )
    if runtime == "modules" and not job.arch.provided:
        raise ConfigError(
            f"arch `{job.arch.name}` names no modules of the site's own that bring TensorFlow",
            evidence=[f"`archs.{job.arch.name}.provided` in `{site.origin}` is empty"],
            hint="`--runtime venv` runs our environment",
        )
    if runtime != "container" and job.image:
        raise ConfigError("`--image` is for `--runtime container`", hint="add `--runtime container`")
    return runtime


def check(job: UserJob) -> None:
    """Refuse what the site does not have.

    Raises:
        ConfigError: a strategy that is absent, a wrong time, module or path, or an image that sees no GPU.
    """
    site, strategy = job.site, job.site.strategy(job.kind)
    if job.kind in PLUGINS and not strategy.modules and strategy.note is None:
        raise ConfigError(
            f"site `{site.name}` has no `{job.kind}`",
            evidence=[f"there is no `strategies.{job.kind}` with its modules in `{site.origin}`"],
            hint=f"one of: {', '.join(one for one in STRATEGIES if site.strategy(one).status != 'absent')}",
        )
    if strategy.status == "absent":
        source = site.source(f"strategies.{job.kind}.status")
        raise ConfigError(
            f"`{job.kind}` does not work at site `{site.name}`: {strategy.note or 'its file says so'}",
            evidence=[f"`strategies.{job.kind}` in `{site.origin}`" + (f" ({source})" if source else "")],
            hint=f"one of: {', '.join(one for one in STRATEGIES if site.strategy(one).status != 'absent')}",
        )
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, there is no job to write",
            hint=f"`provision activate`, then `{job.arch.launcher.name} -n 2 python {job.script}`",
        )
    if job.kind == "multiworker" and (site.scheduler.name != "slurm" or job.arch.launcher.name != "srun"):
        raise ConfigError(
            f"`multiworker` needs srun, and arch `{job.arch.name}` starts ranks by `{job.arch.launcher.name}`",
            evidence=["SlurmClusterResolver reads SLURM_STEP_NUM_TASKS and others that srun alone sets"],
            hint="`provision job horovod`",
        )
    if job.stage_in is not None and (site.files.burst_buffer == "none" or job.data is not None):
        raise ConfigError(
            "`--stage-in` and `--data` name two places for the data"
            if job.data is not None
            else f"site `{site.name}` has no burst buffer to stage data to",
            evidence=[f"`files.burst_buffer` in `{site.origin}` is `{site.files.burst_buffer}`"],
            hint=f"`--data {job.stage_in}` reads them where they are",
        )
    if job.watch_gpus and not (job.arch.gpu and job.use_gpu):
        raise ConfigError(
            f"`--watch-gpus`, and the job on arch `{job.arch.name}` has none", hint="leave `--watch-gpus` out"
        )
    if job.time is not None and not TIME.fullmatch(job.time):
        raise ConfigError(f"`--time {job.time}` is no time", hint="`--time 00:30:00`")
    if not MODULE.fullmatch(job.module):
        raise ConfigError(f"`--module {job.module!r}` is no name of a module", hint="`--module tensorflow/2.15.1`")
    for option, value in (
        ("--image", job.image),
        ("--venv", job.venv),
        ("--data", job.data),
        ("--stage-in", job.stage_in),
    ):
        if value is not None and not SHELL_PATH.fullmatch(value.removeprefix("docker://")):
            raise ConfigError(
                f"`{option} {value!r}` is no path: letters, digits, `_./@%+:=-` and `$NAME`",
                hint=f"`{option} /a/path`",
            )
    if job.resume is not None and not scheduler_for(site.scheduler.name).is_job_id(job.resume):
        raise ConfigError(f"`--resume-from {job.resume}` is no id of a job", hint="`--resume-from 123`")
    if any(ord(letter) < 32 for text in (job.script, *job.arguments) for letter in text):
        raise ConfigError("a path or argument of the script holds a line break", hint="`--script train.py`")
    if runtime_of(job) == "container" and job.arch.gpu and job.use_gpu:
        refuse_cpu_image(job.image or (site.container.image if site.container else ""), job.arch, "`--no-gpu`")


def unstaged(job: UserJob, shape: Shape) -> str | None:
    """What to tell of a job of so many nodes that its data are due on the burst buffer, if they are not."""
    files = job.site.files
    if job.stage_in is not None or not files.needs_burst_buffer(shape.nodes):
        return None
    return (
        f"{shape.nodes} nodes read the data from the parallel file system: from {files.burst_buffer_from} nodes on "
        "they belong on the burst buffer, `--stage-in FOLDER`"
    )


def batch_of(job: UserJob, shape: Shape) -> Batch:
    """What the job asks its scheduler for.

    Raises:
        ConfigError: the site would not accept it.
    """
    batch = batch_for(
        job.site,
        job.arch,
        shape,
        name=f"{job.kind}-{job.arch.name}",
        time=job.time,
        account=job.account,
        queue=job.queue,
    )
    refuse(job.site, job.arch, batch)
    return batch
