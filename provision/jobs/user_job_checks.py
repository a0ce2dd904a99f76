"""The checks of a user's job before its script is written: one function for each concern, one error for all. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from provision.errors import ConfigError, Fault, raise_faults
from provision.jobs.containers import cpu_image_fault, pull_command
from provision.jobs.limits import refusals
from provision.jobs.user_job import Decision, UserJob, get_environment, nodes_without_gpus, run_by_hand
from provision.knowledge.frameworks import FRAMEWORKS, image_framework
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.images import DOCKER
from provision.launch.rank_threads import INTER, INTRA, explain_too_many_threads
from provision.profile.arch import CONSTRAINT
from provision.profile.container import Container
from provision.profile.patterns import CONTROL, MEMORY, MODULE, OPTION, SHELL_PATH, TIME
from provision.profile.strategy import PLUGINS, STRATEGIES
from provision.schedulers import TITLES
from provision.schedulers.short_options import option_name
from provision.wording import count

JOB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,63}")
MAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}")
# TensorFlow 2.4 took MultiWorkerMirroredStrategy and CommunicationOptions out of `experimental` (its release notes).
MULTIWORKER_SINCE = (2, 4)


def refuse_user_job(decision: Decision) -> None:
    """Raise for a job that cannot work at its site.

    Raises:
        ConfigError: every reason; the first is the message, the others are in its evidence.
    """
    wrong = [fault for check in CHECKS for fault in check(decision)]
    limits = _limits(decision)
    raise_faults([*wrong, *limits], ConfigError, None if wrong else "refused-by-site")


def _strategy(decision: Decision) -> Iterator[Fault]:
    """The way to train must exist at the site."""
    job, site = decision.job, decision.job.site
    strategy = site.strategy(job.kind)
    if strategy.status != "absent" and (job.kind not in PLUGINS or strategy.modules):
        return
    hint = f"one of: {', '.join(name for name in STRATEGIES if site.strategy(name).status != 'absent')}"
    if job.kind in PLUGINS and strategy.note is None:
        yield Fault(
            "missing",
            "strategy",
            f"site `{site.name}` has no `{job.kind}`",
            evidence=(f"there is no `strategies.{job.kind}` with its modules in `{site.origin}`",),
            hint=hint,
        )
        return
    source = site.source(f"strategies.{job.kind}.status")
    yield Fault(
        "forbidden",
        "strategy",
        f"`{job.kind}` does not work at site `{site.name}`: {strategy.note or 'its profile says so'}",
        evidence=(f"`strategies.{job.kind}` in `{site.origin}`" + (f" ({source})" if source else ""),),
        hint=hint,
    )


def _scheduler(decision: Decision) -> Iterator[Fault]:
    """There must be a scheduler to write a job for."""
    job = decision.job
    if decision.scheduler is None:
        message = f"site `{job.site.name}` has no scheduler, so there is no job to write"
        yield Fault("missing", "scheduler", message, hint=run_by_hand(decision))


def _multiworker(decision: Decision) -> Iterator[Fault]:
    """MultiWorkerMirroredStrategy needs srun."""
    job = decision.job
    if job.kind == "multiworker" and (job.site.scheduler.name != "slurm" or job.arch.launcher.name != "srun"):
        yield Fault(
            "mismatch",
            "launcher",
            f"`multiworker` needs srun, but arch `{job.arch.name}` starts ranks with `{job.arch.launcher.name}`",
            evidence=("SlurmClusterResolver reads SLURM_STEP_NUM_TASKS and others that only srun sets",),
            hint="`provision job horovod`",
        )

    loaded = decision.framework
    if loaded is not None and job.kind not in (*loaded[0].kinds, "mpi"):
        message = f"`{job.kind}` is not a kind of job for {loaded[0].title}, which `{loaded[1]}` provides"
        others = " or ".join(one.title for one in FRAMEWORKS.values() if job.kind in one.kinds) or "another framework"
        stack = f"--stack {job.alternative or 'STACK'}"
        ours = "venv" in job.site.runtimes
        evidence = (
            *((f"`{stack}` loads our environment with {others}; `provision stack list` lists the stacks",) * ours),
            f"`--runtime modules --module NAME` loads one of the site; `provision modules --site {job.site.typed}` lists them",
            f"kinds for {loaded[0].title}: {', '.join(loaded[0].kinds)}",
        )
        hint = f"{f'`provision job {job.kind} {stack}`, or ' * ours}`--runtime modules --module NAME`"
        yield Fault("mismatch", "strategy", message, evidence=evidence, hint=hint)
    elif job.kind == "multiworker" and loaded is not None and loaded[2] < MULTIWORKER_SINCE:
        message = f"TensorFlow of `{loaded[1]}` has no `tf.distribute.MultiWorkerMirroredStrategy`, which came with 2.4"
        yield Fault("mismatch", "strategy", message, hint="`provision job horovod`")


def _data(decision: Decision) -> Iterator[Fault]:
    """The data must be in one place, and that place must exist."""
    job = decision.job
    if job.stage_in is None:
        if job.burst_buffer_gb is not None:
            message = "`--burst-buffer-gb` is the size for the data of `--stage-in`, which was not given"
            yield Fault(
                "missing", "burst-buffer", message, hint=f"`--stage-in FOLDER --burst-buffer-gb {job.burst_buffer_gb}`"
            )
        return
    hint = f"`--data {job.stage_in}` reads the data where they are"
    if job.data is not None:
        yield Fault("mismatch", "data", "`--stage-in` and `--data` name two places for the data", hint=hint)
    if job.site.files.burst_buffer == "none":
        yield Fault(
            "missing",
            "burst-buffer",
            f"site `{job.site.name}` has no burst buffer to stage data to",
            evidence=(f"`files.burst_buffer` in `{job.site.origin}` is `none`",),
            hint=hint,
        )


def _gpus(decision: Decision) -> Iterator[Fault]:
    """Options that need GPUs must be given only if the job has GPUs."""
    job = decision.job
    if job.gpus and not job.use_gpu:
        yield Fault("mismatch", "gpus", "`--gpus` and `--no-gpu` contradict each other", hint="leave one of them out")
    if job.watch_gpus and not (job.arch.gpu and job.use_gpu):
        yield Fault(
            "mismatch",
            "gpus",
            "`--watch-gpus` needs GPUs, but this job requests none",
            evidence=("`--no-gpu` was given",) if job.arch.gpu else (f"arch `{job.arch.name}` has no GPUs",),
            hint="leave `--watch-gpus` out",
        )

    if job.kind == "single" and (job.gpus or 1) > 1:
        message = f"a `single` job uses one GPU, but `--gpus` is {job.gpus}"
        yield Fault(
            "mismatch", "gpus", message, hint=f"`provision job mirrored --gpus {job.gpus}`, or leave `--gpus` out"
        )
    others = nodes_without_gpus(job.site)
    if job.arch.gpu and not job.use_gpu and others and decision.nodes is job.arch:
        same = [one.name for one in job.site.archs if one.gpu and one.target in [other.target for other in others]]
        yield Fault(
            "mismatch",
            "gpus",
            f"arch `{job.arch.name}` has GPUs in all of its nodes, and the nodes without GPUs have another CPU",
            evidence=tuple(f"`archs.{one.name}.target` is `{one.target}`" for one in (job.arch, *others)),
            hint=" or ".join(f"`--arch {name} --no-gpu`" for name in same) or f"`--arch {others[0].name}`",
        )


def _words(decision: Decision) -> Iterator[Fault]:
    """The words that a user types go into the script: they must have the expected form."""
    job = decision.job
    if job.time is not None and not TIME.fullmatch(job.time):
        yield _invalid("time", f"`--time {job.time}` is not a valid time", "`--time 00:30:00`")
    for name in (job.module, *job.site_modules):
        if not MODULE.fullmatch(name):
            yield _invalid(
                "module", f"`--module {name!r}` is not a valid name of a module", "`--module tensorflow/2.15.1`"
            )
    paths = (("image", job.image), ("venv", job.venv), ("data", job.data), ("stage-in", job.stage_in))
    for name, value in (*paths, *(("overlay", path) for path in job.overlays)):
        if value is not None and not SHELL_PATH.fullmatch(value.removeprefix("docker://")):
            message = f"`--{name} {value!r}` is not a valid path: letters, digits, `_./@%+:=-` and `$NAME`"
            yield _invalid(name, message, f"`--{name} /a/path`")
    if job.resume is not None and decision.scheduler is not None and not decision.scheduler.is_job_id(job.resume):
        message = f"`--resume-from {job.resume}` is not a valid job ID"
        yield _invalid("resume-from", message, "`--resume-from 123`")
    if any(CONTROL.search(text) for text in (job.script, *job.arguments)):
        message = "the path of the script or one of its arguments has a line break or another control character in it"
        yield _invalid("script", message, "`--script train.py`")


def _scheduler_words(decision: Decision) -> Iterator[Fault]:
    """What the user asks of the scheduler must have the expected form, and the scheduler must have such a thing."""
    job, scheduler = decision.job, decision.scheduler
    if scheduler is None:
        return
    title = TITLES[job.site.scheduler.name]
    for option, value, pattern, example in (
        ("name", job.name, JOB_NAME, "mnist-2"),
        ("memory", job.memory, MEMORY, "8G"),
        ("constraint", job.constraint, CONSTRAINT, "a100"),
        ("mail", job.mail, MAIL, "me@example.org"),
    ):
        if value is not None and not pattern.fullmatch(value):
            yield _invalid(option, f"`--{option} {value!r}` is not valid", f"`--{option} {example}`")
    if job.memory is not None and job.site.scheduler.memory == "none":
        yield Fault(
            "forbidden",
            "memory",
            f"jobs at site `{job.site.name}` request no memory",
            evidence=(f"`scheduler.memory` in `{job.site.origin}` is `none`",),
            hint="leave `--memory` out",
        )
    if job.qos is not None and job.site.scheduler.name != "slurm":
        yield Fault("missing", "qos", f"{title} has no QOS", hint="`--queue QUEUE`")
    if job.array is not None and scheduler.ARRAY is None:
        yield Fault("missing", "array", f"{title} has no job arrays", hint="leave `--array` out")
    elif job.array is not None and not scheduler.is_array(job.array):
        yield _invalid(
            "array",
            f"`--array {job.array!r}` does not name the tasks of an array of {title}",
            f"`--array {scheduler.ARRAY_EXAMPLE}`",
        )
    if job.requeue and not scheduler.CAN_REQUEUE:
        yield Fault("missing", "requeue", f"{title} does not start jobs again", hint="leave `--requeue` out")
    for text in job.extra:
        yield from _extra(text, decision)


def _extra(text: str, decision: Decision) -> Iterator[Fault]:
    """An option in the scheduler's own words must be one, and must not contradict what the script does."""
    scheduler, batch = decision.scheduler, decision.batch
    assert scheduler is not None and batch is not None, "the caller asked"
    if not OPTION.fullmatch(text) or CONTROL.search(text):
        yield _invalid(
            "extra",
            f"`--extra {text!r}` is not an option of {TITLES[decision.job.site.scheduler.name]}",
            f"`--extra '{scheduler.PREFIX} OPTION'`",
        )
        return
    own = replace(batch, extra=(), options=(), scheduler=replace(batch.scheduler, options=()))
    name = decision.job.site.scheduler.name
    ours = [option_name(line.line.removeprefix(scheduler.PREFIX), name) for line in scheduler.directives(own)]
    if option_name(text, name) in [*ours, "ntasks"]:
        message = f"`--extra {text!r}` contradicts what the script does: it sets this option itself"
        yield Fault("mismatch", "extra", message, hint="`provision job --help` lists the options that change it")


