"""The strategies to train on several devices at a site (`[strategies.<name>]`), each of which is a kind of job."""

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import Module, Name, ShellPath
from provision.profile.reader import Environ, Reader

StrategyName = Literal["single", "mirrored", "multiworker", "horovod", "ddp", "mpi", "cray-ml-plugin"]
STRATEGIES: tuple[StrategyName, ...] = ("single", "mirrored", "multiworker", "horovod", "ddp", "mpi")
# Strategies that only a site's own modules provide: if a profile names the modules, we can write a job script for them,
# but we can neither build nor prove anything.
PLUGINS: tuple[StrategyName, ...] = ("cray-ml-plugin",)
# How workers may communicate: the reductions of MultiWorkerMirroredStrategy, the backends of torch.distributed.
COMMUNICATIONS = {"multiworker": ("AUTO", "RING", "NCCL"), "ddp": ("AUTO", "GLOO", "NCCL", "MPI")}
Status = Literal["recommended", "supported", "deprecated", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A site's advice on a strategy, with a note. `communication` is how workers exchange gradients in a proof.

    `stack` is the one whose module its jobs load, if that is not the stack of the arch: PyTorch's for `ddp`.
    The other values are for plug-ins: the `modules` in order (names, or absolute paths of modulefiles), the `environ` that
    they need, and the `example` that they contain (a path that begins with a `$VARIABLE` that they set) with its `arguments`.
    """

    name: StrategyName
    status: Status = "supported"
    note: str | None = None
    stack: Name | None = None
    communication: Literal["AUTO", "RING", "NCCL", "GLOO", "MPI"] = "AUTO"
    modules: tuple[Module, ...] = ()
    environ: Environ = ()
    example: ShellPath | None = None
    arguments: tuple[ShellPath, ...] = ()

    def add_faults(self, table: Reader) -> None:
        """Record a plug-in without modules, and values that are for another strategy."""
        ways = COMMUNICATIONS.get(self.name)
        if ways and self.communication not in ways:
            table.fault(
                "communication", f"must be one of {', '.join(ways)} for `{self.name}`, but is {self.communication!r}"
            )
        if self.name in PLUGINS and self.status != "absent" and not self.modules:
            table.missing("modules", "a plug-in comes from modules of the site")
        if self.example and not self.example.startswith("$"):
            table.fault("example", f"must begin with a `$VARIABLE` that the modules set, but is {self.example!r}")
        for key in ("modules", "environ", "example", "arguments"):
            if self.name not in PLUGINS and getattr(self, key):
                table.fault(key, f"is only for plug-ins: {', '.join(PLUGINS)}")
