"""A stack: what to install (`stacks/<stack>.toml`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from provision.knowledge.math_libraries import MATH_LIBRARIES, MathLibrary
from provision.profile.patterns import NAME, form
from provision.profile.reader import Faults, Reader
from provision.profile.strategy import PLUGINS

BackendName = Literal["venv", "spack"]
# What can make an environment of a stack; the first is used if the stack names none. `backends/` has one folder for each.
BACKENDS: tuple[BackendName, ...] = ("venv", "spack")
VERSION = form(r"[0-9]+(\.[0-9]+)+", "of a version, such as `2.15.1`")
MODULE_NAME = form(f"{NAME.pattern}/{NAME.pattern}", "of a name and a version, such as `tensorflow/2.15.1`")
PYTHON = form(r"3\.[0-9]{1,3}", "of a Python, such as `3.11`")
# The training programs in `provision/proof/programs/`; `proof/strategies.py` lists the checks of each.
PROGRAMS = ("horovod_keras", "horovod_graph", "single", "mirrored", "multiworker")
# The programs that train without Horovod; a stack with one of them can omit `horovod`.
WITHOUT_HOROVOD = ("single", "mirrored", "multiworker")
# The ones that are one process, however many devices it uses.
ONE_PROCESS_PROGRAMS = ("single", "mirrored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The framework against which Horovod is compiled; `package` is its distribution on the package index."""

    name: Literal["tensorflow"]
    package: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How the proof program trains on one data set, and the test accuracy (0..1) that it must reach.

    `batch_size` is per rank; `learning_rate` is for one rank, and the program multiplies it by the number of ranks.
    """

    data: str
    epochs: int
    batch_size: int
    learning_rate: float
    min_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What to install. `module` is the module's name; `pythons` are the minor versions with locks, the best first.

    `gpus`: it is only for archs with GPUs. `horovod` is its version, or None if users of the stack train without it; then
    nothing is compiled. `backend` is the backend that makes the environment. `math` is the library with which it must compute
    on CPUs, or None if any is right.
    """

    name: str
    summary: str
    module: str
    pythons: tuple[str, ...]
    framework: Framework
    horovod: str | None
    environ: tuple[tuple[str, str], ...]
    proof_program: str
    training: tuple[Training, ...]
    backend: BackendName = BACKENDS[0]
    gpus: bool = False
    math: MathLibrary | None = None


def read_stack(data: Mapping[str, Any], origin: str) -> Stack:
    """Read a parsed `stacks/<stack>.toml`.

    Raises:
        ConfigError: the file has faults; the error lists each with its key path.
    """
    faults = Faults(origin)
    top = Reader(data, faults)
    framework, horovod, proof = (
        top.table("framework", required=True),
        top.table("horovod"),
        top.table("proof"),
    )
    training = []
    for name in ("mnist", "digits"):
        table = proof.table(name, required=True)
        training.append(
            Training(
                data=name,
                epochs=table.integer("epochs", least=1),
                batch_size=table.integer("batch_size", least=1),
                learning_rate=table.number("learning_rate", 0.001),
                min_accuracy=table.number("min_accuracy", 0.9),
            )
        )
        if not 0 < training[-1].min_accuracy <= 1:
            table.fault("min_accuracy", f"must be above 0 and at most 1, but is {training[-1].min_accuracy}")
        table.done()
    given = data.get("proof")
    plugin = given.get("program") if isinstance(given, Mapping) and given.get("program") in PLUGINS else None
    if plugin:
        proof.fault(
            "program",
            f"`{plugin}` is only for job scripts: it comes from a site's own modules, and has no proof",
        )
    before = len(faults.lines)
    program = proof.text("program", choices=() if plugin else PROGRAMS)
    has_horovod = "horovod" in top.names()
    if not (has_horovod or plugin) and program not in WITHOUT_HOROVOD and len(faults.lines) == before:
        top.fault(
            "horovod", f"missing; `proof.program` is `{program}`, but only {_listed(WITHOUT_HOROVOD)} train without it"
        )
    stack = Stack(
        name=top.text("name", pattern=NAME),
        summary=top.text("summary"),
        module=top.text("module", pattern=MODULE_NAME),
        pythons=top.texts("pythons", required=True, pattern=PYTHON),
        framework=Framework(
            name="tensorflow",
            package=framework.text("package", pattern=NAME),
            version=framework.text("version", pattern=VERSION),
        ),
        horovod=horovod.text("version", pattern=VERSION) if has_horovod else None,
        environ=top.environment("environ"),
        proof_program=program,
        training=tuple(training),
        gpus=top.flag("gpus", False),
        math=top.optional_choice("math", MATH_LIBRARIES),
        backend=top.choice("backend", BACKENDS, BACKENDS[0]),
    )
    framework.text("name", choices=("tensorflow",))
    for part in (framework, horovod, proof, top):
        part.done()
    faults.check(hint=f"edit `{origin}`")
    return stack


def _listed(names: Sequence[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}"