def _threads(decision: Decision) -> Iterator[Fault]:
    """The pools of all ranks of a node must fit into its threads."""
    job, node = decision.job, decision.nodes.node
    if job.inter is None and job.intra is None:
        return
    threads = dict(decision.threads)
    inter, intra = (int(threads.get(name, 0)) for name in (INTER, INTRA))
    reason = explain_too_many_threads(node, decision.shape.ranks_per_node, inter, intra) if node else None
    if reason:
        yield Fault(
            "limit",
            "threads",
            reason,
            evidence=(f"`archs.{decision.nodes.name}.node.threads` in `{job.site.origin}`",),
            hint="lower `--inter` or `--intra`",
        )


def _invalid(subject: str, message: str, hint: str) -> Fault:
    return Fault("name", subject, message, hint=hint)


def _runtime(decision: Decision) -> Iterator[Fault]:
    """The site must have the runtime of the job."""
    job, site, runtime = decision.job, decision.job.site, decision.runtime
    if job.kind in PLUGINS:
        if job.runtime not in (None, "modules"):
            message = f"`{job.kind}` comes with the site's own modules, which `--runtime {job.runtime}` does not load"
            yield Fault("mismatch", "runtime", message, hint="leave `--runtime` out")
    elif runtime not in site.runtimes:
        yield Fault(
            "forbidden",
            "runtime",
            f"site `{site.name}` has no runtime `{runtime}`",
            evidence=(f"`runtimes` in `{site.origin}`: {', '.join(site.runtimes)}",),
            hint=f"`--runtime {site.runtimes[0]}`, or describe it in `{site.origin}`",
        )
    elif site.modules.name == "none" and runtime == "modules":
        yield Fault(
            "missing",
            "runtime",
            f"site `{site.name}` has no module system, so there are no modules to load",
            evidence=(f"`modules.system` in `{site.origin}` is `none`",),
            hint="`--runtime venv` uses an environment that `provision build` made",
        )
    elif site.modules.name == "none" and runtime == "venv" and job.activate is None:
        yield Fault(
            "missing",
            "module",
            f"no environment is published as `{job.module}` for arch `{job.arch.name}`",
            evidence=(f"site `{site.name}` has no module system: the job needs the path of the environment",),
            hint=get_environment(job),
        )
    elif runtime == "modules" and not job.provided:
        yield Fault(
            "missing",
            "runtime",
            f"the site has no modules with a framework for arch `{job.arch.name}`",
            evidence=(f"`archs.{job.arch.name}.provided` in `{site.origin}` is empty",),
            hint="`--module NAME` names some, or `--runtime venv` uses an environment that `provision build` made",
        )


