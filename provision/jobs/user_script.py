"""A user's job, to the words of its script: directives, modules, variables, and the command that starts the training. Pure.

The templates `jobs/<kind>.sh.j2` hold the text around them.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from provision.errors import ConfigError
from provision.jobs.script import Bash, header, module_lines, word
from provision.jobs.user_job import UserJob, batch_of, runtime_of, shape_of, unstaged
from provision.jobs.user_job_checks import refuse_user_job
from provision.launch.launchers import RANK_VARIABLES, launch_argv, node_argv
from provision.launch.rank_threads import OMP, job_environ, module_environ, parts_of_node
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.container import Container, Runtime
from provision.profile.patterns import SHELL_PATH
from provision.profile.strategy import PLUGINS
from provision.schedulers import scheduler_for

PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The values of a job's template; `launch` is the command that starts the training, quoted for bash."""

    job: UserJob
    shape: Shape
    runtime: Runtime
    header: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    launch: str
    inside: str | None = None
    """What runs one process within the container, where there is one: a program stands behind it."""
    container: Container | None = None
    image: str | None = None
    cuda_home: str | None = None
    notes: tuple[str, ...] = ()
    home: str | None = None
    """The variable, set by the modules, below which the script stands; None: it is where the job was submitted from."""


def make_script(job: UserJob) -> Script:
    """Everything that the template of this job needs.

    Raises:
        ConfigError: such a job cannot work at this site; why, and what can.
    """
    refuse_user_job(job)
    runtime, shape = runtime_of(job), shape_of(job)
    batch = batch_of(job, shape)
    scheduler = scheduler_for(job.site.scheduler.name)
    threads = job_environ(job.arch, parts_of_node(job.site, job.arch, shape.ranks_per_node, shape.cpus_per_rank))
    # Our modulefile sets the arch's variables; where it is not loaded, the job does. A site's own module sets OpenMP's
    # where modules own them; in a container there is none.
    own = () if runtime == "venv" else job.arch.environ
    own = (*module_environ(job.arch), *own) if runtime == "container" else own
    exports = tuple(dict((*own, *job.site.strategy(job.kind).environ, *threads)).items())
    home = re.match(r"\$\{?(\w+)", job.script)
    container = job.site.container if runtime == "container" else None
    image = job.image or (container.image if container else None)
    cuda = job.arch.gpu.cuda_home if job.arch.gpu and shape.gpus_per_node and runtime != "container" else None
    if cuda is not None and not SHELL_PATH.fullmatch(cuda):
        raise ConfigError(
            f"`archs.{job.arch.name}.gpu.cuda_home` is no path: {cuda!r}", hint=f"edit `{job.site.origin}`"
        )
    return Script(
        job=job,
        shape=shape,
        runtime=runtime,
        header=(*header(scheduler.directives(batch), scheduler.COMMENTS_BEHIND), *_staging(job)),
        exports=exports,
        modules=_modules(job, runtime),
        launch=_launch(job, shape, runtime, exports, cuda is not None),
        inside=_inside(job, container) if container else None,
        container=container,
        image=image,
        cuda_home=re.sub(r"\$\{(\w+)\}", r"${\1:-}", cuda) if cuda else None,
        notes=_notes(job, shape),
        home=home[1] if home else None,
    )


def _staging(job: UserJob) -> tuple[str, ...]:
    """Directives of DataWarp: the data are on the burst buffer before the job begins (NERSC's pages of Cori, 2018)."""
    if job.stage_in is None:
        return ()
    return (
        "#DW jobdw capacity=10GB access_mode=striped type=scratch",
        f"#DW stage_in source={job.stage_in} destination=$DW_JOB_STRIPED/data type=directory",
    )


def _notes(job: UserJob, shape: Shape) -> tuple[str, ...]:
    strategy, site = job.site.strategy(job.kind), job.site
    told = [f"{job.site.title}: retired in {site.retired}."] if site.retired else []
    if strategy.note:
        told += textwrap.wrap(f"{strategy.status} here: {strategy.note}.", 118)
    due = unstaged(job, shape)
    return (*told, *((f"Note: {due}.",) if due else ()))


def _modules(job: UserJob, runtime: Runtime) -> tuple[str, ...]:
    """The lines that load modules: from nothing as the site has it, then exactly those of the build.

    A container has its own compiler, CUDA and Python, and the paths of the site's would lead it astray: what an arch names
    for builds is loaded for it only where the launcher comes from there. A site without builds names what its containers need.
    """
    site, arch, modules = job.site, job.arch, job.site.modules
    if job.kind in PLUGINS:
        return module_lines(modules, site.strategy(job.kind).modules, away=arch.provided_unload)
    if runtime == "venv":
        return module_lines(modules, (job.module,), away=arch.unload, path=(job.modulepath,))
    if runtime == "modules":
        return module_lines(modules, arch.provided, away=arch.provided_unload)
    outside = arch.modules if "venv" not in site.runtimes or arch.launcher.name in ("mpirun", "mpiexec") else ()
    program = site.container.module if site.container else None
    return module_lines(modules, (*outside, *([program] if program else [])), away=arch.unload)


