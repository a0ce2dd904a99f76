"""The rules for launchers: the ranks, GPUs and CPUs of the directives are those that the launcher starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import OMP
from provision.lint.job_script import JobScript, Launch
from provision.lint.rule import Found, error, warning
from provision.lint.shell_lines import Command
from provision.profile.arch import Arch
from provision.profile.site import Site

# Programs of the launchers that the profiles name: `mpiexec-pals` is started as `mpiexec`.
# HPE's PALS also has an `aprun`, and Polaris' pages start containers of MPICH with `mpirun`.
PROGRAMS = {
    "mpiexec-pals": ("mpiexec", "mpirun", "aprun"),
    "mpiexec": ("mpiexec", "mpirun"),
    "mpirun": ("mpirun", "mpiexec"),
}


def option(text: str, names: str, between: str = "[ =]") -> str | None:
    """The number that one of these options (a pattern) has in the words of a launcher; None if it has none there."""
    match = re.search(rf"(?:^|\s)(?:{names}){between}(\d{{1,15}})(?=\s|$)", text)
    return match[1] if match else None


def has(text: str, names: str) -> bool:
    """Whether the words of a launcher have one of these options (a pattern), with or without a value."""
    return re.search(rf"(?:^|\s)(?:{names})", text) is not None


@warning(
    "horovodrun",
    "horovodrun opens servers that accept code from anyone who reaches them; our environments refuse to start it",
    "start the ranks with `srun` or the launcher of the site",
)
def horovodrun(job: JobScript) -> Found:
    """`horovodrun`, which opens servers that accept code."""
    yield from ((launch.line,) for launch in job.launches if launch.launcher == "horovodrun")


@warning(
    "srun-cpus",
    "since Slurm 22.05 srun does not inherit --cpus-per-task from the job, so every task gets one CPU",
    "`srun --cpus-per-task={0}`",
)
def srun_cpus(job: JobScript) -> Found:
    """srun that does not pass on `--cpus-per-task`."""
    cpus = job.value("cpus-per-task")
    passed = cpus in (None, "1") or "SRUN_CPUS_PER_TASK" in job.variables
    for launch in () if passed else job.launches:
        if launch.launcher == "srun" and not has(launch.text, r"--cpus-per-task\b|-c\s?\S"):
            yield launch.line, cpus


@error(
    "on-service-node",
    "this runs on the service node, whose CPU differs: TensorFlow fails with `Illegal instruction`",
    "put `aprun -n 1 -N 1` before the command",
)
def on_service_node(job: JobScript, site: Site) -> Found:
    """A program that runs on the service node instead of a compute node."""
    launched = {launch.line.number for launch in job.launches}
    for line in job.lines if site.scheduler.script_on == "service-node" else ():
        if re.match(r"(\S*/)?python[0-9.]*\s", line.text) and line.number not in launched:
            yield (line,)


def _other_ranks(job: JobScript) -> Iterator[tuple[Launch, str, int, int, str]]:
    """The launchers that start another number of ranks than is requested: the option, that number, the right one, and why."""
    for launch in job.launches:
        launcher, text = launch.launcher, launch.text
        given = re.search(r"(?:^|\s)(?:-np?|--np|--ntasks)[ =](\d{1,15})(?=\s|$)", text)
        own_nodes = option(text, "-N|--nodes", "[ =]?") if launcher == "srun" else None
        each = None if own_nodes else option(text, "-N|--ppn|-npernode|--ntasks-per-node")
        if given is None or launcher == "horovodrun":
            continue
        nodes = int(own_nodes) if own_nodes else job.nodes
        per_node = int(each) if each else None if own_nodes else job.number("ntasks-per-node")
        # A line that names hosts, allows more ranks than tasks, or starts several programs does so on purpose.
        own = own_nodes or has(text, r"--?(hosts?|hostfile|machinefile|oversubscribe|H|f)\b|:(?=\s)")
        by_tasks = job.scheduler == "slurm" and launcher in ("srun", "mpirun", "mpiexec") and not own
        wanted = nodes * per_node if per_node is not None else job.number("ntasks") if by_tasks else None
        ranks = int(given[1])
        if wanted is not None and ranks != wanted:
            product = f"{nodes} nodes × {per_node} ranks per node are {wanted}" if per_node is not None else ""
            differs = f"{ranks} rank{'s' * (ranks > 1)}, but {product or f'the job requests {wanted} tasks'}"
            yield launch, given[0].strip().replace(given[1], str(wanted)), ranks, wanted, differs


@error("ranks", "{0}", "`{1}`, or request more in the directives")
def ranks(job: JobScript) -> Found:
    """A launcher that starts another number of ranks than the directives request."""
    yield from ((launch.line, why, right) for launch, right, ranks, wanted, why in _other_ranks(job) if ranks > wanted)


@warning("fewer-ranks", "{0}: the rest of the nodes is not used", "`{1}`")
def fewer_ranks(job: JobScript) -> Found:
    """A launcher that starts fewer ranks than the directives request."""
    for launch, right, number, wanted, why in _other_ranks(job) if len(job.launches) == 1 else ():
        if number < wanted:
            yield launch.line, why, right


def starts_several(job: JobScript, command: Command) -> bool:
    """Whether a launcher certainly starts more than one rank of a command."""
    if command.launcher is None or "array" in job.options:
        return False
    launcher, text, tasks = command.launcher[0], " ".join(command.launcher[1]), job.tasks or 1
    given = re.search(r"(?:^|\s)(?:-np?|--np|--n|--ntasks)(?:[ =]|(?=\d))(\S+)", text)
    if given:
        number = given[1].strip("\"'")
        of_job = tasks > 1 and re.search(r"SLURM_(NTASKS|NPROCS)\b", number) is not None
        return int(number[:9]) > 1 if number.isdigit() else of_job
    each = option(text, "--ntasks-per-node|--tasks-per-node|--ppn|-ppn|-npernode")
    if each:
        return int(each) > 1 or job.nodes > 1
    if launcher == "srun" and option(text, "-N|--nodes", "[ =]?") == "1" and job.number("ntasks") is None:
        return job.ranks_per_node > 1
    return launcher in ("srun", "mpirun", "mpiexec") and job.scheduler == "slurm" and tasks > 1


def _of_site(job: JobScript, archs: Sequence[Arch]) -> tuple[str, list[Launch], list[Launch]]:
    """The launcher of all these archs, and the lines that start ranks: by the MPI of the site, and by another one."""
    names = {arch.launcher.name for arch in archs}
    name, cray = next(iter(names), ""), any(arch.compiler.cxx == "CC" for arch in archs)
    known = ("horovodrun", *PROGRAMS.get(name, (name,)))
    foreign = [
        launch
        for launch in job.launches
        if launch.launcher not in known and (cray or launch.launcher == "aprun") and "singularity" not in launch.text
    ]
    foreign = [] if name == "none" else foreign
    own = [launch for launch in job.launches if launch not in foreign and launch.launcher != "horovodrun"]
    return (name, own, foreign) if len(names) == 1 else ("", [], [])


@warning(
    "other-launcher",
    "`{0}` does not start ranks with the MPI of `{1}`; its launcher is `{2}`",
    "`{2} …`",
)
def other_launcher(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """A launcher that does not belong to the MPI of the site."""
    name, _, foreign = _of_site(job, archs)
    for launch in foreign:
        yield launch.line, launch.launcher, site.name, PROGRAMS.get(name, (name,))[0]


def _pals_launches(job: JobScript, archs: Sequence[Arch]) -> list[Launch]:
    """The lines that start several ranks by PALS, whose defaults place and bind them wrongly."""
    name, own, _ = _of_site(job, archs)
    several = [launch for launch in own if int(option(launch.text, "-np?", "[ =]?") or 0) > 1]
    return several if name == "mpiexec-pals" else []


PLACED = r"--?(ppn|hosts?|hostfile|rankfile)\b"


@warning(
    "placement",
    "without `--ppn` the ranks are not spread over the nodes as their number of GPUs needs it",
    "`mpiexec … --ppn {0}`",
)
def placement(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Ranks that are not spread over the nodes."""
    gpus = job.gpus or next((arch.gpu.per_node for arch in archs if arch.gpu), "RANKS")
    yield from ((launch.line, gpus) for launch in _pals_launches(job, archs) if not has(launch.text, PLACED))