def _shape(decision: Decision) -> Iterator[Fault]:
    """This kind of job must be able to have these nodes, ranks and GPUs."""
    job, shape, mirrored = decision.job, decision.shape, decision.job.kind == "mirrored"
    if job.alone and shape.nodes > 1:
        yield Fault(
            "mismatch",
            "nodes",
            f"a `{job.kind}` job has one node, but `--nodes` is {shape.nodes}",
            evidence=("MirroredStrategy sees the GPUs of its own node only",) if mirrored else (),
            hint="leave `--nodes` out, or `provision job horovod` or `multiworker`",
        )
    if job.alone and (job.ranks_per_node or 1) > 1:
        yield Fault(
            "mismatch",
            "ranks",
            f"a `{job.kind}` job has one task, but `--ranks-per-node` is {job.ranks_per_node}",
            evidence=("one process uses all GPUs; a second one would take them too",) if mirrored else (),
            hint="leave `--ranks-per-node` out, or `provision job horovod`: one task for each GPU",
        )
    if not job.alone and job.kind != "mpi" and shape.gpus_per_node not in (0, shape.ranks_per_node):
        yield Fault(
            "mismatch",
            "ranks",
            f"a `{job.kind}` job has one rank for each GPU, but this one has {count(shape.ranks_per_node, 'rank')} and "
            f"{count(shape.gpus_per_node, 'GPU')} on each node",
            hint=f"`--gpus {shape.ranks_per_node}`, or leave `--ranks-per-node` out",
        )


