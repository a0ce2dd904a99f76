"""The values of a user's job script: directives, modules, variables, and the command that starts the training. Pure.

The templates `jobs/<kind>.sh.j2` contain the text around them.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace

from provision.errors import ConfigError
from provision.jobs.script import explain, forget_line, module_lines, provided_lines
from provision.jobs.user_job import Decision, UserJob, decide, interface_of, unstaged
from provision.jobs.user_job_checks import refuse_user_job
from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.launch.launchers import RANK_VARIABLES, launch_argv, node_argv
from provision.launch.rank_threads import module_environ
from provision.model.batch import Batch
from provision.model.quoting import Code, bash, directive, quote_sh, shell_path, variable, word, words
from provision.profile.arch import Arch
from provision.profile.container import Container, Runtime
from provision.profile.patterns import SHELL_PATH
from provision.profile.strategy import PLUGINS
from provision.schedulers import SchedulerInterface

PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy")

# What is between the lines of a command.
NEXT_LINE = Code(" \\\n  ")

# Records the load of the GPUs as long as the rank lives, which keeps the process ID of this shell. Nothing of it holds the
# rank's own output open: launchers wait for its end.
WATCH = Code(
    '[ "$(nvidia-smi -L | wc -l)" = 1 ]; } && { '
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,utilization.memory --format=csv --loop=1 "
    '>"$PROVISION_OUTPUT/gpu-$(hostname)-$$.csv" & watcher=$!; while kill -0 $$; do sleep 1; done; kill $watcher; '
    '}; } >/dev/null 2>&1 & exec "$@"'
)

# The variables of the job script that every rank needs, beside those that the job exports for its threads and libraries.
RANK_VARIABLES_OF_EVERY_JOB = (
    "PATH",
    "LD_LIBRARY_PATH",
    "PROVISION_OUTPUT",
    "PROVISION_DATA",
    "PROVISION_RESUME",
    "HDF5_USE_FILE_LOCKING",
    "TF_CPP_MIN_LOG_LEVEL",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script(Decision):
    """The values of a job's template; `launch` is the command that starts the training, quoted for bash."""

    scheduler: SchedulerInterface
    batch: Batch
    header: tuple[Code, ...]
    meanings: tuple[Code, ...]
    forget: Code | None
    """The line that unsets what the shell that submits the script would leave to srun."""
    exports: tuple[tuple[str, str], ...]
    proxies: tuple[tuple[str, str], ...]
    """The variables through which the nodes reach the internet."""
    modules: tuple[Code, ...]
    loaded: tuple[str, ...]
    """The modules that must be loaded after these lines."""
    output: tuple[str, ...]
    activate: str | None
    launch: Code
    inside: Code | None = None
    """The command that runs one process in the container, up to the program; None without a container."""
    interface: FrameworkInterface
    """The framework whose variables the job sets."""
    container: Container | None = None
    image: str | None = None
    cuda_home: Code | None = None
    library_path: Code | None = None
    """The value of LD_LIBRARY_PATH that the job sets; our modulefile sets its own, and a container has one inside."""
    notes: tuple[str, ...] = ()
    home: str | None = None
    """The variable, set by the modules, with which the path of the training script begins; None: there is no such variable."""


def make_script(job: UserJob) -> Script:
    """Everything that the template of this job needs.

    Raises:
        ConfigError: such a job cannot work at this site.
    """
    decision = decide(job)
    refuse_user_job(decision)
    runtime, shape, scheduler, batch = decision.runtime, decision.shape, decision.scheduler, decision.batch
    assert scheduler is not None and batch is not None, "a site without a scheduler was refused"
    # Our modulefile sets the variables of the arch. Without it the job sets them. In a container there are no modules, so
    # the job also sets the variables that a module of the site would set.
    of_arch = () if runtime == "venv" else job.arch.environ
    of_modules = module_environ(job.arch) if runtime == "container" else ()
    hidden = (("CUDA_VISIBLE_DEVICES", ""),) if job.arch.gpu and not job.use_gpu else ()
    exports = tuple(
        dict((*hidden, *of_modules, *of_arch, *job.site.strategy(job.kind).environ, *decision.threads)).items()
    )
    home = re.match(r"\$\{?(\w+)", job.script, re.ASCII)
    container = container_of_job(job) if runtime == "container" else None
    image = job.image or (container.image if container else None)
    interface = interface_of(job, runtime)
    finds_cuda = runtime == "container" or interface.cuda_folder is None
    cuda = job.arch.gpu.cuda_home if job.arch.gpu and shape.gpus_per_node and not finds_cuda else None
    if cuda is not None and not SHELL_PATH.fullmatch(cuda):
        raise ConfigError(
            f"`archs.{job.arch.name}.gpu.cuda_home` is not a valid path: {cuda!r}", hint=f"edit `{job.site.origin}`"
        )
    header, meanings = explain(scheduler, batch)
    return Script(
        **{name: getattr(decision, name) for name in Decision.__slots__},
        header=(*header, *_staging(job)),
        meanings=meanings,
        forget=forget_line(job.site.scheduler.name, scheduler.directives(batch)),
        exports=exports,
        proxies=_proxies(job),
        modules=_load_lines(job, runtime),
        loaded=_loaded(job, runtime),
        output=_output(job),
        activate=job.activate if runtime == "venv" and job.site.modules.name == "none" else None,
        launch=_launch(decision, _rank_variables(decision, exports, sets_xla_flags=cuda is not None)),
        inside=_inside(job, container) if container else None,
        interface=interface,
        container=container,
        image=image,
        cuda_home=shell_path(cuda, unset_is_empty=True) if cuda else None,
        library_path=_library_path(job.arch) if runtime == "modules" and job.arch.library_path else None,
        notes=_notes(decision),
        home=home[1] if home else None,
    )


