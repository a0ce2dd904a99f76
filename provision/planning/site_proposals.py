"""What to propose for the blanks of a new profile, from what the scheduler and the module system of this machine show. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from provision.knowledge.cuda import CAPABILITY_OF
from provision.launch.available_modules import AvailableModule, describe, newest_first, newest_together
from provision.model.batch import to_clock
from provision.profile.blanks import LEAVE_OUT, words_of
from provision.profile.patterns import NAME
from provision.schedulers.node_kind import NodeKind

CPU_MODULES = ("compiler", "mpi", "python", "cmake")
GPU_MODULES = ("compiler", "mpi", "cuda", "nccl", "python", "cmake")
# The types of `srun --mpi=` that connect ranks of an MPI, the usual one first.
MPI_TYPES = {"openmpi": ("pmix", "pmi2"), "mpich": ("pmi2", "pmix")}
# What is proposed if the machine shows nothing else, for a key as it is or in any arch.
DEFAULTS = {
    "scheduler.memory": LEAVE_OUT,
    "scheduler.required": "partition",
    "container.command": LEAVE_OUT,
    "container.image": "docker://tensorflow/tensorflow:2.15.0-gpu",
    "job.account": LEAVE_OUT,
    "job.qos": LEAVE_OUT,
    "job.exclusive": "false",
}
# What an arch has in common with the others, unless the machine shows another value.
SHARED = ("mpi.family", "launcher.options", "job.account", "job.qos", "job.exclusive")
BUILD_S = 1800
"""The time limit that is proposed: builds took minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMachine:
    """What this machine shows: values by key path, kinds of nodes, modules, and the types that `srun --mpi=` accepts.

    `targets` are the CPU targets that are known by name.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[NodeKind] = ()
    modules: Sequence[AvailableModule] = ()
    targets: Collection[str] = ()
    mpi_types: Collection[str] = ()


def propose(key: str, answers: Mapping[str, str | None], gpu_archs: Collection[str], seen: SeenMachine) -> str:
    """The proposal for the blank at this key path; empty without one.

    `answers` are those given so far: the nodes are those of the partition that was chosen. `gpu_archs` are the archs with GPUs.
    """
    if not key.startswith("archs."):
        return seen.values.get(key) or DEFAULTS.get(key, "")
    _, arch, rest = key.split(".", 2)
    partition = answers.get(f"archs.{arch}.job.partition")
    kind = kinds_by_name(seen.kinds, seen.targets).get(arch)
    if kind is None or partition not in (None, kind.partition):
        kind = _kind(partition, seen.kinds, with_gpus=arch in gpu_archs)
    if rest == "modules":
        return " ".join(newest_together(seen.modules, GPU_MODULES if arch in gpu_archs else CPU_MODULES))
    loaded = answers.get(f"archs.{arch}.modules") or ""
    if rest == "mpi.family" and (mpi := next((name for name in loaded.split() if describe(name).subject == "mpi"), "")):
        return "openmpi" if "openmpi" in mpi.lower() else "mpich"
    family = answers.get(f"archs.{arch}.mpi.family") or ""
    if rest == "launcher.options" and (option := _mpi_option(loaded, family, seen.mpi_types)):
        return option
    if rest == "job.time":
        return to_clock(min(BUILD_S, (kind.time if kind else None) or BUILD_S))
    return (_of_kind(rest, kind, seen) if kind else "") or _of_others(rest, answers) or DEFAULTS.get(rest, "")


def _of_others(rest: str, answers: Mapping[str, str | None]) -> str:
    """The answer for this key of an arch that was asked before; empty if the archs need not have it in common."""
    given = (answer for key, answer in answers.items() if rest in SHARED and key.split(".", 2)[2:] == [rest])
    return next((answer for answer in given if answer), "")


def also_there(key: str, proposal: str, seen: SeenMachine) -> str:
    """The newest module of each other MPI that the site has, as a phrase: a proposal names one; empty if there is no other."""
    if not key.endswith(".modules") or not proposal:
        return ""
    stems = {describe(name).name.rpartition("/")[0] for name in words_of(proposal)}
    others: dict[str, str] = {}
    for module in newest_first([module for module in seen.modules if module.subject == "mpi"]):
        others.setdefault(module.name.rpartition("/")[0], module.name)
    names = [name for stem, name in others.items() if stem not in stems]
    return f"also there: {', '.join(names)}" if names else ""


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


def _target(kind: NodeKind, targets: Collection[str]) -> str:
    return next((feature for feature in kind.features if feature in targets), "")


def _hardware(kind: NodeKind, targets: Collection[str]) -> tuple[object, ...]:
    """What nodes have in common for which one environment is built; their memory may differ a little."""
    return (_target(kind, targets), kind.cores, kind.threads, kind.gpus, kind.gpu_type)


def _of_kind(rest: str, kind: NodeKind, seen: SeenMachine) -> str:
    """The value of a key of the arch that describes this kind of node."""
    target = _target(kind, seen.targets)
    alike = {_hardware(one, seen.targets) for one in seen.kinds if one.partition == kind.partition}
    feature = target or (kind.features[0] if len(kind.features) == 1 else "")
    values = {
        "target": target,
        "job.partition": kind.partition,
        "job.constraint": feature if len(alike) > 1 else LEAVE_OUT,
        "job.memory": f"{max(1, kind.memory_gib // kind.cores)}G",
        "job.exclusive": "true" if kind.whole else "",
        "node.sockets": kind.sockets,
        "node.cores": kind.cores,
        "node.threads": kind.threads,
        "node.memory_gb": kind.memory_gib,
        "gpu.per_node": kind.gpus or "",
        "gpu.capabilities": CAPABILITY_OF.get(kind.gpu_type, ""),
        "proof.ranks_per_node": kind.gpus or "",
    }
    return str(values.get(rest, ""))


def kinds_by_name(kinds: Sequence[NodeKind], targets: Collection[str]) -> dict[str, NodeKind]:
    """The kinds of nodes that the scheduler has, by the names of the archs that describe them: `cpu` and `gpu`.

    Several kinds without GPUs are named after their CPU, and several with GPUs after the GPU, if these differ and are known;
    otherwise after their partition. Of the partitions with a kind, the default one describes it, or else the first.
    """
    groups: dict[tuple[object, ...], NodeKind] = {}
    for kind in sorted(kinds, key=lambda one: not one.default):
        groups.setdefault(_hardware(kind, targets), kind)
    named: dict[str, NodeKind] = {}
    for usual, of_kind in (
        ("cpu", [one for one in groups.values() if not one.gpus]),
        ("gpu", [one for one in groups.values() if one.gpus]),
    ):
        for names in (
            [usual],
            [one.gpu_type if one.gpus else _target(one, targets) for one in of_kind],
            [one.partition for one in of_kind],
            [f"{usual}{number}" for number in range(1, len(of_kind) + 1)],
        ):
            free = all(NAME.fullmatch(name) and name not in named for name in names)
            if free and len(set(names)) == len(of_kind):
                named |= dict(zip(names, of_kind, strict=True))
                break
    return named


def with_versions(answer: str, modules: Sequence[AvailableModule]) -> str:
    """The names of modules, each with its newest version if it was typed without one and the site has versions of it."""
    words = words_of(answer)
    known = {module.name for module in modules}
    for index, word in enumerate(words):
        versions = [module for module in modules if module.name.rpartition("/")[0] == word]
        if word not in known and versions:
            words[index] = newest_first(versions)[0].name
    return " ".join(words)
