"""The rules for PyTorch: how its processes are started and find each other, which GPU each takes, and which data it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from provision.lint.job_script import JobScript, Start
from provision.lint.launch_rules import option, starts_several, torchrun_of
from provision.lint.pair_rules import one_gpu_per_task
from provision.lint.rule import Found, error, warning
from provision.lint.shell_lines import base
from provision.lint.syntax import ShellScript, arguments, given, is_environ, last, value_of
from provision.lint.together import OVER_TORCH
from provision.lint.training_script import TrainingProgram

THIS_NODE = re.compile(r"(?:tcp://)?(localhost|127\.0\.\d+\.\d+)(?::\d+)?(?:\?.*)?")
NUMBER_OF_PROCESSES = re.compile(r"--nproc[-_]per[-_]node(?:=|$)(.*)")
ADDRESS = re.compile(r"--(?:master[-_]addr|rdzv[-_]endpoint)(?:=|$)(.*)")
# A GPU that is not one for all processes: it is numbered, set, counted, or hidden from others.
CHOOSES_GPU = re.compile(r"set_device|local_?(rank|id)|device_(count|ids?)|gpu(_?id)?|dev_?id|ordinal", re.IGNORECASE)


def _value(words: list[str], pattern: re.Pattern[str]) -> str:
    """The value of an option that is among these words, in the same word or in the next one."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if match := pattern.fullmatch(word):
            return match[1] if "=" in word else after
    return ""


