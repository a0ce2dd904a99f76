"""One builder of a request for every kind of job: the profile's values, and what a job says instead."""

from __future__ import annotations

import dataclasses

import pytest

from golden_files import Words, slurm_site
from provision.errors import ConfigError
from provision.jobs.scheduler_request import batch_for, side_batch
from provision.model.shape import Shape
from provision.profile.arch import Arch
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
        ({"partition": "p", "qos": "q"}, "asked", "q"),
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
    side = side_batch(site, arch, "x", time="10", cpus=1, account="a", queue="asked")
    assert (side.partition, side.qos) == (partition, qos)


def test_a_preparing_job_uses_a_part_of_one_node(words: Words) -> None:
    site, arch = site_whose_job_says(exclusive=True)
    batch = side_batch(site, arch, "x", time="10", cpus=3, account="a", queue=None)
    assert (batch.nodes, batch.ranks_per_node, batch.cpus_per_rank, batch.exclusive) == (1, 1, 3, False)
    with pytest.raises(ConfigError, match="soon") as caught:
        side_batch(site, arch, "x", time="soon", cpus=3, account=None, queue=None)
    words("job", "\n".join(caught.value.to_lines()))
