"""What to propose for the blanks of a new profile, from what the scheduler and the module system of this machine show. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from provision.knowledge.gpu_models import CAPABILITY_OF
from provision.launch.available_modules import AvailableModule, describe, newest_together
from provision.schedulers.node_kind import NodeKind

CPU_MODULES = ("compiler", "mpi", "python", "cmake")
GPU_MODULES = ("compiler", "mpi", "cuda", "nccl", "python", "cmake")
# The types of `srun --mpi=` that connect ranks of an MPI, the usual one first.
MPI_TYPES = {"openmpi": ("pmix", "pmi2"), "mpich": ("pmi2", "pmix")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What this machine shows: values by key path, kinds of nodes, modules, and the types that `srun --mpi=` accepts.

    `targets` are the CPU targets that are known by name.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[NodeKind] = ()
    modules: Sequence[AvailableModule] = ()
    targets: Collection[str] = ()
    mpi_types: Collection[str] = ()


def propose(key: str, answers: Mapping[str, str | None], gpu_archs: Collection[str], seen: Surroundings) -> str:
    """The proposal for the blank at this key path; empty without one.

    `answers` are those given so far: the nodes are those of the partition that was chosen. `gpu_archs` are the archs with GPUs.
    """
    if not key.startswith("archs."):
        return seen.values.get(key, "")
    _, arch, rest = key.split(".", 2)
    kind = _kind(answers.get(f"archs.{arch}.job.partition"), seen.kinds, with_gpus=arch in gpu_archs)
    if rest == "modules":
        return " ".join(newest_together(seen.modules, GPU_MODULES if arch in gpu_archs else CPU_MODULES))
    if rest == "mpi.family":
        loaded = (answers.get(f"archs.{arch}.modules") or "").split()
        mpi = next((name for name in loaded if describe(name).subject == "mpi"), "")
        return ("openmpi" if "openmpi" in mpi.lower() else "mpich") if mpi else ""
    if rest == "launcher.options":
        return _mpi_option(
            answers.get(f"archs.{arch}.modules") or "", answers.get(f"archs.{arch}.mpi.family") or "", seen.mpi_types
        )
    return _of_kind(rest, kind, seen.targets) if kind else ""


def _mpi_option(modules: str, family: str, types: Collection[str]) -> str:
    """The option with the type of `srun --mpi=` that fits the MPI; Cray's MPICH has a type of its own."""
    wanted = ("cray_shasta",) if "cray-mpich" in modules else MPI_TYPES.get(family, ())
    return next((f"--mpi={name}" for name in wanted if name in types), "")


def _kind(partition: str | None, kinds: Sequence[NodeKind], *, with_gpus: bool) -> NodeKind | None:
    """The kind of node to describe: of the chosen partition, or else of the default one, or else the first that fits."""
    if partition:
        kinds = [kind for kind in kinds if kind.partition == partition]
    fitting = [kind for kind in kinds if bool(kind.gpus) == with_gpus]
    return next((kind for kind in fitting if kind.default), fitting[0] if fitting else None)


def _of_kind(rest: str, kind: NodeKind, targets: Collection[str]) -> str:
    """The value of a key of the arch that describes this kind of node."""
    target = next((feature for feature in kind.features if feature in targets), "")
    values = {
        "target": target,
        "job.partition": kind.partition,
        "job.constraint": target or (kind.features[0] if len(kind.features) == 1 else ""),
        "node.sockets": kind.sockets,
        "node.cores": kind.cores,
        "node.threads": kind.threads,
        "node.memory_gb": kind.memory_gib,
        "gpu.per_node": kind.gpus or "",
        "gpu.capabilities": CAPABILITY_OF.get(kind.gpu_type, ""),
        "proof.ranks_per_node": kind.gpus or "",
    }
    return str(values.get(rest, ""))


def archs_without_nodes(
    gpu_archs: Sequence[str], cpu_archs: Sequence[str], kinds: Sequence[NodeKind]
) -> tuple[str, ...]:
    """The archs of a template for which the scheduler has no nodes: those with GPUs, or those without."""
    if not kinds:
        return ()
    missing = [*([] if any(kind.gpus for kind in kinds) else gpu_archs)]
    missing += [] if any(not kind.gpus for kind in kinds) else cpu_archs
    return tuple(missing)
