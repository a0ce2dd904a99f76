"""The rules for a job script and the training script that it starts: it must start it as it needs, and not to train alone."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA
from provision.lint.arch_choice import archs_for
from provision.lint.job_script import TOP, JobScript, Start
from provision.lint.launch_rules import HOSTS, starts_several
from provision.lint.rule import Found, Shown, advice, error, warning
from provision.lint.shell_lines import ShellCommand, ShellLine, base
from provision.lint.syntax import is_environ, value_of
from provision.lint.training_script import OVER_TORCH, TrainingProgram
from provision.profile.arch import Arch
from provision.profile.site import Site

ALONE = "without a launcher this starts one process, which trains alone"
# A launcher in a container, with its options.
INSIDE = re.compile(r"\b(mpirun|mpiexec|horovodrun)((\s+-\S+(\s+\d+\b)?)*)\s+")


def _launched(start: Start | None) -> bool:
    """Whether a launcher starts the training script, or may start it in a way that is not understood."""
    # A function, a loop variable or another script may start it with a launcher.
    if start is None or start.command.torchrun is not None:
        return True
    first = base(start.command.all_words[0])
    return start.command.launcher != "" or first.startswith("$") or first in ("accelerate", "deepspeed")


def _by_mpi(job: JobScript) -> list[ShellCommand]:
    """The lines that start ranks without srun and without Horovod's own launcher."""
    return [launch for launch in job.launches if launch.launcher in ("mpirun", "mpiexec", "aprun")]


@error(
    "SLURM_PROCID is 0 in every process that {0} starts",
    "start the ranks with srun, or use the number of MPI or Horovod: `hvd.rank()`",
)
def slurm_number(job: JobScript, training: TrainingProgram | None) -> Found:
    """`SLURM_PROCID` under a launcher that is not srun."""
    texts = training.script.texts if training else {}
    lines = [line for line in job.lines if re.search(r"SLURM_(PROCID|LOCALID)", line.text)]
    for launch in _by_mpi(job)[:1]:
        for name in sorted({"SLURM_PROCID", "SLURM_LOCALID"} & set(texts))[-1:]:
            yield Shown(texts[name], launch.line.text), launch.launcher
        if lines:
            yield ShellLine(number=lines[0].number, text=f"{launch.launcher} …"), launch.launcher


@warning("neither TensorFlow nor `{0}` reads `{1}`", "{2}")
def threads_unread(job: JobScript, program: TrainingProgram) -> Found:
    """Thread numbers that the training script does not read."""
    written = any(WRITTEN.match(line.text) for line in job.comments)  # by us, for programs that read them and others
    names = [name for name in (INTER, INTRA) if name in job.variables and not written]
    reads = {INTER, INTRA} & program.texts or any("intra_op_parallelism_threads" in name for name in program.names)
    if names and program.uses_tensorflow and not reads:
        number = f'int(os.environ["{INTRA}"])'
        fix = f"`tf.config.threading.set_intra_op_parallelism_threads({number})`, and the same for inter"
        if {"Session", "MonitoredTrainingSession", "ConfigProto"} & program.names:
            fix = f"`tf.ConfigProto(intra_op_parallelism_threads={number}, …)` as the `config` of the session"
        yield job.variables[names[0]], program.file, names[0], fix


def _several_tasks(job: JobScript, start: Start | None) -> bool:
    """Whether a launcher starts, or may start, the training script in several tasks."""
    counted = (job.tasks or 1) > 1 and _launched(start)
    return counted or (start is not None and starts_several(job, start.command))


