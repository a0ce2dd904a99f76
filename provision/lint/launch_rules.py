"""The rules for launchers: the ranks, GPUs and CPUs of the directives are those that the launcher starts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import OMP
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, error, warning
from provision.lint.shell_lines import ShellCommand
from provision.lint.training_script import TrainingProgram
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.wording import count

# Programs of the launchers that the profiles name: `mpiexec-pals` is started as `mpiexec`.
# HPE's PALS also has an `aprun`, and Polaris' pages start containers of MPICH with `mpirun`.
PROGRAMS = {
    "mpiexec-pals": ("mpiexec", "mpirun", "aprun"),
    "mpiexec": ("mpiexec", "mpirun"),
    "mpirun": ("mpirun", "mpiexec"),
}

# Options of launchers that name nodes, of which there may be fewer than the job has.
HOSTS = r"--?(hosts?|hostfile|machinefile|nodelist|relative|H|f|w|r)\b"


@warning(
    "horovodrun opens servers that accept code from anyone who reaches them; our environments refuse to start it",
    "start the ranks with `srun` or the launcher of the site",
)
def horovodrun(job: JobScript) -> Found:
    """`horovodrun`, which opens servers that accept code."""
    yield from ((launch.line,) for launch in job.launches if launch.launcher == "horovodrun")


@warning(
    "since Slurm 22.05 srun does not inherit --cpus-per-task from the job, so every task gets one CPU",
    "`srun --cpus-per-task={0}`",
)
def srun_cpus(job: JobScript) -> Found:
    """srun that does not pass on `--cpus-per-task`."""
    cpus = job.value("cpus-per-task")
    passed = cpus in (None, "1") or "SRUN_CPUS_PER_TASK" in job.variables
    for launch in () if passed else job.launches:
        if launch.launcher == "srun" and not launch.has(r"--cpus-per-task\b|-c\s?\S"):
            yield launch.line, cpus


@error(
    "`--export={0}` is passed on by srun: the ranks have neither the modules nor the PATH of the script",
    "remove the option, or put `unset SLURM_EXPORT_ENV` before srun",
)
def export_none(job: JobScript) -> Found:
    """An environment that srun does not pass on."""
    value = job.value("export")
    passed = "ALL" in (value or "ALL").upper().split(",") or "SLURM_EXPORT_ENV" in job.text
    by_srun = [one for one in job.launches if one.launcher == "srun" and "--export" not in one.options]
    if by_srun and not passed:
        yield job.line_of("export"), value


@error(
    "this runs on the service node, whose CPU differs: TensorFlow fails with `Illegal instruction`",
    "put `aprun -n 1 -N 1` before the command",
)
def on_service_node(job: JobScript, site: Site, training: TrainingProgram | None) -> Found:
    """A program that runs on the service node instead of a compute node."""
    launched = {launch.line.number for launch in job.launches}
    others = site.scheduler.script_on != "service-node" or (training is not None and not training.uses_tensorflow)
    for line in job.lines if not others else ():
        without = re.search(r" -[cm] ", line.text) and not re.search("tensorflow|keras|horovod", line.text)
        if re.match(r"(\S*/)?python[0-9.]*\s", line.text) and line.number not in launched and not without:
            yield (line,)


@error("{0}", "`{1}`, or request more in the directives")
def ranks(job: JobScript) -> Found:
    """A launcher that starts more ranks than the directives request."""
    for launch in job.launches:
        given = whole_number(launch.ranks)
        if given is None or launch.launcher == "horovodrun" or job.scheduler == "none":
            continue
        nodes, per_node = launch.nodes or job.nodes, launch.ranks_per_node
        if per_node is None and launch.nodes is None:
            per_node = job.number("ntasks-per-node")
        # A line that names hosts, allows more ranks than tasks, or starts several programs does so on purpose.
        own = (
            launch.nodes is not None
            or launch.has(rf"{HOSTS}|--?(oversubscribe|(het|pack)-group)\b")
            or " : " in launch.text
        )
        by_tasks = job.scheduler == "slurm" and launch.launcher in ("srun", "mpirun", "mpiexec") and not own
        wanted = nodes * per_node if per_node is not None else job.number("ntasks") if by_tasks else None
        if wanted is not None and given > wanted:
            product = f"{nodes} nodes × {per_node} ranks per node are {wanted}" if per_node is not None else ""
            yield (
                launch.line,
                f"{count(given, 'rank')}, but {product or f'the job requests {wanted} tasks'}",
                f"-n {wanted}",
            )


def starts_several(job: JobScript, command: ShellCommand) -> bool:
    """Whether a launcher certainly starts more than one rank of a command."""
    if not command.launcher or "array" in job.options:
        return False
    launcher, tasks = command.launcher, job.tasks or 1
    if command.ranks:
        number = job.filled(command.ranks)
        by_tasks = tasks > 1 and re.search(r"SLURM_(NTASKS|NPROCS)\b", number) is not None
        by_nodes = job.nodes > 1 and re.search(r"SLURM_(JOB_NUM_NODES|NNODES)\b", number) is not None
        return int(number[:9]) > 1 if number.isdecimal() else by_tasks or by_nodes
    nodes = job.nodes if command.nodes is None else command.nodes
    if command.ranks_per_node is not None:
        return command.ranks_per_node * nodes > 1
    if launcher not in ("srun", "mpirun", "mpiexec") or command.has(HOSTS):
        return False
    if job.scheduler == "pbs" and launcher == "mpirun":  # the list of nodes has each of them, as often as it has ranks
        return nodes * (job.number("mpiprocs") or 1) > 1
    if job.scheduler != "slurm":
        return launcher == "srun" and nodes > 1
    if command.nodes == 1 and job.number("ntasks") is None:
        return job.ranks_per_node > 1
    # Without a number of tasks, Slurm starts one on each node (srun(1), `--ntasks`), and gives MPI a slot or more there.
    return tasks > 1 or (job.tasks is None and nodes > 1)


def _of_site(job: JobScript, archs: Sequence[Arch]) -> tuple[str, list[ShellCommand], list[ShellCommand]]:
    """The launcher of all these archs, and the lines that start ranks: by the MPI of the site, and by another one."""
    names = {arch.launcher.name for arch in archs}
    name = next(iter(names), "")
    known = ("horovodrun", *PROGRAMS.get(name, (name,)))
    contained = re.compile(r"singularity|apptainer|shifter")
    foreign = [one for one in job.launches if one.launcher not in known and not contained.search(one.text)]
    foreign = [] if name == "none" else foreign
    own = [launch for launch in job.launches if launch not in foreign and launch.launcher != "horovodrun"]
    return (name, own, foreign) if len(names) == 1 else ("", [], [])


@warning(
    "the profile of `{1}` starts ranks with `{2}`; `{0}` may start them with another MPI, or on one node only",
    "`{2} …`",
)
def other_launcher(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """A launcher that does not belong to the MPI of the site."""
    name, _, foreign = _of_site(job, archs)
    for launch in foreign:
        yield launch.line, launch.launcher, site.name, PROGRAMS.get(name, (name,))[0]


def _pals_launches(job: JobScript, archs: Sequence[Arch]) -> list[ShellCommand]:
    """The lines that start several ranks by PALS, whose defaults place and bind them wrongly."""
    name, own, _ = _of_site(job, archs)
    several = [launch for launch in own if (whole_number(launch.ranks) or 0) > 1 and _is_python(launch)]
    return several if name == "mpiexec-pals" else []


PLACED = r"(--?(ppn|hosts?|hostfile|rankfile)|-N)\b"


def _is_python(launch: ShellCommand) -> bool:
    """Whether a launcher starts Python, whose TensorFlow has threads: other programs may want one CPU for each rank."""
    return re.search(r"python|\.py\b", launch.text) is not None


@warning(
    "without `--ppn` the ranks are not spread over the nodes as their number of GPUs needs it", "`mpiexec … --ppn {0}`"
)
def placement(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Ranks that are not spread over the nodes."""
    gpus = job.gpus or next((arch.gpu.per_node for arch in archs if arch.gpu), "RANKS")
    yield from ((launch.line, gpus) for launch in _pals_launches(job, archs) if not launch.has(PLACED))


