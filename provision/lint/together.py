"""Whether the processes of a program can work together: what it uses for that, and what hides from the linter whether it does.

A program is its training script with the modules beside it. Comments and docstrings are not part of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from provision.lint.imports import BY_NAME, files_of
from provision.lint.syntax import KNOWN_MODULES, ShellScript, dotted, first_part, last, value_of

# Modules that make processes work together, or may: what they do is not known here.
LIBRARIES = ("dask", "ray", "mesh_tensorflow", "pyspark")
# Names by which the processes of PyTorch train together, and packages that use these for a program.
PROCESS_GROUP = {"init_process_group", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"}
OVER_TORCH = {
    *("accelerate", "composer", "deepspeed", "fairscale", "ignite", "lightning", "lightning_fabric", "megatron"),
    *("pytorch_lightning", "torchtnt"),
}
MIRRORED = ("MirroredStrategy", "CentralStorageStrategy", "multi_gpu_model")
WORKERS = ("MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy")
# Names by which PyTorch, JAX and Keras 3 distribute a training.
OF_OTHERS = {"distributed", "distribution", "pmap"}
# Modules of Horovod that start programs elsewhere: a script that imports only these is not a training script.
STARTERS = ("runner", "spark", "ray", "common", "data", "_keras")
# The variables by which a process knows which one it is.
RANKS = re.compile(
    r"(SLURM|PMI|PMIX|PALS|ALPS|OMPI_COMM_WORLD|MV2_COMM_WORLD|MPI|PBS|HOROVOD)_\w*"
    r"(RANK|RANKID|PROCID|LOCALID|NODEID|TASK_?NUM|APP_PE|ARRAY_\w+|NTASKS|SIZE)|RANK|LOCAL_RANK|WORLD_SIZE|TF_CONFIG"
    r"|PROVISION_TASK"
)
# Words in the code of programs that know of other processes, or that find out which part of the work is theirs.
APART = re.compile(
    r"(?<![a-z])(horovod|hvd|mpi|distribut\w*|strateg\w*|ranks?|slurm|procid|world|workers?|cluster|shards?|grid|sweep|ensemble"
    r"|task_?id|gethostname|hostname|getpid|uname|queue|lock)(?![a-z])",
    re.IGNORECASE,
)
# What runs or imports a file that is named only when the program runs.
RUNNERS = ("run_path", "run_module", "exec_module", "load_module", "load_source", "SourceFileLoader", "LoadLibrary")
PROGRAMS = re.compile(
    r"os\.(system|popen|exec\w*|spawn\w*|posix_spawnp?)|(subprocess|sp)\.\w+|Popen|check_call|check_output"
)
HARMLESS = re.compile(
    r"(?:\S*/)?(nvidia-smi|rocm-smi|hostname|ls|cat|echo|mkdir|rm|cp|mv|ln|tar|unzip|gzip|gunzip|wget|curl|git|free|df|du|lscpu"
    r"|numactl|module|date|uname|id|which|whoami|clear|cls|touch|head|tail|wc|nproc|rsync)(\s|$)"
)


def uses_horovod(module: str) -> bool:
    """Whether a module is a part of Horovod that training scripts import."""
    first, *rest = module.split(".")
    return first == "horovod" and bool(rest) and rest[0] not in STARTERS


def unread(script: ShellScript, file: str, scripts: Mapping[str, ShellScript]) -> Iterator[tuple[int, str]]:
    """The imports that may be a part of a program, and that are not among its scripts, of which the first is the program."""
    program = next(iter(scripts))
    for imported in script.imports:
        first = imported.module.partition(".")[0]
        if first not in KNOWN_MODULES and not any(path in scripts for path in files_of(imported, file, program)):
            yield imported.line, f"imports `{imported.module}`, which was not read"


def uses(script: ShellScript) -> Iterator[str]:
    """The kinds of jobs whose way of training a script uses, and names of other ways."""
    names = script.names | {text for call in script.calls_of("getattr") for text in _texts(call)}
    modules = {module for imported in script.imports for module in imported.modules}
    first = {module.partition(".")[0] for module in modules}
    if any(uses_horovod(module) for module in modules):
        yield "horovod"
    if names & set(WORKERS):
        yield "multiworker"
    if names & set(MIRRORED):
        yield "mirrored"
    if "ml_comm" in first:
        yield "cray-ml-plugin"
    if first & OVER_TORCH or ("torch" in first and names & PROCESS_GROUP) or names & {"TrainingArguments"}:
        yield "ddp"
    if "mpi4py" in first:
        yield "mpi"
    yield from (f"`{name}`" for name in LIBRARIES if name in first)
    yield from (f"`{name}`" for name in sorted(modules) if re.match(r"horovod\.(runner|spark|ray)\b", name))
    others = {name for name in names if re.fullmatch(r"\w*Strategy(V\d)?", name)} - {*MIRRORED, *WORKERS, "Strategy"}
    yield from (f"`{name}`" for name in sorted(others))
    if first & {"torch", "jax", "keras"}:
        yield from (f"`{name}`" for name in sorted((names | {name.rpartition(".")[2] for name in modules}) & OF_OTHERS))


def doubts(script: ShellScript) -> Iterator[tuple[int, str]]:
    """The lines that may bring in something that the linter does not see, with what they do."""
    for text, line in script.texts.items():
        if RANKS.fullmatch(text):
            yield line, f"reads `{text}`"
    for call in script.calls:
        name, first = last(call), call.args[0] if call.args else None
        if name in BY_NAME and not isinstance(first, ast.Constant):
            yield call.lineno, "imports a module by a name that is known only when it runs"
        elif name in RUNNERS or (name in ("exec", "eval") and isinstance(call.func, ast.Name)):
            yield call.lineno, f"runs other code with `{name}`"
        elif name == "getattr" and first is not None and "distribute" in dotted(first) and not _texts(call):
            yield call.lineno, "takes a strategy by a name that is known only when it runs"
        elif PROGRAMS.fullmatch(dotted(call.func)) and not HARMLESS.match(str(value_of(first_part(first)) or "")):
            yield call.lineno, "starts another program"


def _texts(call: ast.Call) -> set[str]:
    return {part.value for part in call.args if isinstance(part, ast.Constant) and isinstance(part.value, str)}