@warning(
    "one-cpu",
    "without `--depth` and `--cpu-bind depth` each rank is bound to one CPU",
    "`mpiexec … --depth 8 --cpu-bind depth`, with the CPUs that a rank has",
)
def one_cpu_by_pals(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Ranks whose threads share one CPU."""
    for launch in _pals_launches(job, archs):
        if has(launch.text, PLACED) and not has(launch.text, r"(--depth|-d|--cpu-bind)\b"):
            yield (launch.line,)


@warning(
    "one-cpu",
    "without `-d` and `-cc` aprun binds each rank with all its threads to one CPU",
    "`aprun … -d {0} -cc depth`",
)
def one_cpu_by_aprun(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Threads of OpenMP that aprun binds to one CPU."""
    for launch in _of_site(job, archs)[1]:
        threads = option(launch.text, "-e OMP_NUM_THREADS", "=") or job.set_to(OMP)
        if launch.launcher == "aprun" and (whole_number(threads) or 0) > 1 and not has(launch.text, "-d|-cc"):
            yield launch.line, threads


@warning(
    "one-cpu",
    "no CPUs per task are requested, so each task gets one CPU beside its GPU",
    "`#SBATCH --cpus-per-task={0}` and `srun --cpus-per-task={0}`",
)
def one_cpu_by_srun(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
    """Tasks with GPUs that get one CPU."""
    asked = "cpus-per-task" in job.options or not job.gpus or not all(arch.job.cpus_per_task for arch in archs)
    for launch in () if asked else _of_site(job, archs)[1]:
        own = has(launch.text, "-c|--cpus-per-task") or re.search(r"--cpu-bind|--exclusive|--overlap", launch.text)
        if launch.launcher == "srun" and not own:
            yield launch.line, archs[0].job.cpus_per_task