def _limits(decision: Decision) -> tuple[Fault, ...]:
    """What the site's scheduler would refuse. A time that is not valid cannot be compared with a limit."""
    job, batch = decision.job, decision.batch
    if batch is None or (job.time is not None and not TIME.fullmatch(job.time)):
        return ()
    return refusals(job.site, decision.nodes, batch)


# An image with Horovod for TensorFlow, built with Open MPI (github.com/horovod/horovod, docker/horovod/Dockerfile of 0.28.1).
EXAMPLE_WITH_HOROVOD = "docker://horovod/horovod:0.28.1"


def _image(decision: Decision) -> Iterator[Fault]:
    """An image is for containers, and must support the GPUs."""
    job = decision.job
    if decision.runtime != "container":
        if job.image:
            yield Fault("mismatch", "image", "`--image` is for `--runtime container`", hint="add `--runtime container`")
    elif job.use_gpu:
        image = job.image or (job.site.container.image if job.site.container else "")
        fault = cpu_image_fault(image, job.arch, "`--no-gpu`")
        if fault:
            yield fault


def _overlays(decision: Decision) -> Iterator[Fault]:
    """Overlays are for containers of Apptainer."""
    job, container = decision.job, decision.job.site.container
    given = [("overlay", "--overlay")] * bool(job.overlays) + [("no-overlay", "--no-overlay")] * (not job.use_overlay)
    for subject, option in given:
        if decision.runtime != "container":
            yield Fault(
                "mismatch", subject, f"`{option}` is for `--runtime container`", hint="add `--runtime container`"
            )
        elif container is not None and container.command == "shifter":
            message = f"`{option}` cannot be used: Shifter has no overlays"
            hint = f"leave `{option}` out, or `--image` with an image that has the packages in it"
            yield Fault("mismatch", subject, message, hint=hint)
        elif subject == "no-overlay" and container is not None and container.overlay is None:
            message = f"`--no-overlay`: the containers of site `{job.site.name}` have no overlay"
            yield Fault("mismatch", subject, message, hint="leave `--no-overlay` out")


