"""An arch: one kind of node at a site (`[archs.<arch>]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.knowledge.math_libraries import MATH_LIBRARIES, MathLibrary
from provision.knowledge.toolchains import mixture
from provision.profile.gpu import Gpu, read_gpu
from provision.profile.job import Job, read_job
from provision.profile.launcher import Launcher, read_launcher
from provision.profile.mpi import Mpi, read_mpi
from provision.profile.node import Node, read_node
from provision.profile.patterns import MODULE, NAME
from provision.profile.proof import ProofSettings, read_proof
from provision.profile.queue import Queue, read_queues
from provision.profile.reader import Reader
from provision.profile.scheduler import SchedulerName
from provision.profile.threads import Threads, read_threads
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The names of the C++ and C compilers once the arch's modules are loaded (`CC` and `cc` on a Cray)."""

    cxx: str
    cc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arch:
    """A kind of node. `target` is archspec's name for its CPU, or `native` for the CPU of this machine.

    `stack` is the stack to build for this arch if it is not the site's: GPUs need another TensorFlow.
    `unload` are the modules to unload before `modules` are loaded. `provided` are the modules with which the site itself
    provides TensorFlow and Horovod, and `provided_unload` those to unload before them. Our modulefile sets `environ`;
    `build_environ` is set only while something is compiled.
    `math` is the library with which TensorFlow must compute on its CPUs, or None if any is right.
    `gpus_reversed`: the last GPU is the nearest to the first cores, so ranks take GPUs from the end.
    """

    name: str
    target: str
    stack: str | None
    modules: tuple[str, ...]
    python: str | None
    compiler: Compiler
    mpi: Mpi
    launcher: Launcher
    job: Job
    proof: ProofSettings
    environ: tuple[tuple[str, str], ...]
    unload: tuple[str, ...]
    provided: tuple[str, ...]
    provided_unload: tuple[str, ...]
    build_environ: tuple[tuple[str, str], ...]
    node: Node | None
    threads: Threads
    gpu: Gpu | None
    queues: tuple[Queue, ...]
    gpus_reversed: bool
    math: MathLibrary | None

    def queues_of(self, partition: str | None, qos: str | None) -> tuple[Queue, ...]:
        """What the profile says about the queues of a job: its partition and its QOS."""
        return tuple(queue for queue in self.queues if queue.name in (partition, qos))


def read_arch(name: str, archs: Reader, scheduler: SchedulerName) -> Arch:
    """Read the arch in `[archs.<name>]` of a site with this scheduler."""
    table = archs.table(name)
    compiler = table.table("compiler")
    arch = Arch(
        name=name,
        target=table.text("target", pattern=NAME),
        stack=table.optional("stack", pattern=NAME),
        modules=table.texts("modules", pattern=MODULE),
        python=table.optional("python", expand=True),
        compiler=Compiler(cxx=compiler.text("cxx", "g++"), cc=compiler.text("cc", "gcc")),
        mpi=read_mpi(table.table("mpi")),
        launcher=read_launcher(table.table("launcher"), scheduler),
        job=read_job(table.table("job")),
        proof=read_proof(table.table("proof")),
        environ=table.environment("environ"),
        unload=table.texts("unload", pattern=MODULE),
        provided=table.texts("provided", pattern=MODULE),
        provided_unload=table.texts("provided_unload", pattern=MODULE),
        build_environ=table.environment("build_environ"),
        node=read_node(table.table("node")),
        threads=read_threads(table.table("threads")),
        gpu=read_gpu(table.table("gpu")),
        queues=read_queues(table.table("queues")),
        gpus_reversed=table.flag("gpus_reversed", False),
        math=table.optional_choice("math", MATH_LIBRARIES),
    )
    for key, names in (("modules", arch.modules), ("provided", arch.provided)):
        mixed = mixture(names)
        if mixed:
            table.fault(key, mixed)
    if arch.gpu and not table.has_fault("gpu.per_node") and arch.proof.ranks_per_node > arch.gpu.per_node:
        table.fault(
            "proof.ranks_per_node",
            f"is {arch.proof.ranks_per_node}, but a node has only {count(arch.gpu.per_node, 'GPU')}, and every rank needs one",
        )
    for part in (compiler, table):
        part.done()
    return arch
