"""The rules for a job script and the training script that it starts: the job must start it in the way that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from provision.launch.rank_threads import INTER, INTRA
from provision.lint import Finding
from provision.lint.job_script import JobScript, Start, fault, gpus_of, ranks_per_node, tasks_of
from provision.lint.together_rules import check_together
from provision.lint.training import Training


def check_pair(script: JobScript, training: Training, start: Start | None) -> Iterator[Finding]:
    """What is wrong between a job script and its training script. `start` is the command; None if it is not known."""
    yield from _shape(script, training, start)
    yield from _ranks(script, training, start)
    yield from check_together(script, training, start)
    yield from _multiworker(script, training)
    yield from _gpus(script, training)
    launchers = {launcher: line for line, launcher, _ in script.started()}
    others = [name for name in launchers if name in ("mpirun", "mpiexec", "aprun")]
    if training.reads_slurm is not None and others:
        yield Finding(
            rule="slurm-number",
            file=training.file,
            line=training.reads_slurm,
            message=f"SLURM_PROCID is 0 in every process that {others[0]} starts",
            evidence=launchers[others[0]].text,
            fix="start the ranks with srun, or use Horovod's number: `hvd.rank()`",
        )
    if {INTER, INTRA} & set(script.variables) and not training.reads_threads and training.uses_tensorflow:
        name = next(name for name in (INTER, INTRA) if name in script.variables)
        yield fault(
            script,
            "threads-unread",
            (script.variables[name][1], f"{name}={script.variables[name][0]}"),
            f"neither TensorFlow nor `{training.file}` reads `{name}`",
            f'`tf.ConfigProto(intra_op_parallelism_threads=int(os.environ["{INTRA}"]), …)` as the `config` of the session'
            if training.has_session
            else f'`tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["{INTRA}"]))`, and the same for inter',
        )


def _launched(script: JobScript, start: Start | None) -> bool:
    """Whether a launcher starts the training script, or may start it in a way that is not understood."""
    if start is None:
        return True
    # A function, a loop variable or another script may start it with a launcher.
    return start.command.launcher is not None or any(word.startswith("$") for word in start.command.all_words[:1])


def _shape(script: JobScript, training: Training, start: Start | None) -> Iterator[Finding]:
    """The number of tasks and nodes must be that of the strategy."""
    tasks, nodes, gpus = tasks_of(script) or 1, script.number("nodes") or 1, gpus_of(script)
    where = script.line_of("ntasks", "ntasks-per-node", "nodes")
    launcher = start.command.launcher[0] if start is not None and start.command.launcher else None
    if training.mirrored and tasks > 1 and _launched(script, start):
        yield fault(
            script,
            "mirrored-tasks",
            where,
            f"MirroredStrategy is one process, but the job has {tasks} tasks, each of which takes all GPUs",
            "`--nodes=1` and `--ntasks=1`",
        )
    elif training.mirrored and nodes > 1:
        yield fault(script, "mirrored-nodes", where, "MirroredStrategy uses the GPUs of one node only", "`--nodes=1`")
    own = launcher in ("mpirun", "mpiexec", "horovodrun") or script.scheduler != "slurm"
    if training.horovod and tasks == 1 and gpus > 1 and not own and "ntasks-per-gpu" not in script.options:
        total = script.value("gpus")
        yield fault(
            script,
            "horovod-tasks",
            script.line_of("ntasks", "gres", "gpus"),
            f"one task, but {gpus} GPUs: Horovod uses one GPU per task",
            f"`--ntasks={gpus}`, and as many nodes as these GPUs need" if total else f"`--ntasks-per-node={gpus}`",
        )


def _ranks(script: JobScript, training: Training, start: Start | None) -> Iterator[Finding]:
    """Several ranks must be started by a launcher."""
    tasks = tasks_of(script) or 1
    if start is None:
        return
    line, together = start.command.line, training.horovod or training.multiworker_by_slurm
    if not _launched(script, start) and tasks > 1 and together and script.scheduler == "slurm":
        yield fault(
            script,
            "no-launcher",
            line,
            f"the job has {tasks} tasks, but without a launcher this starts one process, which trains alone",
            f"`srun {line.text.strip()}`"[:200],
        )


def _multiworker(script: JobScript, training: Training) -> Iterator[Finding]:
    """MultiWorkerMirroredStrategy needs srun if it asks Slurm for its workers, and workers that no proxy separates."""
    if not training.multiworker:
        return
    launchers = {launcher: line for line, launcher, _ in script.started()}
    others = [name for name in launchers if name in ("mpirun", "mpiexec", "aprun")]
    if "srun" not in launchers and training.multiworker_by_slurm and (others or (tasks_of(script) or 1) == 1):
        line = launchers[others[0]] if others else (1, "")
        yield fault(
            script,
            "multiworker-launcher",
            line,
            "SlurmClusterResolver reads SLURM_STEP_NUM_TASKS, which only srun sets",
            "`srun python …`",
        )
    unset = {word for command in script.commands if command.name == "unset" for word in command.words[1:]}
    if not {"http_proxy", "https_proxy"} <= unset and not {"no_proxy", "NO_PROXY"} & set(script.variables):
        yield fault(
            script,
            "proxies",
            launchers.get("srun", (1, "")),
            "the workers use gRPC, which a proxy blocks: they would hang",
            "before it, `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy all_proxy`",
        )


def _gpus(script: JobScript, training: Training) -> Iterator[Finding]:
    """Each rank must find its GPU, and one process must not take several."""
    gpus_per_task = script.options.get("gpus-per-task")
    bound = "none" not in (script.value("gpu-bind") or "") and "--gpu-bind=none" not in script.text
    one_each = gpus_per_task is not None and gpus_per_task.value.rpartition(":")[2] == "1" and bound
    if gpus_per_task is not None and one_each and training.picks_gpu_by_local_rank is not None:
        yield Finding(
            rule="gpu-by-local-rank",
            file=training.file,
            line=training.picks_gpu_by_local_rank,
            message="each task sees only one GPU, number 0, so all tasks but the first fail with IndexError",
            evidence=gpus_per_task.text,
            fix="`gpus[hvd.local_rank() if len(gpus) > 1 else 0]`",
        )
    gpus, ranks = gpus_of(script), ranks_per_node(script)
    known = "ntasks-per-node" in script.options or "tasks-per-node" in script.options
    if gpus and known and ranks > gpus and training.picks_gpu_by_local_rank is not None:
        yield fault(
            script,
            "tasks-per-gpu",
            script.line_of("ntasks-per-node", "tasks-per-node"),
            f"{ranks} tasks on {gpus} GPUs of a node: line {training.picks_gpu_by_local_rank} of `{training.file}` "
            "takes one GPU for each task, and the last tasks find none",
            f"`--ntasks-per-node={gpus}`",
        )
    single = not (training.horovod or training.multi_gpu)
    if single and training.uses_tensorflow and gpus > 1 and (tasks_of(script) or 1) == 1:
        chosen = "CUDA_VISIBLE_DEVICES" in script.text or training.chooses_gpu
        if not chosen and training.trains is not None:
            yield fault(
                script,
                "one-of-many-gpus",
                script.line_of("gres", "gpus-per-node", "gpus", "gpus-per-task"),
                f"`{training.file}` uses one GPU, but the job requests {gpus}, and TensorFlow fills the memory of all",
                "request one GPU, or use `tf.distribute.MirroredStrategy()`",
            )
