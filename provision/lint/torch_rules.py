"""The rules for PyTorch: how its processes are started and find each other, which GPU each takes, and which data it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from provision.knowledge.whole_numbers import whole_number
from provision.lint.job_script import VARIABLE, JobScript, Start
from provision.lint.launch_rules import starts_several
from provision.lint.pair_rules import one_gpu_per_task
from provision.lint.rule import Found, Shown, error, warning
from provision.lint.shell_lines import ShellCommand, Torchrun, base, expanded
from provision.lint.syntax import (
    FUNCTIONS,
    LEAVES,
    Syntax,
    arguments,
    dotted,
    given,
    is_environ,
    last,
    unpacks,
    value_of,
)
from provision.lint.training_script import OVER_TORCH, TrainingProgram

THIS_NODE = re.compile(r"(?:tcp://)?(localhost|127\.0\.\d+\.\d+)(?::\d+)?(?:\?.*)?")
PROCESSES, ADDRESS = "nproc[-_]per[-_]node", "(?:master[-_]addr|rdzv[-_]endpoint)"
# A variable that each process has for itself: the number of a process, of a node, or of a process on its node.
OWN_NUMBER = re.compile(
    r"(?<!\\)\$\{?((SLURM_(PROCID|LOCALID|NODEID)|(OMPI_COMM_WORLD|PMIX?|PALS|MV2_COMM_WORLD|MPI)_(LOCAL_?|NODE_?)?(RANK|RANKID))\b)"
)
RANKS = re.compile(r"((WORLD|GLOBAL|LOCAL)_)?RANK|\w*VISIBLE_DEVICES|ZE_AFFINITY_MASK")
OWN_NAME = re.compile(
    r"(?:MASTER_ADDR=|--(?:master[-_]addr|rdzv[-_]endpoint)[= ])[\"']?"
    r"(\$\(hostname\b[^)]*\)|`hostname\b[^`]*`|\$\(uname -n\)|\$\{?(?:HOSTNAME|SLURMD_NODENAME)\}?|localhost\b|127\.0\.\d+\.\d+)"
)
# Names by which processes share weights or gradients, or may.
SHARES = re.compile(
    r"parallel|fsdp|fully_shard|^DDP$|distributed|reduce(?!lr)|gather|broadcast|scatter|all_to_all|^i?(send|recv)|batch_isend|rpc|pipelin|mesh"
    r"|dtensor|comm_hook|averag\w*_|(?<!all)_grads|^sync|ZeroRed|apex|hvd|distribute_",
    re.IGNORECASE,
)
# A GPU that is not one for all processes: it is numbered, set, counted, or hidden from others.
CHOOSES_GPU = re.compile(r"set_device|local_?(rank|id)|device_(count|ids?)|gpu(_?id)?|dev_?id|ordinal", re.IGNORECASE)


@error(
    "each of the {0} tasks of a node starts torchrun, and each torchrun starts {1} processes of its own: {0} × {1} on a node",
    "`--ntasks-per-node=1` for torchrun, or the program without torchrun in one task for each GPU",
)
def torchrun_tasks(job: JobScript) -> Found:
    """torchrun in several tasks of a node."""
    for launch in job.launches:
        each = launch.torchrun.value(PROCESSES) if launch.torchrun else ""
        tasks, total = launch.ranks_per_node, whole_number(launch.ranks)
        if each in ("", "1") or (tasks is None and launch.launcher != "srun"):
            continue  # otherwise the launcher places the tasks
        if tasks is None and total is not None:
            tasks = total // (launch.nodes or job.nodes)
        if tasks is None and launch.nodes is not None and job.number("ntasks-per-node") is None:
            continue
        tasks = job.ranks_per_node if tasks is None else tasks
        if tasks > 1:
            yield launch.line, tasks, each if each.isdecimal() else tasks


def _differs(job: JobScript, launch: ShellCommand, number: str) -> bool:
    """Whether the tasks that a launcher starts have different values of a variable of their own."""
    if "LOCAL" in number:
        return (launch.ranks_per_node or job.ranks_per_node) > 1
    return job.nodes > 1 if number == "SLURM_NODEID" else True


@error(
    "the shell of the job script replaces `${0}` before the processes exist, so all of them get the same {1}",
    "`{2}`, or the same in a script that the launcher starts: each process then reads its own",
)
def number_of_shell(job: JobScript, training: TrainingProgram | None) -> Found:
    """The number of a process that the shell of the job script replaces, so that it is the same in all processes."""
    by_itself = training is not None and (training.horovod or training.modules & {"lightning", "pytorch_lightning"})
    for launch in job.launches:
        several = starts_several(job, launch) or (job.nodes > 1 and launch.launcher == "srun" and launch.torchrun)
        if not several or "$0" in launch.text:
            continue
        words = expanded(launch.line)
        place = next((place for place, word in enumerate(words) if base(word) == launch.launcher), len(words))
        command = takewhile(lambda word: not word or not set(word) <= set(";&|"), words[place:])
        torchrun = launch.torchrun
        for before, word in pairwise(command):
            match = _own_number(job, word)
            to_file = re.match(r"(-o|-e|-i|--output|--error|--input)\b|\d?>", word if "=" in word else before)
            meets = torchrun and re.search(r"--rdzv[-_]backend[= ](?!static)|--standalone", " ".join(torchrun.words))
            of_node = re.match(r"--node[-_]rank\b", word if "=" in word else before)
            if match and not to_file and not (meets and of_node) and _differs(job, launch, match[1]):
                how = f"torchrun --node-rank=${match[1]}" if torchrun else f"python … ${match[1]}"
                yield launch.line, match[1], "value", f"{launch.launcher} bash -c 'exec {how} …'"
                break
        # A wrapper may set it again, torchrun does so, and a function is run by each process.
        again = _wrapped(launch) or "RANK=" in launch.line.text.partition(launch.launcher)[2] or "export -f" in job.text
        for variable, setting in job.variables.items() if not (torchrun or again or by_itself) else ():
            match = _own_number(job, f"${variable}")
            of_mpi = launch.launcher != "srun" and match is not None and match[1].startswith("SLURM")  # `slurm-number`
            earlier = setting.number <= launch.line.number
            if RANKS.fullmatch(variable) and match and not of_mpi and earlier and _differs(job, launch, match[1]):
                how = f"{launch.launcher} bash -c 'export {variable}=${match[1]}; exec python …'"
                yield setting, match[1], f"`{variable}`", how


def _wrapped(launch: ShellCommand) -> bool:
    """Whether a script of the user may stand between a launcher and the program, and set variables there."""
    before = re.split(r"(?:^|\s)\S*python", launch.text)[0]
    return re.search(r"\.sh\b|(^|\s)\./(?!\S*\.py)|wrap|(?<!-)bind", before) is not None


def _own_number(job: JobScript, word: str) -> re.Match[str] | None:
    """The variable of each process that the shell replaces in a word, or replaced in a variable that the word has."""
    if match := OWN_NUMBER.search(word):
        return match
    for used in VARIABLE.finditer(word):
        setting = job.variables.get(used[1] or used[2])
        line = next((line for line in job.lines if setting and line.number == setting.number), None)
        # A line may set several: only the value of this one counts.
        if setting and line and (match := OWN_NUMBER.search(setting.value)) and match[0] in "".join(expanded(line)):
            return match
    return None


@error(
    "each of the {0} nodes starts a training of its own: this torchrun {1}",
    '`torchrun --nnodes={0} --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:29500" …`',
)
def torchrun_apart(job: JobScript) -> Found:
    """torchrun on several nodes, of which each trains for itself."""
    for launch in job.launches:
        found = launch.torchrun
        one_node = launch.nodes == 1 or not starts_several(job, launch)
        if not found or job.nodes < 2 or one_node or OWN_NUMBER.search(launch.line.text):
            continue
        words = found.words[: next((n for n, word in enumerate(found.words) if word.endswith(".py")), len(found.words))]
        words = tuple(job.filled(" ".join(words)).split())
        others = any(
            w.startswith("$") and ("=" in b or not b.startswith("-")) for b, w in zip(["", *words], words, strict=False)
        )
        number = Torchrun((), words).value("nnodes") or ("" if others else "1")
        if "--standalone" in words or (number in ("1", "1:1") and "PET_NNODES" not in job.text):
            yield launch.line, job.nodes, "is `--standalone`" if "--standalone" in words else "is for one node"


def _processes(job: JobScript, command: ShellCommand) -> int:
    """The processes that a command starts on each node by torchrun; 0 if that is not known."""
    found = command.torchrun if command.name not in ("echo", "printf") else None
    each = job.filled(found.value(PROCESSES)) if found else ""
    return int(each) if each.isdecimal() and len(each) < 10 else 0


@error("{0} processes on each node, but {1} GPU{2} there: the last ones find none", "`--nproc-per-node={1}`")
def processes_per_gpu(job: JobScript) -> Found:
    """More processes of torchrun on a node than GPUs."""
    for command in job.commands:
        each = _processes(job, command)
        if 0 < job.gpus < each and not command.has("--gpus|--gres|-G"):
            yield command.line, each, job.gpus, "s" * (job.gpus > 1)


@error(
    "`WORLD_SIZE` is {0}, but {1} tasks are started: they wait for each other, or fail",
    "`export WORLD_SIZE=$SLURM_NTASKS`",
)
def world_size(job: JobScript, training: TrainingProgram | None) -> Found:
    """A `WORLD_SIZE` that is not the number of tasks."""
    value = job.set_to("WORLD_SIZE")
    other = training is not None and (training.horovod or training.modules & OVER_TORCH or _tells_size(training))
    for launch in job.launches if value.isdecimal() and not other else ():
        tasks = job.filled(launch.ranks) or str(job.tasks)
        own = not launch.ranks and launch.has(r"-N|--nodes|--n?tasks-per|-w\b|--nodelist")
        own = own or launch.torchrun is not None or _wrapped(launch) or "WORLD_SIZE" in launch.text
        own = own or job.variables["WORLD_SIZE"].number > launch.line.number or "export -f" in job.text
        differs = tasks.isdecimal() and int(tasks) != int(value[:9])
        if launch.launcher == "srun" and differs and not own and starts_several(job, launch):
            yield job.variables["WORLD_SIZE"], value, tasks


def _tells_size(program: TrainingProgram) -> bool:
    """Whether a program gives the number of processes itself."""
    calls = [call for script in program.scripts.values() for call in script.calls_of("init_process_group")]
    return any(given(call, "world_size", 3) for call in calls) or any("SLURM_N" in text for text in program.texts)


@error(
    "the job has {0} nodes, but this starts torchrun on the first one only",
    "`srun --ntasks-per-node=1 torchrun --nnodes={0} …`",
)
def torchrun_one_node(job: JobScript) -> Found:
    """torchrun without a launcher in a job of several nodes."""
    for command in job.commands if job.scheduler != "none" and "array" not in job.options else ():
        found = command.torchrun
        starts = found is not None and all(base(word).startswith("python") or word == "-m" for word in found.before)
        if starts and job.nodes > 1 and command.ends_with != "&":
            yield command.line, job.nodes


@error(
    "the first process is on another node than most, but {0} is an address of each node itself: they wait for each other",
    '`export MASTER_ADDR="{1}"` in the job script, for all of them',
)
def master_here(job: JobScript, training: TrainingProgram | None, start: Start | None) -> Found:
    """Processes on several nodes that look for the first one on their own node."""
    launched = [start.command] if start else list(job.launches)
    several = [one for one in launched if starts_several(job, one) or (one.launcher and one.torchrun)]
    several = [one for one in several if one.nodes != 1]
    first = {"slurm": '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'}.get(
        job.scheduler, '$(head -n 1 "$PBS_NODEFILE")'
    )
    if job.nodes < 2 or not several:
        return
    if "MASTER_ADDR" in job.variables and THIS_NODE.fullmatch(job.set_to("MASTER_ADDR")):
        yield job.variables["MASTER_ADDR"], f"`{job.set_to('MASTER_ADDR')}`", first
    for launch in several:
        asked = OWN_NAME.search(launch.line.text)
        literal = asked is not None and asked[1][0] not in "$`"
        # What the shell of the job script replaces is the name of the first node.
        shown = "".join(expanded(launch.line)).replace(" ", "")
        if (
            asked
            and (asked[0][0] == "M" if literal else asked[1].replace(" ", "") not in shown)
            and not OWN_NUMBER.search(launch.line.text.partition(asked[0])[0])
        ):
            yield launch.line, f"`{asked[1]}`", first
            continue
        address = job.filled(launch.torchrun.value(ADDRESS)) if launch.torchrun else ""
        if THIS_NODE.fullmatch(address) and "MASTER_ADDR" not in job.variables:
            yield launch.line, f"`{address}`", first
    for node in _own_addresses(training.script) if training is not None else ():
        yield node, f"`{ast.unparse(node)[:60]}`", first


def _own_addresses(script: Syntax) -> Iterator[ast.expr]:
    """The addresses of the own node that a program gives as those of the first process, whatever its job has set."""
    found = [at.value for name, at, _ in script.exported if name == "MASTER_ADDR" and isinstance(at, ast.Assign)]
    found += [value for call in script.calls_of("init_process_group") if (value := given(call, "init_method", 1))]
    for node in found:
        # In a condition it may be for a run without a job.
        if THIS_NODE.fullmatch(str(value_of(node))) and not script.is_inside(node, ast.If, ast.Try, ast.IfExp):
            yield node


def _on_first_gpu(script: Syntax) -> ast.expr | None:
    """The first expression by which every process uses GPU 0, if nothing in the script chooses a GPU."""
    ids = [value for call in script.calls for name in ("device_ids", "output_device") if (value := given(call, name))]
    fixed = bool(ids) and all(isinstance(value, ast.List | ast.Constant) and _is_zero(value) for value in ids)
    words = {last(node) for node in script.reads() if not _only_asked(script, node)}
    # The number is read into a name, whose uses decide.
    into = (node for node in script.of(ast.Assign) if any(map(_names_gpu, node.targets)))
    read = {id(part) for node in into for part in ast.walk(node.value)}
    words |= {
        str(node.value)[:80] for node in script.of(ast.Constant) if id(node) not in read and isinstance(node.value, str)
    }
    words |= script.arguments | (script.keywords - ({"device_ids", "output_device"} if fixed else set()))
    if any(CHOOSES_GPU.search(word) or re.match(r"cuda:\D*$|cuda:[1-9]", word) for word in words):
        return None
    used: list[ast.expr] = [
        call for call in script.methods("cuda") if not call.keywords and all(map(_is_zero, call.args))
    ]
    used += [node for node in script.of(ast.Constant) if node.value in ("cuda", "cuda:0")]
    used += [*ids, *script.calls_of("set_device")]
    return min(used, key=lambda node: node.lineno, default=None)


def _names_gpu(target: ast.expr) -> bool:
    """Whether a name, or one of several, to which a value is assigned is that of the number of a GPU."""
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return any(isinstance(name, ast.Name) and CHOOSES_GPU.search(name.id) for name in names)


def _is_zero(node: ast.expr) -> bool:
    """Whether an expression is GPU 0, or a list of only that."""
    if isinstance(node, ast.List):
        return len(node.elts) == 1 and _is_zero(node.elts[0])
    return value_of(node) in (0, "cuda:0") and value_of(node) is not False


def _only_asked(script: Syntax, node: ast.AST) -> bool:
    """Whether a name is only compared with something, or shown, or chooses GPU 0."""
    parent = script.parents.get(id(node))
    if isinstance(parent, ast.Call) and parent.func is node and last(node) == "set_device":
        return bool(parent.args) and all(map(_is_zero, parent.args))
    for outer in script.around(node):
        if isinstance(outer, ast.Compare | ast.FormattedValue) or (
            isinstance(outer, ast.Call) and last(outer) == "print"
        ):
            # The text of which a value is a part: `f"cuda:{rank}"`.
            around = script.parents.get(id(outer))
            parts = ast.walk(around if isinstance(around, ast.JoinedStr) else outer)
            return not any(isinstance(part, ast.Constant) and "cuda" in str(part.value) for part in parts)
        if isinstance(outer, ast.stmt):
            return isinstance(outer, ast.If | ast.While) and any(part is node for part in ast.walk(outer.test))
    return False


def _left_on_first_gpu(program: TrainingProgram) -> ast.expr | None:
    """The call that puts a model on GPU 0, `.cuda()` or `.to("cuda")`, if DistributedDataParallel is given another number."""
    # A module beside the script may choose the GPU.
    if {"set_device", "device", "CUDA_VISIBLE_DEVICES"} & (program.names | program.texts):
        return None
    script = program.script
    for call in script.calls_of("DistributedDataParallel", "DDP"):
        ids, model = given(call, "device_ids", 1), given(call, "module", 0)
        if model is None or ids is None or not isinstance(ids, ast.List) or _is_zero(ids):
            continue
        made = {ast.unparse(one) for one in (model, *script.sources(model))}
        for moved in (*script.methods("cuda"), *script.methods("to")):
            to_first = not moved.args if last(moved) == "cuda" else value_of(given(moved, "device", 0)) == "cuda"
            of_model = isinstance(moved.func, ast.Attribute) and ast.unparse(moved.func.value) in made
            if to_first and not moved.keywords and (of_model or ast.unparse(moved) in made):
                return moved
    return None


@error(
    "all {0} processes of a node use GPU 0",
    '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the first use of a GPU, or one GPU for each task',
    name="gpu-not-pinned",
)
def all_on_first_gpu(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """Processes of PyTorch of which none chooses its GPU."""
    together = program.uses & {"ddp", "horovod"} and not program.modules & OVER_TORCH
    if start is None or not together or not program.is_whole:
        return
    found = start.command.torchrun
    ranks = _processes(job, start.command) or (job.ranks_per_node if start.command.launcher else 1)
    bound = one_gpu_per_task(job) or _wrapped(start.command)
    bound = bound or re.search(r"gpu-bind|gpus-per-task|VISIBLE_DEVICES", job.text) is not None
    scripts = program.scripts.values()
    left = _left_on_first_gpu(program)
    node = left or next((node for script in scripts if (node := _on_first_gpu(script))), None)
    chosen = left is None and any(_on_first_gpu(script) is None and "cuda" in script.names for script in scripts)
    if node is not None and not chosen and (found or not bound) and min(ranks, job.gpus or ranks) > 1:
        yield start.command.line, ranks


def _of_global_rank(script: Syntax, node: ast.expr) -> bool:
    """Whether a value is the number of a process among those of all nodes, and nothing else."""
    if isinstance(node, ast.List) and len(node.elts) == 1:
        node = node.elts[0]
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        return len(parts) == 1 and value_of(node.values[0]) == "cuda:" and _of_global_rank(script, parts[0])
    sources = script.sources(node)
    while any(isinstance(one, ast.Call) and last(one) == "int" and one.args for one in sources):
        sources = [
            one.args[0] if isinstance(one, ast.Call) and last(one) == "int" and one.args else one for one in sources
        ]
    named = [one.slice if isinstance(one, ast.Subscript) and is_environ(one.value) else one for one in sources]
    return all(
        value_of(one) in ("RANK", "SLURM_PROCID") or (isinstance(one, ast.Call) and last(one) == "get_rank")
        for one in named
    )


@error(
    "this GPU has the number of a process among all {0}, but a node has only {1}: those of the second node find none",
    '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`',
)
def rank_as_gpu(job: JobScript, program: TrainingProgram, script: Syntax, start: Start | None) -> Found:
    """A GPU with the number of the process among those of all nodes."""
    if start is None or job.nodes < 2 or not job.gpus or "VISIBLE_DEVICES" in job.text or program.modules & OVER_TORCH:
        return
    tasks = _processes(job, start.command) * job.nodes or (job.tasks or 0) * starts_several(job, start.command)
    places = {"set_device": 0, "cuda": 0, "to": 0, "device": 1, "DistributedDataParallel": 9, "DDP": 9}
    for call in script.calls_of(*places) if program.uses_torch and tasks > job.gpus else ():
        argument = given(call, "device_ids", places[last(call)])
        if last(call) == "device" and isinstance(given(call, "device", 0), ast.JoinedStr):
            argument = given(call, "device", 0)
        if argument is not None and _of_global_rank(script, argument):
            yield Shown(call, ast.unparse(call)[:100]), tasks, job.gpus
            return


# What each process of a group must call: those that do wait for the others.
COLLECTIVES = (
    *("barrier", "monitored_barrier", "all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor"),
    *("broadcast", "broadcast_object_list", "reduce", "reduce_scatter", "scatter", "gather", "all_to_all"),
)
FIRST = re.compile(
    r"not [\w.]*rank(\(\))?|[\w.]*(rank|RANK)\w*(\(\)|['\"]\]\)*)? == '?0'?"
    r"|([\w.]*\.)?is_(main|master|chief|first|rank_?0|rank_?zero)\w*(\(\))?"
)


@error(
    "only the first process calls `{0}`, and waits there for all others",
    "move it out of the `if`, so that each process calls it",
)
def collective_on_one(program: TrainingProgram, script: Syntax) -> Found:
    """A collective operation of PyTorch that only the first process calls."""
    calls = [
        call
        for call in script.calls_of(*COLLECTIVES)
        if program.uses_torch
        and re.fullmatch(r"(torch\.)?(dist|distributed|c10d)\.\w+", dotted(call.func))
        and given(call, "group") is None
    ]
    chosen = [(call, where) for call in calls if (where := _chosen(script, call))]
    # Elsewhere the others may call it, too.
    for call, (_, left) in chosen if all(first for _, (first, _) in chosen) else ():
        if not left:
            yield Shown(call, ast.unparse(call)[:100]), ast.unparse(call.func)


def _chosen(script: Syntax, call: ast.Call, depth: int = 3) -> tuple[bool, bool] | None:
    """If only some processes make a call: whether that is only the first one, and whether it then leaves."""
    for inner, outer in script.steps(call):
        if isinstance(outer, FUNCTIONS) and inner in outer.body:
            calls = script.callers(outer) if depth else None
            chosen = [_chosen(script, one, depth - 1) for one in calls or ()]
            # The other processes may call it elsewhere.
            of_some = [one for one in chosen if one]
            return min(of_some) if of_some and len(of_some) == len(chosen) else None
        if isinstance(outer, ast.If | ast.IfExp | ast.While) and inner is not outer.test and script.by_rank(outer.test):
            tests = (
                outer.test.values
                if isinstance(outer.test, ast.BoolOp) and isinstance(outer.test.op, ast.And)
                else [outer.test]
            )
            first = isinstance(outer, ast.If) and inner in outer.body
            first = first and any(FIRST.fullmatch(ast.unparse(test)) for test in tests)
            left = isinstance(outer, ast.If) and (
                isinstance(outer.body[-1], LEAVES) or "exit" in ast.unparse(outer.body[-1])
            )
            return first, left
    return None


@error(
    "the processes find each other, but nothing makes them share what they learn: each trains alone",
    "`model = torch.nn.parallel.DistributedDataParallel(model)`",
    name="ranks-alone",
)
def group_unused(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """A process group that no process uses for its training."""
    imported = [alias for script in program.scripts.values() for alias in script.of(ast.alias)]
    # A name that is imported and not used does nothing.
    words = program.names | {one.name.rpartition(".")[2] for one in imported if one.asname in program.names}
    shares = (
        any(SHARES.search(word) for word in words - {"distributed", "DistributedSampler"})
        or program.modules & OVER_TORCH
    )
    if start is None or "init_process_group" not in words or shares or not program.uses_torch or not program.is_whole:
        return
    several = starts_several(job, start.command) or (start.command.torchrun and program.trains)
    if several and program.trains and program.uses <= {"ddp", "`distributed`"}:
        yield (Shown(program.trains, start.command.line.text),)


@error(
    "DistributedDataParallel needs the group of all processes, but nothing makes it: each process ends with an error",
    "`torch.distributed.init_process_group()` before it",
)
def no_process_group(program: TrainingProgram, script: Syntax) -> Found:
    """DistributedDataParallel in a program that does not call `init_process_group`."""
    # The names of functions that make the group, of whatever package.
    makes = any(
        re.search(r"init\w*_?(process|dist|rpc|group|mesh)|dist\w*_init|mesh", name, re.IGNORECASE)
        for name in program.names
    )
    if makes or not (program.uses_torch and program.is_whole and script.runs) or program.modules & OVER_TORCH:
        return
    for call in script.calls_of("DistributedDataParallel", "DDP"):
        if program.trains and given(call, "process_group") is None and not unpacks(call):
            yield (call,)
            return


@warning(
    "gloo takes the gradients of GPUs through memory and TCP: neither NVLink nor InfiniBand is used",
    '`init_process_group("nccl")`',
)
def gloo_on_gpus(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """Processes that train on GPUs and exchange their gradients by gloo."""
    made = [call for script in program.scripts.values() for call in script.calls_of("init_process_group")]
    only = made and all(value_of(given(call, "backend", 0)) == "gloo" for call in made)
    wrapped = program.called & {"DistributedDataParallel", "DDP"}
    on_gpus = wrapped and "cuda" in program.names | program.texts and "nccl" not in program.texts
    for call in script.calls_of("init_process_group") if only and on_gpus and job.gpus else ():
        yield (call,)


@warning(
    "nothing calls `set_epoch`, so every epoch has its data in the same order",
    "`{0}.set_epoch(epoch)` at the beginning of each epoch",
)
def no_set_epoch(program: TrainingProgram, script: Syntax) -> Found:
    """A `DistributedSampler` that shuffles in the same way in each epoch."""
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
