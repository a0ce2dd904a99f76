"""A stack: what to install (`stacks/<stack>.toml`).

A stack with ranges (`[choose]`) is a wish: of the stacks with locks that fit, the newest that works.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from provision.knowledge.combinations import keras_of
from provision.knowledge.compilable import COMPILABLE
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.frameworks.interface import FrameworkInterface, MathLibrary
from provision.profile.choices import BACKENDS, BackendName
from provision.profile.patterns import NAME, Form, Name
from provision.profile.reader import Environ, Faults, FormRule, Mark, Positive, Reader
from provision.profile.strategy import PLUGINS

FrameworkName = Literal["tensorflow", "pytorch"]
KerasBackend = Literal["tensorflow", "torch"]
Version = Annotated[str, Form(r"[0-9]+(\.[0-9]+)+", "of a version, such as `2.15.1`")]
OfFramework = Annotated[str, Form(r"[0-9]+(\.[0-9]+)+(\+(cpu|cu[0-9]{3}))?", "of a version, such as `2.15.1`")]
MODULE_NAME = Form(f"{NAME.pattern}/{NAME.pattern}", "of a name and a version, such as `tensorflow/2.15.1`")
PYTHON = Form(r"3\.[0-9]{1,3}", "of a Python, such as `3.11`")
Accuracy = Annotated[
    float, FormRule(lambda value: None if 0 < value <= 1 else f"must be above 0 and at most 1, but is {value}")
]
# The training programs in `provision/proof/programs/`; `proof/strategies.py` lists the checks of each.
Program = Literal["horovod_keras", "horovod_graph", "single", "mirrored", "multiworker", "ddp", "horovod_torch"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
# The programs that train without Horovod; a stack with one of them can omit `horovod`.
WITHOUT_HOROVOD = ("single", "mirrored", "multiworker", "ddp")
# The program that trains with Keras on each of its backends.
KERAS_PROGRAMS: Mapping[KerasBackend, str] = {"tensorflow": "single", "torch": "keras_torch"}
# The ones that are one process, however many devices it uses.
ONE_PROCESS_PROGRAMS = ("single", "mirrored")
RANGE = Form(r"(?:(?:>=|<=|==|!=|<|>|~=)\s*[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}(?:\.\*)?\s*,?\s*){1,8}")
KerasName = Literal["2", "3", "tf-keras"]
TABLE = "choose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The framework against which Horovod is compiled; `package` is its distribution on the package index."""

    name: FrameworkName
    package: Name
    version: OfFramework
    """With a label if its wheels are of an index of PyTorch: `2.14.1+cpu`, `2.7.1+cu118`."""

    @property
    def interface(self) -> FrameworkInterface:
        """What the tool knows about it."""
        return FRAMEWORKS[self.name]

    @property
    def for_cpus(self) -> bool:
        """Whether its package has no kernels for GPUs: `tensorflow-cpu`, or `torch` 2.14.1+cpu."""
        return self.package in self.interface.cpu_distributions or self.version.endswith("+cpu")

    @property
    def title(self) -> str:
        """Name and version for people: `TensorFlow 2.15.1`."""
        return f"{self.interface.title} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How the proof program trains on one data set, and the test accuracy (0..1) that it must reach.

    `batch_size` is per rank; `learning_rate` is for one rank, and the program multiplies it by the number of ranks.
    """

    data: str
    epochs: Positive
    batch_size: Positive
    learning_rate: float = 0.001
    min_accuracy: Accuracy = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What to install. `module` is the module's name; `pythons` are the minor versions with locks, the best first.

    `gpus`: it is only for archs with GPUs. `horovod` is its version, or None if users of the stack train without it. `beside`
    are other frameworks for which that Horovod is compiled too; the lock has their versions. `compiled` are the other packages
    that are compiled against the site's MPI, with their versions. `keras_backends` are the backends on which Keras must train.
    `backend` is the backend that makes the environment. `math` is the library with which it must compute on CPUs, or None if any
    is right.
    """

    name: Name
    summary: str
    module: Annotated[str, MODULE_NAME]
    pythons: Annotated[tuple[Annotated[str, PYTHON], ...], Mark.NOT_EMPTY]
    framework: Framework
    horovod: str | None
    beside: tuple[FrameworkName, ...] = ()
    keras_backends: tuple[KerasBackend, ...] = ()
    compiled: tuple[tuple[str, str], ...] = ()
    environ: Environ = ()
    proof_program: str
    training: tuple[Training, ...]
    backend: BackendName = BACKENDS[0]
    gpus: bool = False
    math: MathLibrary | None = None

    @property
    def uses_cuda_of_site(self) -> bool:
        """Whether an arch with GPUs must provide CUDA: something is compiled with it, or the framework does not bring it."""
        return self.horovod is not None or not self.framework.interface.brings

    @property
    def frameworks(self) -> tuple[FrameworkInterface, ...]:
        """All frameworks of its environment, its own first."""
        others = (one for one in FRAMEWORKS.values() if one.name in self.beside or one.package in self.keras_backends)
        return (self.framework.interface, *(one for one in others if one.name != self.framework.name))

    @property
    def cpus_only(self) -> bool:
        """Whether it was tried on CPUs only: two frameworks in one environment, and Horovod for another than TensorFlow."""
        return len(self.frameworks) > 1 or (self.horovod is not None and self.framework.name != "tensorflow")

    @property
    def from_source(self) -> Mapping[str, str]:
        """The packages that are compiled in the job, Horovod first, with their versions."""
        return {**({"horovod": self.horovod} if self.horovod else {}), **dict(self.compiled)}


