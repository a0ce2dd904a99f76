"""How many threads a rank gets, and who says so. Pure.

The rule of the site pages: the ranks of a node together start no more threads than it has, inter times intra each (NERSC,
page of 2018-09; 64 on Haswell, 272 on Cori's KNL, 256 on Theta's). TensorFlow's operations run on `intra` threads, which is what
OpenMP has (ALCF, page of 2018), and `inter` of them at once, one a socket.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.arch import Arch
from provision.profile.node import Node
from provision.profile.site import Site

INTER, INTRA, OMP = "NUM_INTER_THREADS", "NUM_INTRA_THREADS", "OMP_NUM_THREADS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankThreads:
    """The threads of one rank: OpenMP's, and TensorFlow's two pools."""

    omp: int
    inter: int
    intra: int


def parts_of_node(site: Site, arch: Arch, ranks_per_node: int, cpus_per_rank: int) -> float:
    """Into how many parts like a rank's a node divides: by its ranks, or more where each asks for fewer CPUs than that.

    `cpus_per_rank` are counted as the site's scheduler does; 0 where nothing is asked for.
    """
    whole = cpus_of_node(site, arch)
    return max(ranks_per_node, whole / cpus_per_rank) if whole and cpus_per_rank else ranks_per_node


def cpus_of_node(site: Site, arch: Arch) -> int:
    """The CPUs of a whole node as the site's scheduler counts them; 0 where the site's file does not describe it."""
    node = arch.node
    return 0 if node is None else node.threads if site.scheduler.cpu == "thread" else node.cores


def rank_threads(arch: Arch, parts: float) -> RankThreads | None:
    """The threads of a rank that has one of `parts` equal parts of a node; None where the site's file says nothing.

    What the file says is for one rank that has the whole node. Where it leaves `inter` out, that is one a socket, as far
    as the node's threads go.
    """
    said, node = arch.threads, arch.node
    if node is None and not said.omp and not said.intra:
        return None
    omp = said.omp or said.intra or (node.cores if node else 0)
    intra = said.intra or omp
    inter = said.inter or (min(node.sockets, node.threads // intra) if node else 1)
    return RankThreads(omp=_share(omp, parts), inter=_share(inter, parts), intra=_share(intra, parts))


def _share(threads: int, parts: float) -> int:
    return max(1, int(threads / parts))


def explain_too_many_threads(node: Node, ranks_per_node: int, inter: int, intra: int) -> str | None:
    """Why these threads are more than the node has, if they are."""
    asked = ranks_per_node * inter * intra
    if asked <= node.threads:
        return None
    return (
        f"{ranks_per_node} ranks × {inter} inter × {intra} intra are {asked} threads, and the node has {node.threads}"
    )


def job_environ(arch: Arch, parts: float) -> tuple[tuple[str, str], ...]:
    """What a job sets for ranks with one of `parts` parts of a node each: TensorFlow's pools, which nobody else does, and
    OpenMP's where the site leaves them to the job."""
    threads = rank_threads(arch, parts)
    if threads is None:
        return ()
    pools = ((INTER, str(threads.inter)), (INTRA, str(threads.intra)))
    if arch.threads.owner == "module":
        return pools
    return ((OMP, str(threads.omp)), *arch.threads.environ, *pools)


def module_environ(arch: Arch) -> tuple[tuple[str, str], ...]:
    """What our modulefile sets: OpenMP's, where the site has modules own them and says how many."""
    if arch.threads.owner != "module":
        return ()
    return (*(((OMP, str(arch.threads.omp)),) if arch.threads.omp else ()), *arch.threads.environ)