def _proxies(job: UserJob) -> tuple[tuple[str, str], ...]:
    """The variables of the proxy of the nodes. Workers of `multiworker` connect by gRPC, which a proxy would intercept."""
    return job.site.network.environ if job.site.network.compute == "proxy" and job.kind != "multiworker" else ()


def container_of_job(job: UserJob) -> Container | None:
    """The site's container as the job uses it: without the site's overlay there is no setup file of that overlay either."""
    container = job.site.container
    if container is None or job.use_overlay:
        return container
    return replace(container, overlay=None, setup=container.setup if job.overlays else None)


def _staging(job: UserJob) -> tuple[Code, ...]:
    """Directives of DataWarp, which copies the data to the burst buffer before the job (NERSC's pages of Cori, 2018)."""
    if job.stage_in is None:
        return ()
    return (
        directive("#DW", f"jobdw capacity={job.burst_buffer_gb or 10}GB access_mode=striped type=scratch"),
        directive("#DW", f"stage_in source={shell_path(job.stage_in)} destination=$DW_JOB_STRIPED/data type=directory"),
    )


def _notes(decision: Decision) -> tuple[str, ...]:
    job, shape = decision.job, decision.shape
    strategy, site = job.site.strategy(job.kind), job.site
    notes = [f"{job.site.title}: {site.retirement}."] if site.retired else []
    if site.support:
        notes.append(f"Questions about the site: {site.support}")
    if job.arch.gpu and not job.use_gpu:
        kind = "" if decision.nodes is job.arch else f", on nodes of arch `{decision.nodes.name}`"
        notes.append(f"Without GPUs, for a shorter wait in the queue{kind}. Leave `--no-gpu` out to use GPUs.")
    least = decision.nodes.job.least_gpu_use
    if least and shape.gpus_per_node:
        rule = f"The site cancels a job that uses its GPUs less than {least} % of the time"
        fewer = "begin with `--gpus 1`, and " if shape.gpus_per_node > 1 else ""
        notes += textwrap.wrap(f"{rule}: {fewer}see what `--watch-gpus` records.", 118, break_on_hyphens=False)
    if strategy.note:
        notes += textwrap.wrap(f"{strategy.status} here: {strategy.note}.", 118)
    advice = unstaged(job, shape)
    return (*notes, *((f"Note: {advice}.",) if advice else ()))


def _output(job: UserJob) -> tuple[str, ...]:
    """Where the output of the job goes, when the site deletes it there, and how to copy it: lines of a comment."""
    site, task = job.site, "_TASK" if job.array else ""
    if site.files.scratch is None:
        return (f"Output: runs/JOBID{task} below the folder from which you submit.",)
    deletes = f" The site deletes there {site.files.scratch_deletes}." if site.files.scratch_deletes else ""
    return (
        *textwrap.wrap(
            f"Output: {site.files.scratch}/runs/JOBID{task}.{deletes} Copy it to the current folder with", 118
        ),
        f"`provision data pull runs/JOBID{task} --site {site.typed}`.",
    )


def _loaded(job: UserJob, runtime: Runtime) -> tuple[str, ...]:
    """The modules that must be loaded after the lines that load them. A path of a modulefile is checked before."""
    if job.site.modules.name == "none":
        return ()
    return tuple(name for name in _modules(job, runtime) if not name.startswith("/"))


def _load_lines(job: UserJob, runtime: Runtime) -> tuple[Code, ...]:
    """The lines that unload all modules as the site does it, then load exactly the modules of this runtime."""
    modules = _modules(job, runtime)
    if runtime == "modules":
        return provided_lines(job.site, job.arch, modules)
    path = (job.modulepath,) if runtime == "venv" else ()
    return module_lines(job.site.modules, modules, away=job.arch.unload, path=path)


