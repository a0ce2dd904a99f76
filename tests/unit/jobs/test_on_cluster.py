"""A job against what the scheduler says: what Slurm and PBS would refuse or never start is found before they are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from golden_files import Words
from provision.jobs.on_cluster import is_cluster_of, misfits
from provision.model.batch import Batch
from provision.profile.scheduler import Scheduler
from provision.schedulers.node_kind import Cluster
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.slurm import parse_associations, parse_node_kinds
from provision.schedulers.slurm import scheduler as slurm

# As Slurm 22.05 prints them, without the fields that do not matter.
PARTITIONS = """\
PartitionName=work AllowAccounts=ALL AllowQos=ALL Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=02:00:00 MinNodes=0 State=UP
PartitionName=gpu AllowAccounts=staff,ml AllowQos=normal,long Default=NO MaxNodes=2 MaxTime=1-00:00:00 MinNodes=1 State=UP
PartitionName=old AllowAccounts=ALL AllowQos=ALL Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=3 State=DOWN
"""
NODES = """\
work*|2:16:2|128000|(null)|haswell,ssd|4
work*|1:64:1|96000|(null)|knl|2
gpu|2:16:1|256000|gpu:a100:4(S:0-1),nic:2|skylake|2
gpu|2:16:1|256000|gpu:v100:8|broadwell|1
old|1:4:1|4000|(null)|(null)|9
"""
CLUSTER = Cluster(
    queues=slurm.parse_queues(PARTITIONS),
    kinds=parse_node_kinds(NODES),
    associations=parse_associations("ml|normal,long\nphys|normal\n\nsacctmgr: x\n"),
)
BATCH = Batch(
    scheduler=Scheduler(name="slurm", options=(), gpus="gres", memory="per-cpu"),
    name="a",
    output="a.out",
    nodes=2,
    ranks_per_node=4,
    time="01:00:00",
    cpus_per_rank=8,
)
GPU = {"partition": "gpu", "account": "ml", "gpus_per_node": 4, "nodes": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"partition": "work", "constraint": "haswell&ssd", "nodes": 4},
        {"partition": "work", "constraint": "haswell|knl", "nodes": 6},
        {"partition": "work", "constraint": "knl", "cpus_per_rank": 16},
        {"memory": "3G"},
        GPU,
        {**GPU, "gpu_model": "A100", "qos": "long", "time": "23:00:00"},
        {**GPU, "gpus_per_node": 8, "gpu_model": "v100"},
        {"partition": "work", "options": ("--time=10:00:00", "--partition=old"), "time": "01:00:00"},
    ],
)
def test_a_job_that_fits_has_no_misfit(changes: dict[str, Any]) -> None:
    assert misfits(replace(BATCH, **changes), CLUSTER) == ()


@pytest.mark.parametrize(
    ("changes", "subject", "accepted"),
    [
        ({"partition": "wrok"}, "partition", "work"),
        ({"partition": "old", "nodes": 3, "ranks_per_node": 1, "cpus_per_rank": 1}, "partition", None),
        ({"time": "99:00:00"}, "time", "02:00:00"),
        ({"nodes": 7}, "nodes", "6"),
        ({"constraint": "knl", "nodes": 3}, "nodes", "2"),
        ({"constraint": "hasvell"}, "constraint", "haswell"),
        ({"constraint": "haswell&knl"}, "constraint", None),
        ({"constraint": "skylake"}, "constraint", None),
        ({"cpus_per_rank": 17}, "cpus", None),
        ({"memory": "8G"}, "memory", None),
        ({"gpus_per_node": 1}, "gpus", None),
        ({**GPU, "nodes": 3}, "nodes", "2"),
        ({**GPU, "gpus_per_node": 9}, "gpus", None),
        ({**GPU, "gpus_per_node": 8, "gpu_model": "a100"}, "gpus", None),
        ({**GPU, "gpu_model": "h100"}, "gpus", None),
        ({**GPU, "qos": "devel"}, "qos", None),
        ({**GPU, "account": "phys"}, "account", None),
        ({"account": "sciense"}, "account", None),
        ({"account": "phys", "qos": "long"}, "qos", None),
    ],
)
def test_what_slurm_would_refuse_or_never_start_is_found(
    changes: dict[str, Any], subject: str, accepted: str | None, words: Words
) -> None:
    found = misfits(replace(BATCH, **changes), CLUSTER)
    assert (found[0].subject, found[0].accepted) == (subject, accepted), found
    words("job", "\n".join(f"{one.message}\n  {one.evidence[0]}\n  hint: {one.hint}" for one in found))


def test_what_the_scheduler_does_not_say_is_no_misfit() -> None:
    batch = replace(
        BATCH, nodes=99, time="99:00:00", constraint="x", gpus_per_node=9, account="x", qos="y", partition="z"
    )
    assert misfits(batch, Cluster(queues=())) == ()
    assert misfits(replace(batch, partition="work"), replace(CLUSTER, kinds=(), associations=())) == ()


def test_pbs_prints_the_limits_of_a_queue() -> None:
    text = """Queue: debug
    queue_type = Execution
    resources_max.nodect = 2
    resources_max.walltime = 01:00:00
    enabled = True
    started = True

Queue: prod
    resources_min.nodect = 10
    enabled = False
"""
    queues = pbs.parse_queues(text)
    assert [(one.name, one.time_s, one.least_nodes, one.most_nodes, one.opens) for one in queues] == [
        ("debug", 3600, 0, 2, True),
        ("prod", None, 10, None, False),
    ]
    batch = replace(BATCH, scheduler=Scheduler(name="pbs", options=()), partition="debug", nodes=3, time="02:00:00")
    assert [one.subject for one in misfits(batch, Cluster(queues=queues))] == ["nodes", "time"]


def test_only_a_scheduler_with_a_queue_of_the_profile_is_asked_about_its_jobs() -> None:
    assert is_cluster_of(("work", "x"), CLUSTER) and is_cluster_of((), CLUSTER)
    assert not is_cluster_of(("accel",), CLUSTER)
