"""An arch: one kind of node at a site (`[archs.<arch>]`)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.knowledge.math_libraries import MathLibrary
from provision.knowledge.toolchains import mixture
from provision.profile.absolute import Program
from provision.profile.gpu import Gpu
from provision.profile.job import Job
from provision.profile.launcher import Launcher
from provision.profile.mpi import Mpi
from provision.profile.node import Node
from provision.profile.patterns import NAME, Command, Folder, Module, Name
from provision.profile.proof import ProofSettings
from provision.profile.queue import Queue
from provision.profile.reader import Environ, Mark, Named, Reader
from provision.profile.threads import Threads
from provision.wording import count

Deliver = Literal["files", "image", "image-only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The names of the C++ and C compilers once the arch's modules are loaded (`CC` and `cc` on a Cray)."""

    cxx: Program = "g++"
    cc: Program = "gcc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arch:
    """A kind of node. `target` is archspec's name for its CPU, or `native` for the CPU of this machine.

    `stack` is the stack to build for this arch if it is not the site's: GPUs need another TensorFlow.
    `unload` are the modules to unload before `modules` are loaded. `provided` are the modules with which the site itself
    provides TensorFlow and Horovod, `provided_unload` those to unload before them, and `provided_setup` the commands after
    them (`conda activate`). Our modulefile sets `environ`; `build_environ` is set only while something is compiled.
    `library_path` are the folders that the program finds libraries in before others (`LD_LIBRARY_PATH`), as a plug-in of NCCL.
    `launcher_only`: the site warns of all other launchers.
    `math` is the library with which TensorFlow must compute on its CPUs, or None if any is right.
    `gpus_reversed`: the last GPU is the nearest to the first cores, so ranks take GPUs from the end.
    `deliver`: ranks read the files of an environment, or mount one image of it, beside its files or in place of them.
    `deliver_with` are the words of the site's own program that mounts an image, before the program that it starts; without them
    `provision-deliver` mounts it.
    """

    name: str
    target: Name
    stack: Name | None = None
    modules: tuple[Module, ...] = ()
    python: Annotated[Program, Mark.EXPAND] | None = None
    compiler: Compiler
    mpi: Mpi
    launcher: Launcher
    launcher_only: bool = False
    job: Job
    proof: ProofSettings
    environ: Environ = ()
    library_path: tuple[Folder, ...] = ()
    unload: tuple[Module, ...] = ()
    provided: tuple[Module, ...] = ()
    provided_unload: tuple[Module, ...] = ()
    provided_setup: tuple[Command, ...] = ()
    build_environ: Environ = ()
    node: Node | None = None
    threads: Threads
    gpu: Gpu | None = None
    queues: Annotated[tuple[Queue, ...], Named("a queue", NAME)] = ()
    gpus_reversed: bool = False
    math: MathLibrary | None = None
    deliver: Deliver = "files"
    deliver_with: tuple[str, ...] = ()

    def add_faults(self, table: Reader) -> None:
        """Record modules of several generations, a proof with more ranks than GPUs, and a way to mount without an image."""
        for key, names in (("modules", self.modules), ("provided", self.provided)):
            if mixed := mixture(names):
                table.fault(key, mixed)
        if self.gpu and not table.has_fault("gpu.per_node") and self.proof.ranks_per_node > self.gpu.per_node:
            gpus = count(self.gpu.per_node, "GPU")
            what = f"is {self.proof.ranks_per_node}, but a node has only {gpus}, and every rank needs one"
            table.fault("proof.ranks_per_node", what)
        if self.deliver_with and not any("{image}" in word for word in self.deliver_with):
            table.fault("deliver_with", "no word contains `{image}`, where the path of the image stands")

    def queues_of(self, partition: str | None, qos: str | None) -> tuple[Queue, ...]:
        """What the profile says about the queues of a job: its partition and its QOS."""
        return tuple(queue for queue in self.queues if queue.name in (partition, qos))
