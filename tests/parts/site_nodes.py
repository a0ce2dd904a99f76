"""The nodes of real sites as a private Slurm cluster emulates them: CPUs, memory, features, GPUs, partitions, licences.

Numbers are those of `sites/*.toml`, two nodes of each kind. The GPUs are device files that are none.
"""

from __future__ import annotations

from parts.slurm import NodeGroup, Partition, SlurmCluster

GROUPS = (
    NodeGroup(name="hsw", features=("haswell",), cpus=64, memory_mb=128 * 1024),
    NodeGroup(name="knl", features=("knl",), cpus=272, memory_mb=96 * 1024),
    NodeGroup(name="milan", features=("cpu",), cpus=256, memory_mb=512 * 1024),
    NodeGroup(name="a100", features=("gpu",), cpus=128, memory_mb=256 * 1024, gres={"gpu:4": "/dev/tty[1-4]"}),
    NodeGroup(name="c", cpus=40, memory_mb=192 * 1024),
    NodeGroup(name="gpu", cpus=24, memory_mb=384 * 1024, gres={"gpu:4": "/dev/tty[1-4]"}),
    NodeGroup(name="cm", features=("cascade",), cpus=48, memory_mb=192 * 1024),
)
PARTITIONS = (
    Partition(name="nersc", groups=("hsw", "knl", "milan", "a100")),
    Partition(name="normal", groups=("c",)),
    Partition(name="accel", groups=("gpu",)),
    Partition(name="compute", groups=("cm",)),
)


def cluster(*kinds: str) -> SlurmCluster:
    """A cluster of these groups and of the partitions over them; a bare srun starts MPI, as on those sites."""
    groups = tuple(group for group in GROUPS if group.name in kinds)
    partitions = tuple(
        Partition(name=one.name, groups=tuple(name for name in one.groups if name in kinds))
        for one in PARTITIONS
        if set(one.groups) & set(kinds)
    )
    return SlurmCluster(
        node_groups=groups, partitions=partitions, settings={"MpiDefault": "pmi2", "Licenses": "SCRATCH:100"}
    )