@warning("without {0} each rank is bound to one CPU", "`{1}`, with the CPUs that a rank has")
def one_cpu(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Ranks whose threads share one CPU."""
    for launch in _pals_launches(job, archs):
        if launch.has(PLACED) and not launch.has(r"(--depth|-d|--cpu-bind|-cc|--cc)\b"):
            yield launch.line, "`--depth` and `--cpu-bind depth`", "mpiexec … --depth 8 --cpu-bind depth"
    by_site = all(arch.job.cpus_per_task for arch in archs)
    asked = not job.gpus or not by_site or {"cpus-per-task", "cpus-per-gpu"} & set(job.options)
    for launch in _of_site(job, archs)[1]:
        threads = launch.number("-e OMP_NUM_THREADS", "=") or whole_number(job.set_to(OMP)) or 0
        own = asked or launch.has("-c|--cpus-per-task|--cpu-bind|--exclusive|--overlap")
        if launch.launcher == "aprun" and threads > 1 and not launch.has("-d|-cc"):
            yield launch.line, "`-d` and `-cc`", f"aprun … -d {threads} -cc depth"
        elif launch.launcher == "srun" and not own and _is_python(launch):
            cpus = f"--cpus-per-task={archs[0].job.cpus_per_task}"
            yield launch.line, "`--cpus-per-task`", f"#SBATCH {cpus}` and `srun {cpus}"