def _modules(job: UserJob, runtime: Runtime) -> tuple[str, ...]:
    """The modules of a runtime.

    A container has its own compiler, CUDA and Python, and must not find the site's. The job loads the arch's modules for
    it only if they provide the launcher, or if the site has no builds: then the profile names what containers need.
    """
    site, arch = job.site, job.arch
    if runtime == "venv":
        return (job.module,)
    if runtime == "modules":
        return job.provided
    outside = arch.modules if "venv" not in site.runtimes or arch.launcher.name in ("mpirun", "mpiexec") else ()
    program = site.container.module if site.container else None
    return (*outside, *([program] if program else []))


def _launch(decision: Decision, variables: tuple[str, ...]) -> Code:
    """The command that runs the training, as bash. `variables` are those that the launcher passes on by name."""
    job, shape, arch = decision.job, decision.shape, decision.job.arch
    program = [*([Code('"$deliver"')] if decision.deliver != "files" else []), *_training(job)]
    container = container_of_job(job) if decision.runtime == "container" else None
    if container is not None:
        program = _contained(job, container, program)
    batch = decision.batch
    if batch is not None:
        program = [*_words_before(decision.nodes, batch), *program]
    if decision.without_launcher and decision.runtime != "container":
        return words(program)
    if job.kind == "ddp":
        program = [*_numbered(decision), *program]
    elif decision.reverses_gpus:
        program = [*_reversed(arch), *program]
    if decision.watched_by_ranks:
        program = [*_watching(arch), *program]
    if decision.without_launcher:
        return NEXT_LINE.join(_lines(program))
    argv = launch_argv(
        arch.launcher,
        (),
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        cpus=shape.cpus_per_rank,
        environ=[
            *(bash('"%s=${%s:-}"', variable(name), variable(name)) for name in variables),
            # The profile's own, not the user's, which may have a password: everybody reads command lines.
            *(f"{name}={value}" for name, value in _proxies(job)),
        ],
    )
    return NEXT_LINE.join((*_lines(argv), *_lines(program)))


def _words_before(arch: Arch, batch: Batch) -> list[str]:
    """The words before the program on the nodes of a job: those of its queue, or of one whose nodes are in the same mode."""
    queues = arch.queues_of(batch.partition, batch.qos)
    if not any(queue.constraint for queue in queues):
        queues = tuple(queue for queue in arch.queues if queue.constraint and queue.constraint == batch.constraint)
    return [*next((queue.run_with for queue in queues if queue.run_with), ())]


def _training(job: UserJob) -> list[str]:
    """The words that run the training script with its arguments. The example of a plug-in has arguments in the profile."""
    of_example = job.site.strategy(job.kind).arguments if job.script.startswith("$") else ()
    program = ["python", "-u", *(("-m", "mpi4py") if job.kind == "mpi" else ()), Code('"$script"')]
    program += [bash('"%s"', shell_path(argument)) if "$" in argument else argument for argument in of_example]
    program += job.arguments
    if job.resume is not None:
        program += ["--resume-from", Code('"$PROVISION_RESUME"')]
    elif job.requeue:
        program.append(Code('${PROVISION_RESUME:+--resume-from "$PROVISION_RESUME"}'))
    return program


