"""The rules for a job script and the training script that it starts: the job must start it in the way that it needs."""

from __future__ import annotations

import ast
import re

from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA
from provision.lint.job_script import TOP, JobScript, Start
from provision.lint.launch_rules import HOSTS, starts_several
from provision.lint.rule import Found, Shown, error, warning
from provision.lint.shell_lines import ShellCommand, ShellLine, base
from provision.lint.syntax import is_environ, value_of
from provision.lint.together_rules import WRITTEN
from provision.lint.training_script import OVER_TORCH, TrainingProgram
from provision.profile.arch import Arch

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
    by_itself = not program.ddp or {"spawn", "start_processes"} & program.called or program.modules & OVER_TORCH
    together = program.horovod or program.multiworker_by_slurm or not by_itself
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
    unset = {word for command in job.commands if command.name == "unset" for word in command.words[1:]}
    avoided = {"http_proxy", "https_proxy"} <= unset or {"no_proxy", "NO_PROXY"} & set(job.variables)
    if program.multiworker and not avoided:
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
