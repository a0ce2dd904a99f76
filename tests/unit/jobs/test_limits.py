"""What a site takes of jobs: each refusal names the value that stands against it, its page, and the fix."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words
from parts.profiles import profile
from provision.errors import EXIT_USAGE, ConfigError
from provision.jobs.limits import memory_gib, refusals, refuse
from provision.model.batch import Batch
from provision.profile.site import Site, read_site


def site(scheduler: dict[str, Any] | None = None) -> Site:
    """A site with GPU nodes of 24 cores and CPU nodes, and a debug queue of 30 minutes."""
    return read_site(
        {
            "name": "cluster",
            "root": "/site/root",
            "stack": "tensorflow-2.15.1",
            "scheduler": {"system": "slurm", "memory": "per-cpu", "gpus": "gpus-per-task", **(scheduler or {})},
            "archs": {
                "accel": {
                    "target": "zen2",
                    "mpi": {"provider": "site"},
                    "node": {"sockets": 2, "cores": 24, "memory_gb": 384},
                    "gpu": {"per_node": 4, "capabilities": ["60"]},
                    "queues": {"debug": {"least_nodes": 2, "most_nodes": 4, "time": "00:30:00"}},
                },
                "normal": {"target": "zen2", "mpi": {"provider": "site"}},
            },
            "sources": {"page": {"text": "the site's page", "date": "2020-11", "values": ["archs.accel.queues"]}},
        },
        "/site/sites/cluster.toml",
        {},
    )


def batch(at: Site, **changes: Any) -> Batch:
    """A job that is taken."""
    good = Batch(
        scheduler=at.scheduler,
        name="x",
        output="/o",
        nodes=2,
        ranks_per_node=4,
        time="30",
        partition="debug",
        account="a",
        cpus_per_rank=6,
        gpus_per_node=4,
        memory="8G",
    )
    return dataclasses.replace(good, **changes)


ACCOUNT = {"required": ["account"]}


@pytest.mark.parametrize(
    ("scheduler", "arch", "changes", "subject"),
    [
        ({}, "accel", {"nodes": 5}, "nodes"),
        ({}, "accel", {"nodes": 1}, "nodes"),
        ({}, "accel", {"time": "31"}, "time"),
        ({}, "accel", {"qos": "debug", "partition": None, "nodes": 5}, "nodes"),
        ({}, "accel", {"gpus_per_node": 8}, "gpus"),
        ({}, "accel", {"cpus_per_rank": 7}, "cpus"),
        ({}, "accel", {"memory": "17G"}, "memory"),
        ({}, "accel", {"partition": "debugg"}, "partition"),
        ({}, "accel", {"qos": "turbo"}, "qos"),
        ({}, "normal", {}, "gpus"),
        (ACCOUNT, "accel", {"account": None}, "account"),
        ({"forbidden": ["partition"]}, "accel", {}, "partition"),
        # Jobs that are accepted
        ({**ACCOUNT, "forbidden": ["qos"]}, "accel", {}, None),
        ({**ACCOUNT, "options": ["--account=staff"]}, "accel", {"account": None}, None),
        ({}, "normal", {"partition": "long", "gpus_per_node": 0, "nodes": 99, "time": "7-0"}, None),
    ],
)
def test_a_job_beyond_a_limit_is_refused_with_the_page_and_what_fits(
    scheduler: dict[str, Any], arch: str, changes: dict[str, Any], subject: str | None, words: Words
) -> None:
    at = site(scheduler)
    found = refusals(at, at.arch(arch), batch(at, **changes))
    assert [fault.subject for fault in found] == ([subject] if subject else [])
    for fault in found:
        words("job", "\n".join([fault.message, *fault.evidence, str(fault.hint)]))


def test_the_time_limit_of_a_queue_can_depend_on_the_nodes() -> None:
    at = profile("alcf-polaris")
    asked = batch(at, partition="prod", filesystems=("home",), cpus_per_rank=16, memory=None)
    for nodes, time, accepted in ((24, "04:00:00", False), (25, "04:00:00", True), (100, "24:00:00", True)):
        found = refusals(at, at.arch("gpu"), dataclasses.replace(asked, nodes=nodes, time=time))
        assert [fault.subject for fault in found] == ([] if accepted else ["time"])


def test_one_error_contains_every_refusal(words: Words) -> None:
    at = site({"required": ["account"]})
    with pytest.raises(ConfigError, match="requires `account`") as caught:
        refuse(at, at.arch("accel"), batch(at, account=None, nodes=9))
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.kind == "refused-by-site"
    assert [one.kind for one in caught.value.faults] == ["missing", "limit"]
    (also,) = [line for line in caught.value.evidence if "9 nodes" in line]
    assert "`debug`" in also and "takes 4 " in also
    words("job", "\n".join(caught.value.to_lines()))


def test_memory_of_a_node_is_that_of_a_cpu_times_its_cpus() -> None:
    at = site({"memory": "per-node"})
    assert memory_gib(batch(at)) == 192
    assert memory_gib(batch(at, memory="512M", cpus_per_rank=1, ranks_per_node=1)) == 0.5
    assert memory_gib(batch(at, memory=None)) == 0
    assert memory_gib(batch(at, cpus_per_rank=0)) == 0
    none = site({"memory": "none"})
    assert memory_gib(batch(none)) == 0