def read_stack(data: Mapping[str, Any], origin: str) -> Stack:
    """Read a parsed `stacks/<stack>.toml`.

    Raises:
        ConfigError: the file has faults; the error lists each with its key path.
    """
    faults = Faults(origin, data)
    top = Reader(data, faults)
    table = top.table("framework", required=True)
    framework = table.into(Framework)
    horovod, compiled, proof = top.table("horovod"), top.table("compiled"), top.table("proof")
    of_horovod = horovod.get("frameworks", tuple[FrameworkName, ...], (framework.name,))
    if framework.name not in of_horovod and not table.has_fault("name"):
        horovod.fault("frameworks", f"must contain `{framework.name}`, the framework of the stack")
    training = (proof.table(name, required=True).into(Training, data=name) for name in ("mnist", "digits"))
    plugin = next((name for name in PLUGINS if name == proof.data.get("program")), None)
    if plugin:
        what = f"`{plugin}` is only for job scripts: it comes from a site's own modules, and has no proof"
        proof.fault("program", what)
    stack = top.into(
        Stack,
        framework=framework,
        horovod=horovod.get("version", Version) if "horovod" in data else None,
        beside=tuple(name for name in of_horovod if name != framework.name),
        compiled=tuple((name, version) for name in COMPILABLE if (version := compiled.get(name, Version | None))),
        proof_program=proof.get("program", str if plugin else Program),
        training=tuple(training),
    )
    program = stack.proof_program
    if not (proof.has_fault("program") or program in WITHOUT_HOROVOD or "horovod" in data):
        top.fault(
            "horovod", f"missing; `proof.program` is `{program}`, but only {_listed(WITHOUT_HOROVOD)} train without it"
        )
    keras_3 = keras_of(framework.version, stack.environ) == "3"
    if stack.keras_backends and not (framework.name == "tensorflow" and keras_3):
        top.fault("keras_backends", f"only Keras 3 has a choice, and {framework.title} of this stack has none with it")
    known = not (table.has_fault("name") or proof.has_fault("program") or plugin)
    of = FRAMEWORKS.get(framework.name)
    if known and of and program not in of.programs:
        proof.fault("program", f"`{program}` does not train {of.title}: {_listed(of.programs)}")
    horovod.done()
    compiled.done()
    proof.done()
    faults.check(hint=f"edit `{origin}`")
    return stack


def _listed(names: Sequence[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}"


def not_a_range(text: str) -> str | None:
    """What is wrong with a range that pip would not read: `~=2` and `>=2.*` have the form of one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return f"{text!r} is not a range of versions, such as `>=2.13,<2.16`"
    return None


Range = Annotated[str, RANGE, FormRule(not_a_range)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wished for; None: anything. `program` is a training program of the proof, which also says how users train."""

    name: str
    summary: str
    tensorflow: Range | None = None
    pytorch: Range | None = None
    python: Range | None = None
    keras: KerasName | None = None
    horovod: bool = True
    program: Name | None = None

    @property
    def framework(self) -> tuple[str, str]:
        """The framework that is wished for, and the range of its versions."""
        return ("pytorch", self.pytorch) if self.pytorch else ("tensorflow", self.tensorflow or "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The wishes that can be dropped, by the names of their keys."""
        given = {**dict([self.framework]), "python": self.python, "keras": self.keras, "program": self.program}
        return (*(name for name, value in given.items() if value), "horovod")


def is_wish(data: Mapping[str, Any]) -> bool:
    """Whether the parsed file of a stack has ranges instead of versions."""
    return TABLE in data


def read_wish(data: Mapping[str, Any], origin: str) -> Wish:
    """Read a parsed `stacks/<stack>.toml` with the table `[choose]`.

    Raises:
        ConfigError: the file has faults; the error lists each with its key path.
    """
    faults = Faults(origin, data)
    top = Reader(data, faults)
    table = top.table(TABLE, required=True)
    wish = table.into(Wish, name=top.get("name", Name), summary=top.get("summary", str))
    if (wish.tensorflow is None) == (wish.pytorch is None) and not (
        table.has_fault("tensorflow") or table.has_fault("pytorch")
    ):
        table.fault("tensorflow", "missing" if wish.tensorflow is None else "and `pytorch` are both given: choose one")
    top.done()
    faults.check(hint=f"edit `{origin}`")
    return wish