@error(
    "torchrun-tasks",
    "each of the {0} tasks of a node starts torchrun, and each torchrun starts {1} processes of its own: {0} × {1} on a node",
    "`--ntasks-per-node=1` for torchrun, or the program without torchrun in one task for each GPU",
)
def torchrun_tasks(job: JobScript) -> Found:
    """torchrun in several tasks of a node."""
    for launch in job.launches:
        found = torchrun_of(launch)
        each = _value(found[1], NUMBER_OF_PROCESSES) if found else "1"
        if found is None or each in ("", "1"):
            continue
        words = launch.options
        tasks = option(words, "--ntasks-per-node|--tasks-per-node|--ppn|-ppn|-npernode", "[ =]?")
        if tasks is None and launch.launcher != "srun":
            continue  # the launcher places the tasks
        if tasks is None and (ranks := option(words, "-n|--ntasks", "[ =]?")):
            tasks = str(int(ranks) // int(option(words, "-N|--nodes", "[ =]?") or job.nodes))
        if tasks is None and option(words, "-N|--nodes", "[ =]?") and job.number("ntasks-per-node") is None:
            continue
        tasks = tasks or str(job.ranks_per_node)
        if int(tasks) > 1:
            yield launch.line, tasks, each if each.isdecimal() else tasks


@error(
    "torchrun-one-node",
    "the job has {0} nodes, but this starts torchrun on the first one only",
    "`srun --ntasks-per-node=1 torchrun --nnodes={0} …`",
)
def torchrun_one_node(job: JobScript) -> Found:
    """torchrun without a launcher in a job of several nodes."""
    for command in job.commands if job.scheduler != "none" and "array" not in job.options else ():
        found = torchrun_of(command)
        starts = found is not None and all(base(word).startswith("python") or word == "-m" for word in found[0])
        if starts and job.nodes > 1 and command.ends_with != "&":
            yield command.line, job.nodes


@error(
    "master-here",
    "the first process is on another node than most, but {0} is an address of each node itself: they wait for each other",
    '`export MASTER_ADDR="{1}"` in the job script, for all of them',
)
def master_here(job: JobScript, training: TrainingProgram | None, start: Start | None) -> Found:
    """Processes on several nodes that look for the first one on their own node."""
    launched = [start.command] if start else list(job.launches)
    several = [one for one in launched if starts_several(job, one) or (one.launcher and torchrun_of(one))]
    several = [one for one in several if not re.search(r"(^| )(-N|--nodes)[ =]?1( |$)", one.options)]
    first = {"slurm": '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'}.get(
        job.scheduler, '$(head -n 1 "$PBS_NODEFILE")'
    )
    if job.nodes < 2 or not several:
        return
    if "MASTER_ADDR" in job.variables and THIS_NODE.fullmatch(job.set_to("MASTER_ADDR")):
        yield job.variables["MASTER_ADDR"], f"`{job.set_to('MASTER_ADDR')}`", first
    for launch in several:
        found = torchrun_of(launch)
        address = job.filled(_value(found[1], ADDRESS)) if found else ""
        if THIS_NODE.fullmatch(address) and "MASTER_ADDR" not in job.variables:
            yield launch.line, f"`{address}`", first
    for node in _own_addresses(training.script) if training is not None else ():
        yield node, f"`{ast.unparse(node)[:60]}`", first


def _own_addresses(script: ShellScript) -> Iterator[ast.expr]:
    """The addresses of the own node that a program gives as those of the first process, whatever its job has set."""
    found = [
        node.value
        for node in script.of(ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript) and is_environ(target.value) and value_of(target.slice) == "MASTER_ADDR"
    ]
    found += [value for call in script.calls_of("init_process_group") if (value := given(call, "init_method", 1))]
    for node in found:
        if any(isinstance(outer, ast.If | ast.Try | ast.IfExp) for outer in script.around(node)):
            continue  # it may be for a run without a job
        if THIS_NODE.fullmatch(str(value_of(node))):
            yield node


def _on_first_gpu(script: ShellScript) -> ast.expr | None:
    """The first expression by which every process uses GPU 0, if nothing in the script chooses a GPU."""
    words = {*script.names, *script.keywords, *(text[:80] for text in script.texts), *script.arguments}
    if any(CHOOSES_GPU.search(word) or re.match(r"cuda:\D*$|cuda:[1-9]", word) for word in words):
        return None
    used: list[ast.expr] = [call for call in script.methods("cuda") if not call.args and not call.keywords]
    used += [node for node in script.of(ast.Constant) if node.value in ("cuda", "cuda:0")]
    return min(used, key=lambda node: node.lineno, default=None)


@error(
    "gpu-not-pinned",
    "all {0} processes of a node use GPU 0",
    '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the first use of a GPU, or one GPU for each task',
)
def all_on_first_gpu(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """Processes of PyTorch of which none chooses its GPU."""
    if start is None or not (program.ddp or program.horovod) or program.modules & OVER_TORCH or not program.is_whole:
        return
    found = torchrun_of(start.command)
    each = _value(found[1], NUMBER_OF_PROCESSES) if found else ""
    ranks = int(each[:9]) if each.isdecimal() else job.ranks_per_node if start.command.launcher else 1
    bound = one_gpu_per_task(job) or re.search(r"gpu-bind|gpus-per-task|\.sh\b|VISIBLE_DEVICES", job.text)
    node = next((node for script in program.scripts.values() if (node := _on_first_gpu(script))), None)
    chosen = any(_on_first_gpu(script) is None and "cuda" in script.names for script in program.scripts.values())
    if node is not None and not chosen and (found or not bound) and min(ranks, job.gpus or ranks) > 1:
        yield start.command.line, ranks


@warning(
    "no-set-epoch",
    "nothing calls `set_epoch`, so every epoch has its data in the same order",
    "`{0}.set_epoch(epoch)` at the beginning of each epoch",
)
def no_set_epoch(program: TrainingProgram) -> Found:
    """A `DistributedSampler` that shuffles in the same way in each epoch."""
    script = program.script
    if "set_epoch" in program.names or program.modules & OVER_TORCH or program.trains is None:
        return
    # What a sampler is handed to may call it.
    epochs = [loop for loop in script.of(ast.For) if re.search("epoch", ast.unparse(loop.target), re.IGNORECASE)]
    for call in script.calls_of("DistributedSampler"):
        shuffle = given(call, "shuffle", 3)
        name = next((last(node) for node in script.targets(call)), "sampler")
        of_test = re.search(r"val|test|eval", name, re.IGNORECASE)
        handed = (one for one in script.calls if name in map(last, arguments(one)))
        if any(last(one) != "DataLoader" for one in handed):
            continue
        if epochs and not of_test and value_of(shuffle) is not False:
            yield call, name
            return