def _launch(job: UserJob, shape: Shape, runtime: Runtime, exports: tuple[tuple[str, str], ...], cuda: bool) -> str:
    """The command that runs the training, as bash."""
    arch, site = job.arch, job.site
    own = site.strategy(job.kind).arguments if job.script.startswith("$") else ()  # the example's
    program: list[str] = ["python", "-u", Bash('"$script"'), *(Bash(f'"{one}"') if "$" in one else one for one in own)]
    program += job.arguments
    if job.resume is not None:
        program += ["--resume-from", Bash('"$PROVISION_RESUME"')]
    if runtime == "container" and site.container is not None:
        program = _contained(job, site.container, program)
    names = [name for name, _ in exports]
    if runtime == "venv":
        names += [name for name, _ in (*module_environ(arch), *arch.environ)]
        names += ["VIRTUAL_ENV", "PYTHONNOUSERSITE"]
    names += ["PATH", "LD_LIBRARY_PATH", "PROVISION_OUTPUT", "PROVISION_DATA", "HDF5_USE_FILE_LOCKING"]
    names += ["PYTHONPATH"] if job.kind in PLUGINS else []
    names += ["XLA_FLAGS"] if cuda else []
    names += ["KERAS_HOME"] if site.files.scratch else []
    names += ["TMPDIR"] if site.files.temporary else []
    names += ["PROVISION_REPLICAS"] if job.kind == "mirrored" else []
    environ = [Bash(f'"{name}=${{{name}:-}}"') for name in dict.fromkeys(names)]
    # The one process of a job runs where its script runs; from a service node even that needs the launcher.
    alone = shape.ranks == 1 and site.scheduler.script_on == "node" and job.kind in ("single", "mirrored")
    if alone and runtime != "container":
        return " ".join(map(word, program))
    if arch.gpus_reversed and shape.ranks_per_node > 1:
        program = [*_reversed(arch), *program]
    if alone:
        return " \\\n  ".join(_lines(program))
    argv = launch_argv(
        arch.launcher,
        (),
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        cpus=shape.cpus_per_rank,
        environ=environ,
    )
    return " \\\n  ".join((*_lines(argv), *_lines(program)))


def _lines(words: tuple[str, ...] | list[str]) -> list[str]:
    """Words as lines of a readable width; an option stays with its value."""
    units: list[str] = []
    for one in map(word, words):
        if units and units[-1] in ("-e", "-x", "--env"):
            units[-1] += f" {one}"
        else:
            units.append(one)
    lines: list[str] = []
    for unit in units:
        if lines and len(lines[-1]) + len(unit) < 110:
            lines[-1] += f" {unit}"
        else:
            lines.append(unit)
    return lines


def _reversed(arch: Arch) -> list[str]:
    """What gives each rank its GPU from the end: the last one is next to the first cores."""
    variables, gpu = RANK_VARIABLES[arch.launcher.name], arch.gpu
    local = variables[1] if variables else None
    if local is None or gpu is None:
        raise ConfigError(
            f"`archs.{arch.name}.gpus_reversed` needs GPUs, and a launcher that tells a rank its number on the node",
            hint=f"`{arch.launcher.name}` does not: set `launcher` or take `gpus_reversed` out",
        )
    last = gpu.per_node - 1
    text = f'export CUDA_VISIBLE_DEVICES=$(({last} - {local} % {gpu.per_node})); exec "$@"'
    return ["bash", "-c", text, "rank"]


def _inside(job: UserJob, container: Container) -> str:
    """What runs a program in the container once, from where the job's script runs."""
    program = tuple(_contained(job, container, []))
    alone = job.site.scheduler.script_on == "node"
    return " \\\n  ".join(_lines(program if alone else node_argv(job.arch.launcher, program, {})))


def _contained(job: UserJob, container: Container, program: list[str]) -> list[str]:
    """A program within the container: each rank starts its own."""
    if container.command == "shifter":
        return ["shifter", Bash('--image="$image"'), *program]
    argv = [container.command, "exec", *(["--nv"] if job.arch.gpu and job.use_gpu else []), *container.options]
    if container.overlay:
        argv += ["--overlay", Bash('"$overlay:ro"')]
    argv += ["--bind", Bash('"$bind"'), Bash('"$image"')]
    if container.setup:
        return [*argv, "/bin/bash", "-c", f'source {container.setup} && exec "$@"', "bash", *program]
    return [*argv, *program]


def leaves_omp(script: Script) -> bool:
    """Whether `OMP_NUM_THREADS` is the module's, and the job leaves it alone."""
    return script.job.arch.threads.owner == "module" and OMP not in dict(script.exports)
