"""A training script with the modules beside it: what it uses to train with several processes, and what hides that.

Comments and docstrings are not part of a program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from provision.lint.imports import BY_NAME, files_of
from provision.lint.syntax import KNOWN_MODULES, TRAINS, Syntax, dotted, first_part, last, value_of

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


def unread(script: Syntax, file: str, scripts: Mapping[str, Syntax]) -> Iterator[tuple[int, str]]:
    """The imports that may be a part of a program, and that are not among its scripts, of which the first is the program."""
    program = next(iter(scripts))
    for imported in script.imports:
        first = imported.module.partition(".")[0]
        if first not in KNOWN_MODULES and not any(path in scripts for path in files_of(imported, file, program)):
            yield imported.line, f"imports `{imported.module}`, which was not read"


def uses(script: Syntax) -> Iterator[str]:
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


def doubts(script: Syntax) -> Iterator[tuple[int, str]]:
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


class Download(NamedTuple):
    """Something that a script fetches from the internet unless it is there already."""

    line: int
    what: str
    fetch: str
    """A command that fetches it beforehand, in Python."""
    name: str | None = None
    """The name with which `provision data fetch` fetches it; None if it cannot."""


@dataclass(kw_only=True)
class TrainingProgram:
    """A training script with the modules beside it, and what they use."""

    file: str
    source: tuple[str, ...]
    scripts: dict[str, Syntax]
    """The syntax tree of the training script, then those of the modules, by their paths."""
    error: Exception | None = None
    """Why the script has no syntax tree."""
    downloads: tuple[Download, ...] = ()

    @property
    def script(self) -> Syntax:
        """The syntax tree of the training script."""
        return self.scripts[self.file]

    def row(self, line: int) -> str:
        """A line of the training script."""
        return self.source[line - 1].strip() if 0 < line <= len(self.source) else ""

    @cached_property
    def uses(self) -> set[str]:
        """The kinds of jobs whose way of training it uses, and names of other ways to train with several processes."""
        return {name for script in self.scripts.values() for name in uses(script)}

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why it may train together in a way that was not seen; the first is the clearest."""
        found = (
            f"line {line} of `{file}` {what}"
            for file, script in self.scripts.items()
            for line, what in (*unread(script, file, self.scripts), *doubts(script))
        )
        return tuple(dict.fromkeys(found))

    @property
    def apart(self) -> bool:
        """Whether words of the code let each process have its own work on purpose."""
        words = (word for one in self.scripts.values() for word in (*one.names, *one.texts, *one.modules))
        return any(APART.search(word) for word in words)

    @property
    def is_whole(self) -> bool:
        """Whether every part of the program was read, apart from packages that are known to hold none."""
        return not any(True for file, script in self.scripts.items() for _ in unread(script, file, self.scripts))

    @property
    def horovod(self) -> bool:
        """Whether it uses Horovod."""
        return "horovod" in self.uses

    @property
    def mirrored(self) -> bool:
        """Whether it uses MirroredStrategy, and not the one of several workers."""
        return "mirrored" in self.uses and "multiworker" not in self.uses

    @property
    def multiworker_by_slurm(self) -> bool:
        """Whether it asks Slurm for the workers of MultiWorkerMirroredStrategy."""
        return "multiworker" in self.uses and "SlurmClusterResolver" in self.names

    @cached_property
    def names(self) -> set[str]:
        """All names, attributes and names of arguments in the code."""
        return set().union(*(script.names | script.keywords for script in self.scripts.values()))

    @cached_property
    def texts(self) -> set[str]:
        """All texts in the code."""
        return set().union(*(script.texts for script in self.scripts.values()))

    @cached_property
    def called(self) -> set[str]:
        """The names of all functions that are called."""
        return set().union(*(script.called for script in self.scripts.values()))

    @cached_property
    def modules(self) -> set[str]:
        """The first parts of the names of all imported modules."""
        return {name.partition(".")[0] for script in self.scripts.values() for name in script.modules}

    @property
    def uses_torch(self) -> bool:
        """Whether it uses PyTorch, and not TensorFlow beside it."""
        return "torch" in self.modules and not self.modules & {"tensorflow", "keras"}

    @property
    def uses_tensorflow(self) -> bool:
        """Whether it uses TensorFlow, itself or through Keras or Horovod."""
        return bool(self.modules & {"tensorflow", "keras", "horovod"})

    @cached_property
    def trains(self) -> int | None:
        """The first line that trains, 1 if it is in a module beside the script; None if there is none."""
        lines = [call.lineno for call in self.script.calls_of(*TRAINS)]
        return min(lines, default=1 if self.called & set(TRAINS) else None)

    @cached_property
    def aliases(self) -> dict[str, int]:
        """The names under which the script imports Horovod, with the lines."""
        if any(name.startswith(("horovod.spark", "horovod.ray", "pyspark")) for name in self.script.modules):
            return {}  # an estimator of Horovod trains, and does by itself what the rules ask for
        aliases: dict[str, int] = {}
        for node in self.script.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                of = f"{node.module}." if isinstance(node, ast.ImportFrom) and not node.level else ""
                used = (alias for alias in node.names if uses_horovod(f"{of}{alias.name}"))
                aliases.update({alias.asname or alias.name: node.lineno for alias in used})
        return aliases