def _rank_variables(
    decision: Decision, exports: tuple[tuple[str, str], ...], *, sets_xla_flags: bool
) -> tuple[str, ...]:
    """The variables that ranks need from the script, each once: some launchers pass no variable unless it is named."""
    job, files = decision.job, decision.job.site.files
    of_modulefile = (*dict(module_environ(job.arch)), *dict(job.arch.environ), "VIRTUAL_ENV", "PYTHONNOUSERSITE")
    groups: tuple[tuple[bool, tuple[str, ...]], ...] = (
        (True, tuple(dict(exports))),
        (decision.runtime == "venv", of_modulefile),
        (True, RANK_VARIABLES_OF_EVERY_JOB),
        (job.kind in PLUGINS, ("PYTHONPATH",)),
        (sets_xla_flags, ("XLA_FLAGS",)),
        (bool(job.arch.library_path) and decision.runtime != "container", ("LD_LIBRARY_PATH",)),
        (
            bool(files.scratch) and interface_of(job, decision.runtime) is TENSORFLOW,
            ("TFDS_DATA_DIR", "TFHUB_CACHE_DIR"),
        ),
        (bool(files.temporary), ("TMPDIR",)),
        (job.kind == "mirrored", ("PROVISION_REPLICAS",)),
        (job.kind == "ddp", ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")),
        (job.array is not None, ("PROVISION_TASK",)),
    )
    return tuple(dict.fromkeys(name for needed, names in groups if needed for name in names))


def _lines(texts: tuple[str, ...] | list[str]) -> list[Code]:
    """Words as lines of a readable width; an option and its value are on one line."""
    units: list[Code] = []
    for quoted in map(word, texts):
        if units and units[-1] in ("-e", "-x", "--env"):
            units[-1] = words((units[-1], quoted))
        else:
            units.append(quoted)
    lines: list[Code] = []
    for unit in units:
        if lines and len(lines[-1]) + len(unit) < 110:
            lines[-1] = words((lines[-1], unit))
        else:
            lines.append(unit)
    return lines


def _numbered(decision: Decision) -> list[str]:
    """The words before a program of PyTorch that give each process its number, and its number on its node.

    A process takes the GPU with its number on the node. Where the last GPU is the nearest to the first process, they are listed
    from the end.
    """
    job, shape = decision.job, decision.shape
    arch = job.arch
    number, local = RANK_VARIABLES[arch.launcher.name]
    if number is None:
        raise ConfigError(
            f"a `{job.kind}` job needs a launcher, but that of arch `{arch.name}` is `{arch.launcher.name}`",
            hint=f"`--launcher NAME`, or set `archs.{arch.name}.launcher` in `{job.site.origin}`",
        )
    rank = variable(number)
    # aprun fills one node after the other (intro_mpi(3), MPICH_RANK_REORDER_METHOD), and does not number the ranks of a node.
    of_node = bash("$%s", variable(local)) if local else bash("$((%s %% %s))", rank, str(shape.ranks_per_node))
    from_the_end = ",".join(map(str, reversed(range(shape.gpus_per_node))))
    gpus = bash(" CUDA_VISIBLE_DEVICES=%s", from_the_end) if decision.reverses_gpus else Code("")
    text = bash('export RANK=$%s LOCAL_RANK=%s%s; exec "$@"', rank, of_node, gpus)
    return ["bash", "-c", quote_sh(text), "rank"]


def _reversed(arch: Arch) -> list[str]:
    """The words before a program that give the last GPU, which is next to the first cores, to the first rank of a node."""
    local, gpu = RANK_VARIABLES[arch.launcher.name][1], arch.gpu
    if local is None or gpu is None:
        raise ConfigError(
            f"`archs.{arch.name}.gpus_reversed` needs GPUs, and a launcher that sets a rank's number on its node",
            hint=f"`{arch.launcher.name}` does not set it: set `launcher` or take `gpus_reversed` out",
        )
    last = gpu.per_node - 1
    text = bash(
        'export CUDA_VISIBLE_DEVICES=$((%s - %s %% %s)); exec "$@"', str(last), variable(local), str(gpu.per_node)
    )
    return ["bash", "-c", quote_sh(text), "rank"]


def _watching(arch: Arch) -> list[str]:
    """The words before a program that record the load of the GPUs of every node, until the rank ends.

    The first rank of a node sees all of its GPUs, or only its own if the scheduler hides the others: then every rank records.
    """
    local = RANK_VARIABLES[arch.launcher.name][1]
    first = bash('{ { [ "${%s:-0}" = 0 ] || ', variable(local)) if local else Code("{ { ")
    text = first + WATCH
    return ["bash", "-c", quote_sh(text), "rank"]


def _inside(job: UserJob, container: Container) -> Code:
    """The command that runs a program once in the container, from the node on which the job script runs."""
    program = tuple(_contained(job, container, []))
    on_node = job.site.scheduler.script_on == "node"
    return NEXT_LINE.join(_lines(program if on_node else node_argv(job.arch.launcher, program, {})))


def _contained(job: UserJob, container: Container, program: list[str]) -> list[str]:
    """The words that run a program in the container; each rank starts its own container."""
    if container.command == "shifter":
        return ["shifter", Code('--image="$image"'), *program]
    argv = [container.command, "exec", *(["--nv"] if job.arch.gpu and job.use_gpu else []), *container.options]
    if container.overlay:
        argv += ["--overlay", Code('"$overlay:ro"')]
    for number in range(1, len(job.overlays) + 1):
        argv += ["--overlay", bash('"$own_overlay_%s:ro"', str(number))]
    argv += ["--bind", Code('"$bind"'), Code('"$image"')]
    # Apptainer has no variable that puts folders before those of LD_LIBRARY_PATH in the image.
    before = [bash("export LD_LIBRARY_PATH=%s", _library_path(job.arch))] if job.arch.library_path else []
    before += [bash("source %s", shell_path(container.setup))] if container.setup else []
    if before:
        start = Code(" && ").join((*before, Code('exec "$@"')))
        return [*argv, "/bin/bash", "-c", quote_sh(start), "bash", *program]
    return [*argv, *program]


def _library_path(arch: Arch) -> Code:
    return bash('%s"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"', ":".join(arch.library_path))