def _framework(decision: Decision) -> Iterator[Fault]:
    """The container must have the framework of this kind of job, as far as the image's name and our overlay show it."""
    job, container = decision.job, decision.job.site.container
    if job.kind == "mpi" or decision.runtime != "container" or container is None:
        return
    image, ours = job.image or container.image, _has_our_overlay(job, container)
    inside = TENSORFLOW if ours else image_framework(image)
    if inside is None or job.kind in inside.kinds:
        return
    others = [one for one in FRAMEWORKS.values() if job.kind in one.kinds]
    yield Fault(
        "mismatch",
        "image",
        f"`{job.kind}` is not a kind of job for {inside.title}, which is in "
        + (f"the overlay of site `{job.site.name}`" if ours else f"the image `{image}`"),
        evidence=(
            *(("`provision job overlay` puts TensorFlow into it; `--overlay FILE` mounts your own over it",) * ours),
            f"kinds for {inside.title}: {', '.join(inside.kinds)}",
        ),
        hint=" or ".join(f"`--image {one.image}{' --no-overlay' * bool(container.overlay)}`" for one in others),
    )


def _has_our_overlay(job: UserJob, container: Container) -> bool:
    """Whether the job mounts only the overlay that `provision job overlay` makes, so that its contents are known."""
    mounted = container.overlay is not None and job.use_overlay and not job.overlays
    return mounted and bool(container.overlay_templates)


def _horovod(decision: Decision) -> Iterator[Fault]:
    """The overlay that `provision job overlay` makes has no Horovod, and it hides the one of an image.

    Our locks of overlays have none: it would have to be compiled against an MPI inside the image. What is in an overlay of the
    user, or in one that the site has ready (no templates to make it from), is not known; the job asks it before the ranks start.
    """
    job = decision.job
    container = job.site.container
    if job.kind != "horovod" or decision.runtime != "container" or container is None:
        return
    if not _has_our_overlay(job, container):
        return
    image = job.image or EXAMPLE_WITH_HOROVOD
    pull = pull_command(job.site, job.arch, image) if image.startswith(DOCKER) else None
    yield Fault(
        "missing",
        "horovod",
        f"the overlay of site `{job.site.name}` has no Horovod"
        + (f", and it hides the one of `{job.image}`" if job.image else ""),
        evidence=(
            f"`provision job overlay` puts TensorFlow into `{container.overlay}`; Horovod needs an MPI in the image",
            *((f"`{pull}` writes the script that fetches the image",) if pull else ()),
            "`--overlay FILE` mounts your own overlay, if Horovod is in it",
            f"without Horovod, on one node: `provision job mirrored --site {job.site.typed} --arch {job.arch.name}`",
        ),
        hint=f"`--image {image} --no-overlay` uses the Horovod of that image",
    )


# In the order in which they are reported: first the faults that make the others pointless.
CHECKS: tuple[Callable[[Decision], Iterator[Fault]], ...] = (
    *(_strategy, _scheduler, _multiworker, _data, _gpus),
    *(_words, _scheduler_words, _runtime, _image, _framework),
    *(_overlays, _horovod, _shape, _threads),
)
