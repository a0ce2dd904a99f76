"""One builder of a request for every kind of job: the profile's values, and what a job says instead."""

from __future__ import annotations

import dataclasses

import pytest

from golden_files import Words, slurm_site
from parts.profiles import profile
from provision.errors import ConfigError
from provision.jobs.scheduler_request import SideJob, batch_for, side_batch
from provision.model.batch import Shape
from provision.profile.arch import Arch, Queue
from provision.profile.site import Site

SHAPE = Shape(nodes=2, ranks_per_node=3, cpus_per_rank=4, gpus_per_node=0)


def site_whose_job_says(**changes: object) -> tuple[Site, Arch]:
    """The Slurm site of the golden files, with these values in the job of its first arch."""
    site = slurm_site()
    arch = dataclasses.replace(site.archs[0], job=dataclasses.replace(site.archs[0].job, **changes))  # type: ignore[arg-type]
    return dataclasses.replace(site, archs=(arch,)), arch


@pytest.mark.parametrize(
    ("said", "partition", "qos"),
    [
        ({"partition": "p", "qos": None}, "asked", None),
        ({"partition": "p", "qos": "q"}, "asked", None),  # the default QOS belongs to the default partition
        ({"partition": None, "qos": "q"}, None, "asked"),
        ({"partition": None, "qos": None}, "asked", None),
    ],
)
def test_a_queue_is_a_qos_if_the_profile_has_a_qos_and_no_partition(
    said: dict[str, str | None], partition: str | None, qos: str | None
) -> None:
    site, arch = site_whose_job_says(**said)
    batch = batch_for(site, arch, SHAPE, name="x", queue="asked")
    assert (batch.partition, batch.qos) == (partition, qos)
    side = side_batch(SideJob(site=site, arch=arch, command="", time="10", account="a", queue="asked"), "x", 1)
    assert (side.partition, side.qos) == (partition, qos)


def test_a_queue_can_give_parts_of_nodes_at_a_site_of_whole_nodes() -> None:
    site, arch = site_whose_job_says(exclusive=True)
    shared = Queue(name="shared", least_nodes=1, most_nodes=None, time=None, shared=True)
    arch = dataclasses.replace(arch, queues=(shared, dataclasses.replace(shared, name="other", shared=False)))
    found = {name: batch_for(site, arch, SHAPE, name="x", queue=name).exclusive for name in (None, "shared", "other")}
    assert found == {None: True, "shared": False, "other": True}


def test_a_preparing_job_uses_a_part_of_one_node(words: Words) -> None:
    site, arch = site_whose_job_says(exclusive=True)
    batch = side_batch(SideJob(site=site, arch=arch, command="", time="10", account="a", queue=None), "x", 3)
    assert (batch.nodes, batch.ranks_per_node, batch.cpus_per_rank, batch.exclusive) == (1, 1, 3, False)
    with pytest.raises(ConfigError, match="soon") as caught:
        side_batch(SideJob(site=site, arch=arch, command="", time="soon", account=None, queue=None), "x", 3)
    words("job", "\n".join(caught.value.to_lines()))


def test_a_preparing_job_requests_a_gpu_only_where_all_nodes_of_its_family_have_them() -> None:
    found = {}
    for name, arch in (
        ("sigma2-olivia", "accel"),
        ("sigma2-saga", "a100"),
        ("nyu-torch", "a100"),
        ("alcf-polaris", "gpu"),
    ):
        site = profile(name)
        batch = side_batch(
            SideJob(site=site, arch=site.arch(arch), command="", time="00:10:00", account="a", queue=None), "x", 1
        )
        found[name] = (batch.partition or batch.constraint, batch.gpus_per_node)
    assert found == {
        "sigma2-olivia": ("accel", 1),  # its other nodes are x86_64
        "sigma2-saga": ("normal", 0),
        "nyu-torch": (None, 0),
        "alcf-polaris": ("debug", 0),
    }