@error(
    "MirroredStrategy is one process, but the job has {0} tasks, each of which takes all GPUs",
    "`--nodes=1` and `--ntasks=1`",
)
def mirrored_tasks(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """MirroredStrategy in several tasks."""
    if program.mirrored and _several_tasks(job, start):
        yield job.line_of("ntasks", "ntasks-per-node", "nodes"), job.tasks or job.nodes


@warning("MirroredStrategy uses the GPUs of one node only", "`--nodes=1`")
def mirrored_nodes(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """MirroredStrategy on several nodes, of which it uses one."""
    if program.mirrored and job.nodes > 1 and not _several_tasks(job, start):
        yield (job.line_of("ntasks", "ntasks-per-node", "nodes"),)


@error("one task, but {0} GPUs: Horovod uses one GPU per task", "{1}")
def horovod_tasks(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """Horovod with one task and several GPUs."""
    command = start.command if start else None
    own = "ntasks-per-gpu" in job.options or (command is not None and command.launcher == "horovodrun")
    if command and command.launcher in ("mpirun", "mpiexec"):
        # Its number of ranks may be another one than that of the tasks.
        own = own or (whole_number(command.ranks) or 1) > 1 or command.has(HOSTS)
    if program.horovod and (job.tasks or 1) == 1 and job.gpus > 1 and job.scheduler == "slurm" and not own:
        fix = f"`--ntasks-per-node={job.gpus}`"
        if job.value("gpus"):
            fix = f"`--ntasks={job.gpus}`, and as many nodes as these GPUs need"
        yield job.line_of("ntasks", "gres", "gpus", "gpus-per-node"), job.gpus, fix


@error("the job has {0}, but {1}", "{2}")
def no_launcher(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """A script for several ranks that is started without a launcher."""
    by_itself = {"spawn", "start_processes"} & program.called or program.modules & OVER_TORCH
    together = program.horovod or program.multiworker_by_slurm or ("ddp" in program.uses and not by_itself)
    several = (job.tasks or 1) > 1 or job.nodes > 1
    # A launcher may start this same script, a text for a shell, or a function, and one of them the program.
    inside = "export -f" in job.text or any("$0" in one.text or "<<" in one.line.text for one in job.launches)
    if start and together and not inside and not _launched(start) and several and job.scheduler != "none":
        line, size = start.command.line, f"{job.tasks} tasks" if (job.tasks or 1) > 1 else f"{job.nodes} nodes"
        launcher = {"slurm": "srun", "cobalt": "aprun -n RANKS -N RANKS_PER_NODE"}.get(
            job.scheduler, "mpiexec -n RANKS"
        )
        contained = INSIDE.search(line.text)
        how = f"`{contained[1]}` in a container starts ranks on one node only" if contained else ALONE
        yield line, size, how, f"`{launcher} {INSIDE.sub('', line.text).strip()}`"[:200]


@error("SlurmClusterResolver reads SLURM_STEP_NUM_TASKS, which only srun sets", "`srun python …`")
def multiworker_launcher(job: JobScript, program: TrainingProgram) -> Found:
    """MultiWorkerMirroredStrategy that asks Slurm for its workers without srun."""
    others, by_srun = _by_mpi(job), any(launch.launcher == "srun" for launch in job.launches)
    if program.multiworker_by_slurm and not by_srun and (others or (job.tasks or 1) == 1):
        yield (others[0].line if others else TOP,)


@warning(
    "the workers use gRPC, which a proxy blocks: they would hang",
    "before it, `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy all_proxy`",
)
def proxies(job: JobScript, program: TrainingProgram) -> Found:
    """Proxies that block the gRPC of MultiWorkerMirroredStrategy."""
    avoided = {"http_proxy", "https_proxy"} <= job.unset or {"no_proxy", "NO_PROXY"} & set(job.variables)
    if "multiworker" in program.uses and not avoided:
        yield (next((launch.line for launch in job.launches if launch.launcher == "srun"), TOP),)


def _by_local_rank(program: TrainingProgram) -> int | None:
    """The first line that takes a GPU from a list with `local_rank()` or SLURM_LOCALID, without counting the GPUs."""
    lines = []
    for node in program.script.of(ast.Subscript):
        parts = list(ast.walk(node.slice))
        counts = any(isinstance(part, ast.IfExp | ast.Mod) for part in parts)
        ranks = any(getattr(part, "attr", "") == "local_rank" or value_of(part) == "SLURM_LOCALID" for part in parts)
        if ranks and not counts and not is_environ(node.value):
            lines.append(node.lineno)
    return min(lines, default=None)


@error(
    "each task sees only one GPU, number 0, so all tasks but the first fail with IndexError",
    "`gpus[hvd.local_rank() if len(gpus) > 1 else 0]`",
)
def gpu_by_local_rank(job: JobScript, program: TrainingProgram) -> Found:
    """A GPU chosen by local rank if each task sees one GPU."""
    line = _by_local_rank(program)
    bound = "none" not in (job.value("gpu-bind") or "") and "--gpu-bind=none" not in job.text
    if line and bound and one_gpu_per_task(job) and not _by_mpi(job):
        yield (Shown(line, job.line_of("gpus-per-task").text),)


def one_gpu_per_task(job: JobScript) -> bool:
    """Whether Slurm shows each task one GPU."""
    return (job.value("gpus-per-task") or "").rpartition(":")[2] == "1"


@error(
    "mpirun starts one task of Slurm on each other node, whose ranks then share one GPU",
    "`--gpus-per-node={0}` instead of `--gpus-per-task`, or start the ranks with srun",
)
def mpirun_gpus(job: JobScript) -> Found:
    """GPUs that are bound to tasks, where mpirun starts all ranks of a node in one task."""
    launched = [launch for launch in job.launches if launch.launcher in ("mpirun", "mpiexec")]
    if launched and one_gpu_per_task(job) and job.ranks_per_node > 1 and job.nodes > 1:
        yield job.line_of("gpus-per-task"), job.ranks_per_node


@warning(
    "each of the {0} ranks of a node sees all GPUs, and takes the memory of all",
    "`tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')` before the first use of a GPU",
)
def gpu_not_pinned(job: JobScript, program: TrainingProgram, start: Start | None, archs: tuple[Arch, ...]) -> Found:
    """Ranks that share the GPUs of a node, in a program that chooses none."""
    if start is None or not start.command.launcher or not program.horovod or not program.is_whole:
        return
    text = start.command.text
    chooses = {
        "set_visible_devices",
        "visible_device_list",
        "experimental_set_visible_devices",
        "device",
    } & program.names
    by_variable = "CUDA_VISIBLE_DEVICES" in program.texts or "CUDA_VISIBLE_DEVICES" in job.text
    bound = one_gpu_per_task(job) or re.search(r"gpu-bind|gpus-per-task|\.sh\b", text) or "gpu-bind" in job.options
    ranks = start.command.ranks_per_node or job.ranks_per_node
    gpus = job.gpus or (archs[0].gpu.per_node if job.scheduler == "pbs" and archs and archs[0].gpu else 0)
    if program.trains and program.uses_tensorflow and not (chooses or by_variable or bound) and min(ranks, gpus) > 1:
        yield start.command.line, ranks


@error(
    "{0} tasks on {1} GPUs of a node: line {2} of `{3}` takes one GPU for each task, and the last tasks find none",
    "`--ntasks-per-node={1}`",
)
def tasks_per_gpu(job: JobScript, program: TrainingProgram) -> Found:
    """More tasks than GPUs, if each task takes its own."""
    line, each = _by_local_rank(program), job.line_of("ntasks-per-node", "tasks-per-node")
    if line and each is not TOP and 0 < job.gpus < job.ranks_per_node:
        yield each, job.ranks_per_node, job.gpus, line, program.file


@warning(
    "`{0}` uses one GPU, but the job requests {1}, and TensorFlow fills the memory of all",
    "request one GPU, or use `tf.distribute.MirroredStrategy()`",
)
def one_of_many_gpus(job: JobScript, program: TrainingProgram) -> Found:
    """Several GPUs for a script that uses one."""
    libraries = {"mpi4py", "torch", "dask", "ray", "deepspeed", "mesh_tensorflow", "ml_comm", "jax"}
    several = program.horovod or program.modules & libraries or any(name.endswith("Strategy") for name in program.names)
    chooses = "CUDA_VISIBLE_DEVICES" in program.texts or "CUDA_VISIBLE_DEVICES" in job.text
    chooses = chooses or bool({"set_visible_devices", "visible_device_list", "device"} & program.names)
    trains = program.uses_tensorflow and program.trains is not None
    if trains and job.gpus > 1 and (job.tasks or 1) == 1 and not several and not chooses:
        yield job.line_of("gres", "gpus-per-node", "gpus", "gpus-per-task"), program.file, job.gpus


WRITTEN = re.compile(
    r"# Written by `(\S*provision job (single|mirrored|multiworker|horovod|ddp|mpi|cray-ml-plugin) .*)`\. Submit it "
)
# What the program of each kind of job must use, and how it trains otherwise.
NEEDS = {
    "mirrored": ("`tf.distribute.MirroredStrategy`", "it trains on one of the GPUs"),
    "multiworker": ("`tf.distribute.MultiWorkerMirroredStrategy`", "each worker trains alone"),
    "horovod": ("Horovod", "each rank trains alone"),
    "ddp": ("`torch.distributed`", "each rank trains alone"),
    "mpi": ("MPI", "each rank does the same work"),
    "cray-ml-plugin": ("the plug-in (`ml_comm`)", "each rank trains alone"),
}
# The options that a kind of job on one node does not have.
OF_SEVERAL = {"--nodes", "--ranks-per-node", "--launcher"}
OF_SEVERAL_GPUS = {"--gpus", "--sweep", "--out"}


@error(
    "the job starts several ranks, but nothing in this script makes them work together: each trains alone",
    "use {0}, or start one task",
)
def ranks_alone(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """Several ranks of a program that uses nothing to train together."""
    known = program.uses_tensorflow or program.uses_torch
    seen = program.trains is not None and known and not program.uses and not program.doubts
    if start is None or not seen or _kind(job, start) or not starts_several(job, start.command):
        return
    # The command may give each rank something of its own: a number in its arguments, or another program.
    divided = re.search(r"--multi-prog|%t|RANK|PROCID|LOCALID|NODEID|TASK_PID", job.filled(start.command.line.text))
    if not divided and (not program.apart or any("horovod" in name.lower() for _, name in job.modules)):
        how = "Horovod or a strategy of `tf.distribute`"
        if program.uses_torch:
            how = "`init_process_group()`, `DistributedDataParallel` and `DistributedSampler` of `torch`"
        yield Shown(program.trains or 1, start.command.line.text), how


def _kind(job: JobScript, start: Start | None) -> tuple[str, list[str]] | None:
    """The kind of a job that `provision job` wrote for this program, and that command."""
    paths = {one.path for one in job.starts()}
    one_program = len(paths) < 2 or (start is not None and "$script" in start.command.all_words)
    match = next((match for line in job.comments if (match := WRITTEN.match(line.text))), None)
    if match is None or not one_program:
        return None
    try:
        return match[2], shlex.split(match[1])
    except ValueError:
        return match[2], ["provision", "job", match[2]]


def _other_ways(
    job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None
) -> Iterator[tuple[str, str, str | None, str]]:
    """If the program trains in another way than its kind of job: the kind, that way, the first doubt, and the right command."""
    kind, command = _kind(job, start) or ("", [])
    uses = program.uses
    if not kind or kind in uses:
        return
    others = [name for name in NEEDS if name in uses and name != "mpi"]
    libraries = [f"it uses {name}" for name in sorted(uses - set(NEEDS))]
    libraries += ["it uses `mpi4py`"] * ("mpi" in uses)  # for anything
    doubt = next(iter((*program.doubts, *libraries)), None)
    right = others[-1] if others else "mpi" if "mpi" in uses else "single"
    yield kind, others[-1] if others else "", doubt, _command(job, command, right, profile)


@error("the job is for {0}, but nothing in this program uses it: {1}", "`{2}`")
def strategy_unused(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A job of `provision job` whose program does not use what the job is for: Horovod, a strategy, MPI."""
    for kind, _, doubt, command in _other_ways(job, program, start, profile):
        if kind != "single" and doubt is None:
            yield Shown(program.trains or 1, ""), *NEEDS[kind], command


@warning("the job is for {0}, but nothing in this program uses it, as far as it can be read: {1}", "`{2}`")
def kind_unseen(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A program that shows no use of what its kind of job is for, but cannot be read as a whole."""
    for kind, _, doubt, command in _other_ways(job, program, start, profile):
        if kind != "single" and doubt is not None:
            yield Shown(program.trains or 1, ""), NEEDS[kind][0], doubt, command


@advice("this uses {0}, but the job starts one process", "`{1}`")
def one_process(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A job of one process whose program can use several."""
    for kind, right, _, command in _other_ways(job, program, start, profile):
        if kind == "single" and right:
            yield Shown(program.trains or 1, ""), NEEDS[right][0], command


def _command(job: JobScript, command: list[str], kind: str, profile: Site | None) -> str:
    """The command that writes a job of another kind, with the options that this kind has, at the site that is named."""
    leave = {"--no-lint"} | (OF_SEVERAL if kind in ("single", "mirrored") else set())
    leave |= OF_SEVERAL_GPUS if kind == "single" else set()
    here: list[str] = []
    if profile is not None:  # the site that is named; the script may be of another one
        typed = {word.rpartition("=")[2] for word in command}
        known = (arch.name for arch in profile.archs if arch.name in typed)
        arch = next(known, archs_for(job, profile)[0].name)
        leave |= {"--site", "--arch"}
        here = ["--site", profile.typed, "--arch", arch]
    words, skips = ["provision", "job", kind], False
    for word in command[3:]:
        name, equals, _ = word.partition("=")
        if name in leave:
            skips = not equals and name != "--no-lint"
        elif not skips:
            words.append(word)
        else:
            skips = False
    return " ".join((shlex.join(words), *here))
