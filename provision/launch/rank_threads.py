"""How many threads a rank gets, and whether the job or the module sets them. Pure.

The rule of the site pages: each rank starts inter times intra threads, and all ranks of a node together must not start more
threads than the node has (NERSC, page of 2018-09: 64 on Haswell, 272 on Cori's KNL, 256 on Theta's). One operation of
TensorFlow runs on `intra` threads, as many as OpenMP has (ALCF, page of 2018). `inter` operations run at once, one per
socket.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.arch import Arch, Node
from provision.profile.site import Site
from provision.wording import count

INTER, INTRA, OMP = "NUM_INTER_THREADS", "NUM_INTRA_THREADS", "OMP_NUM_THREADS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankThreads:
    """The threads of one rank: those of OpenMP, and those of TensorFlow's two pools."""

    omp: int
    inter: int
    intra: int


def parts_of_node(site: Site, arch: Arch, ranks_per_node: int, cpus_per_rank: int) -> float:
    """How many equal parts a node is divided into: one per rank, or more if each rank requests fewer CPUs than that.

    `cpus_per_rank` is counted as the scheduler of the site counts; 0 means that the job requests none.
    """
    whole = cpus_of_node(site, arch)
    return max(ranks_per_node, whole / cpus_per_rank) if whole and cpus_per_rank else ranks_per_node


def cpus_of_node(site: Site, arch: Arch) -> int:
    """The CPUs of a whole node as the scheduler of the site counts them; 0 if the profile does not describe the node."""
    node = arch.node
    return 0 if node is None else node.threads if site.scheduler.cpu == "thread" else node.cores


def cpus_of_rank(site: Site, arch: Arch, ranks: int, gpus: int = 0) -> int:
    """The CPUs of one of these ranks on a node, of the GPUs that it uses or its share of the node; 0: nothing is known."""
    per_task, node_cpus = arch.job.cpus_per_task, cpus_of_node(site, arch)
    if arch.gpu is not None:
        return (per_task or node_cpus // arch.gpu.per_node) * max(1, gpus // ranks)
    return per_task or node_cpus // ranks


def rank_threads(arch: Arch, parts: float) -> RankThreads | None:
    """The threads of a rank that has one of `parts` equal parts of a node; None if the profile sets no threads.

    The values of the profile are for one rank that has the whole node. If `inter` is not set, it is one per socket, or
    fewer if the node has not enough threads.
    """
    threads, node = arch.threads, arch.node
    if node is None and not threads.omp and not threads.intra:
        return None
    omp = threads.omp or threads.intra or (node.cores if node else 0)
    intra = threads.intra or omp
    inter = threads.inter or (min(node.sockets, node.threads // intra) if node else 1)
    omp, inter, intra = (max(1, int(number / parts)) for number in (omp, inter, intra))
    return RankThreads(omp=omp, inter=inter, intra=intra)


def explain_too_many_threads(node: Node, ranks_per_node: int, inter: int, intra: int) -> str | None:
    """The reason why these are more threads than the node has; None if they are not."""
    wanted = ranks_per_node * inter * intra
    if wanted <= node.threads:
        return None
    ranks = count(ranks_per_node, "rank")
    return f"{ranks} × {inter} inter × {intra} intra are {wanted} threads, but the node has {node.threads}"


def job_environ(arch: Arch, parts: float, ranks_per_node: int = 1) -> tuple[tuple[str, str], ...]:
    """The variables that a job sets for ranks that each have one of `parts` parts of a node.

    The job always sets the pools of TensorFlow, because no module does. It sets the threads of OpenMP if the site leaves them
    to the job, or if the ranks of a node would have more than the node with the number that the module sets.
    """
    threads = rank_threads(arch, parts)
    if threads is None:
        return ()
    pools = ((INTER, str(threads.inter)), (INTRA, str(threads.intra)))
    if arch.threads.owner == "module":
        too_many = arch.node is not None and arch.threads.omp * ranks_per_node > arch.node.threads
        return ((OMP, str(threads.omp)), *pools) if too_many else pools
    return ((OMP, str(threads.omp)), *arch.threads.environ, *pools)


def module_environ(arch: Arch) -> tuple[tuple[str, str], ...]:
    """The variables that our modulefile sets: the threads of OpenMP, if modules set them at this site."""
    if arch.threads.owner != "module":
        return ()
    return (*(((OMP, str(arch.threads.omp)),) if arch.threads.omp else ()), *arch.threads.environ)
