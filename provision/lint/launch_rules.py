"""The rules for launchers: the ranks, GPUs and CPUs of the directives are those that the launcher starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provision.knowledge.images import sees_no_gpu
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault, gpus_of, tasks_of
from provision.lint.shell_lines import Command, Line
from provision.profile.arch import Arch
from provision.profile.site import Site

# Programs of the launchers that the profiles name: `mpiexec-pals` is started as `mpiexec`.
# HPE's PALS also has an `aprun`, and Polaris' pages start containers of MPICH with `mpirun`.
PROGRAMS = {
    "mpiexec-pals": ("mpiexec", "mpirun", "aprun"),
    "mpiexec": ("mpiexec", "mpirun"),
    "mpirun": ("mpirun", "mpiexec"),
}


def check_launch(script: JobScript, site: Site | None, archs: Sequence[Arch]) -> Iterator[Finding]:
    """The launcher and its options must start the ranks that the directives request."""
    started = list(script.started())
    nodes = script.number("nodes") or 1
    for line, launcher, words in started:
        text = " ".join(words)
        if launcher == "horovodrun":
            yield fault(
                script,
                "horovodrun",
                line,
                "horovodrun opens servers that accept code from anyone who reaches them; our environments refuse to start it",
                "start the ranks with `srun` or the launcher of the site",
            )
        cpus = script.options.get("cpus-per-task")
        if (
            launcher == "srun"
            and cpus is not None
            and cpus.value != "1"
            and not re.search(r"(^|\s)(--cpus-per-task\b|-c\s?\S)", text)
            and "SRUN_CPUS_PER_TASK" not in script.variables
        ):
            yield fault(
                script,
                "srun-cpus",
                line,
                "since Slurm 22.05 srun does not inherit --cpus-per-task from the job, so every task gets one CPU",
                f"`srun --cpus-per-task={cpus.value}`",
            )
        if launcher in ("mpirun", "mpiexec", "aprun") and _passes_slurm_rank(script):
            number = next(line.number for line in script.lines if re.search(r"SLURM_(PROCID|LOCALID)", line.text))
            yield fault(
                script,
                "slurm-number",
                (number, f"{launcher} …"),
                f"SLURM_PROCID is 0 in every process that {launcher} starts",
                "start the ranks with srun, or use MPI's number: `hvd.rank()`",
            )
        yield from _ranks(script, line, launcher, text, nodes)
        if site is not None:
            yield from _of_site(script, site, archs, line, launcher, text)
    if site is not None and site.scheduler.script_on == "service-node":
        begun = {line.number for line, _, _ in started}
        for line in script.lines:
            if re.match(r"(\S*/)?python[0-9.]*\s", line.text) and line.number not in begun:
                yield fault(
                    script,
                    "on-service-node",
                    line,
                    "this runs on the service node, whose CPU differs: TensorFlow fails with `Illegal instruction`",
                    "put `aprun -n 1 -N 1` before the command",
                )


def _passes_slurm_rank(script: JobScript) -> bool:
    return any(re.search(r"SLURM_(PROCID|LOCALID)", line.text) for line in script.lines)


def _ranks(script: JobScript, line: Line, launcher: str, text: str, nodes: int) -> Iterator[Finding]:
    """The number of ranks must fit the nodes and tasks of the directives."""
    all_ranks = re.search(r"(?:^|\s)(?:-np?|--np|--ntasks)[ =](\d{1,15})(?=\s|$)", text)
    on_each_node = re.search(r"(?:^|\s)(?:-N|--ppn|-npernode|--ntasks-per-node)[ =](\d{1,15})(?=\s|$)", text)
    if all_ranks is None:
        return
    own_nodes = re.search(r"(?:^|\s)(?:-N|--nodes)[ =]?(\d{1,15})(?=\s|$)", text) if launcher == "srun" else None
    if own_nodes:
        nodes, on_each_node = int(own_nodes[1]), None
    ranks = int(all_ranks[1])
    per_node = int(on_each_node[1]) if on_each_node else None if own_nodes else script.number("ntasks-per-node")
    tasks = script.number("ntasks")
    if launcher == "horovodrun":
        return
    # A line that names hosts, allows more ranks than tasks, or starts several programs does so on purpose.
    own = own_nodes or re.search(r"(?:^|\s)(--?(hosts?|hostfile|machinefile|oversubscribe|H|f)\b|:(?=\s))", text)
    by_tasks = script.scheduler == "slurm" and launcher in ("srun", "mpirun", "mpiexec") and not own
    wanted = nodes * per_node if per_node is not None else tasks if by_tasks else None
    if wanted is None or ranks == wanted:
        return
    product = f"{nodes} nodes × {per_node} ranks per node are {wanted}" if per_node is not None else ""
    differs = f"{ranks} rank{'s' * (ranks > 1)}, but {product or f'the job requests {wanted} tasks'}"
    if ranks > wanted:
        yield fault(
            script,
            "ranks",
            line,
            differs,
            f"`{all_ranks[0].strip().replace(all_ranks[1], str(wanted))}`, or request more in the directives",
        )
    elif len(list(script.started())) == 1:
        yield fault(
            script,
            "fewer-ranks",
            line,
            f"{differs}: the rest of the nodes is not used",
            f"`{all_ranks[0].strip().replace(all_ranks[1], str(wanted))}`",
        )


def starts_several(script: JobScript, command: Command) -> bool:
    """Whether a launcher certainly starts more than one rank of a command."""
    if command.launcher is None or "array" in script.options:
        return False
    launcher, words = command.launcher
    text, tasks = " ".join(words), tasks_of(script) or 1
    each = re.search(r"(?:^|\s)(?:--ntasks-per-node|--tasks-per-node|--ppn|-ppn|-npernode)[ =](\d{1,9})(?=\s|$)", text)
    given = re.search(r"(?:^|\s)(?:-np?|--np|--n|--ntasks)(?:[ =]|(?=\d))(\S+)", text)
    if given:
        number = given[1].strip("\"'")
        return (
            int(number[:9]) > 1
            if number.isdigit()
            else tasks > 1 and re.search(r"SLURM_(NTASKS|NPROCS)\b", number) is not None
        )
    if each:
        return int(each[1]) > 1 or (script.number("nodes") or 1) > 1
    own_nodes = re.search(r"(?:^|\s)(?:-N|--nodes)[ =]?(\d{1,9})(?=\s|$)", text) if launcher == "srun" else None
    if own_nodes and int(own_nodes[1]) == 1 and script.number("ntasks") is None:
        return (script.number("ntasks-per-node") or script.number("tasks-per-node") or 1) > 1
    return launcher in ("srun", "mpirun", "mpiexec") and script.scheduler == "slurm" and tasks > 1


def _of_site(
    script: JobScript, site: Site, archs: Sequence[Arch], line: Line, launcher: str, text: str
) -> Iterator[Finding]:
    """The launcher must be that of the site, and must place and bind the ranks as its default does not."""
    wanted = {arch.launcher.name for arch in archs}
    if len(wanted) != 1 or launcher == "horovodrun":
        return
    (name,) = wanted
    known = PROGRAMS.get(name, (name,))
    cray = any(arch.compiler.cxx == "CC" for arch in archs)
    if launcher not in known and name != "none" and (cray or launcher == "aprun") and "singularity" not in text:
        yield fault(
            script,
            "other-launcher",
            line,
            f"`{launcher}` does not start ranks with the MPI of `{site.name}`; its launcher is `{known[0]}`",
            f"`{known[0]} …`",
        )
        return
    ranks = re.search(r"(?:^|\s)-np?[ =]?(\d{1,15})(?=\s|$)", text)
    several = ranks is not None and int(ranks[1]) > 1
    if launcher == "aprun" and not re.search(r"(?:^|\s)(-d|-cc)", text) and _threads_of(script, text) > 1:
        yield fault(
            script,
            "one-cpu",
            line,
            "without `-d` and `-cc` aprun binds each rank with all its threads to one CPU",
            f"`aprun … -d {_threads_of(script, text)} -cc depth`",
        )
    if name == "mpiexec-pals" and several and not re.search(r"(?:^|\s)--?(ppn|hosts?|hostfile|rankfile)\b", text):
        yield fault(
            script,
            "placement",
            line,
            "without `--ppn` the ranks are not spread over the nodes as their number of GPUs needs it",
            f"`mpiexec … --ppn {gpus_of(script) or _gpus(archs) or 'RANKS'}`",
        )
    elif name == "mpiexec-pals" and several and not re.search(r"(?:^|\s)(--depth|-d|--cpu-bind)\b", text):
        yield fault(
            script,
            "one-cpu",
            line,
            "without `--depth` and `--cpu-bind depth` each rank is bound to one CPU",
            "`mpiexec … --depth 8 --cpu-bind depth`, with the CPUs that a rank has",
        )
    if (
        launcher == "srun"
        and "cpus-per-task" not in script.options
        and not re.search(r"(?:^|\s)(-c|--cpus-per-task)", text)
    ):
        given = next((arch.job.cpus_per_task for arch in archs if arch.job.cpus_per_task), 0)
        many = gpus_of(script) > 0 and all(arch.job.cpus_per_task for arch in archs)
        if many and not re.search(r"--cpu-bind|--exclusive|--overlap", text):
            yield fault(
                script,
                "one-cpu",
                line,
                "no CPUs per task are requested, so each task gets one CPU beside its GPU",
                f"`#SBATCH --cpus-per-task={given}` and `srun --cpus-per-task={given}`",
            )


def _gpus(archs: Sequence[Arch]) -> int:
    return next((arch.gpu.per_node for arch in archs if arch.gpu), 0)


def _threads_of(script: JobScript, text: str) -> int:
    """The threads of OpenMP that a rank gets from the command or from the script; 0 if neither gives them."""
    given = re.search(r"-e OMP_NUM_THREADS=(\d{1,6})\b", text)
    value = given[1] if given else script.variables.get("OMP_NUM_THREADS", ("", 0, False))[0]
    return int(value) if re.fullmatch(r"[0-9]{1,6}", value) else 0


def check_shape(script: JobScript) -> Iterator[Finding]:
    """The number of tasks must fit the nodes and the GPUs."""
    placed = {"nodes", "ntasks-per-node", "tasks-per-node", "ntasks-per-gpu"} & set(script.options)
    if {"gpus-per-task", "ntasks"} <= set(script.options) and not placed and (script.number("ntasks") or 0) > 1:
        yield fault(
            script,
            "tasks-anywhere",
            script.line_of("ntasks"),
            "the number of nodes is not given, so the tasks may be on any number of nodes",
            "add `--nodes=N` and `--ntasks-per-node=N`",
        )
    time = script.value("time") or ""
    hours = re.fullmatch(r"(24|36|48|72|96):00", time)
    if hours and script.scheduler == "slurm":
        yield fault(
            script,
            "minutes",
            script.line_of("time"),
            f"Slurm reads `{time}` as {hours[1]} minutes",
            f"`--time={hours[1]}:00:00` for hours",
        )


def check_containers(script: JobScript) -> Iterator[Finding]:
    """A container must open its overlay read-only, and must see the GPUs."""
    wants_gpu = gpus_of(script) > 0
    passes_gpu = {"SINGULARITY_NV", "APPTAINER_NV", "SINGULARITY_NVCCLI", "APPTAINER_NVCCLI"} & set(script.variables)
    for line in script.lines:
        if not re.search(r"\b(apptainer|singularity)\b.{0,2000}\b(exec|run|shell)\b", line.text, re.DOTALL):
            continue
        filled = script.filled(line.text)
        bare = re.search(r"--overlay[ =]\"?([^\s:\"]+\.(?:ext3|img))\"?(?=\s|$)", filled)
        if re.search(r":rw\b", filled) or (bare and re.search(r"\bpython", filled)):
            yield fault(
                script,
                "overlay-rw",
                line,
                "only one job at a time can use an overlay with write access"
                + ("" if ":rw" in filled else ", which is the default"),
                "write `:ro` behind the overlay in jobs",
            )
        if wants_gpu and not passes_gpu and not re.search(r"(?:^|\s)(--nv|--nvccli|--rocm)(?=\s|$)", filled):
            yield fault(
                script,
                "container-gpu",
                line,
                "the container does not see the GPUs",
                "add `--nv` after `exec`, `run` or `shell`",
            )
        for word in map(script.filled, line.words):
            if wants_gpu and sees_no_gpu(word):
                yield fault(
                    script,
                    "image-gpu",
                    line,
                    f"the image `{word}` has no GPU support",
                    "use a tag that ends in `-gpu`",
                )
