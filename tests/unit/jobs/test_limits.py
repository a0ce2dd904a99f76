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


def test_a_job_within_the_limits_is_accepted() -> None:
    at = site({"required": ["account"], "forbidden": ["qos"]})
    assert refusals(at, at.arch("accel"), batch(at)) == ()


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"nodes": 5}, "5 nodes", "`--nodes 4`"),
        ({"nodes": 1}, "1 node", "`--nodes 2`"),
        ({"time": "31"}, "00:31:00", "`--time 00:30:00`"),
        (
            {"qos": "debug", "partition": None, "nodes": 5},
            "5 nodes",
            "`--nodes 4`",
        ),
        ({"gpus_per_node": 8}, "8 GPUs", "`--gpus 4`"),
        ({"cpus_per_rank": 7}, "7 CPUs", "`--cpus 6`"),
        (
            {"memory": "17G"},
            "408 GiB",
            "archs.accel.job.memory",
        ),
    ],
)
def test_a_job_beyond_a_limit_is_refused_with_what_fits(
    changes: dict[str, Any], message: str, hint: str, words: Words
) -> None:
    at = site()
    (problem,) = refusals(at, at.arch("accel"), batch(at, **changes))
    assert message in problem.message
    assert hint in str(problem.hint)
    words("job", f"{problem.message}\n{problem.hint}")
    assert "`archs.accel." in problem.evidence[0]


def test_a_limit_names_the_page_it_comes_from() -> None:
    at = site()
    (problem,) = refusals(at, at.arch("accel"), batch(at, nodes=5))
    assert problem.evidence == (
        "`archs.accel.queues.debug.most_nodes` in `/site/sites/cluster.toml` (the site's page, 2020-11)",
    )


def test_a_profile_without_queues_accepts_any_queue() -> None:
    at = site()
    assert refusals(at, at.arch("normal"), batch(at, partition="long", gpus_per_node=0, nodes=99, time="7-0")) == ()


def test_a_queue_that_the_profile_does_not_list_is_refused_with_the_nearest(words: Words) -> None:
    at = site()
    (problem,) = refusals(at, at.arch("accel"), batch(at, partition="debugg"))
    assert [name for name in ("`cluster`", "`debugg`", "`accel`", "`debug`") if name not in problem.message] == []
    for name in ("`--queue debug`", "`archs.accel.queues.debugg = {}`", "`/site/sites/cluster.toml`"):
        assert name in str(problem.hint)
    words("job", f"{problem.message}\n{problem.hint}")
    (qos,) = refusals(at, at.arch("accel"), batch(at, qos="turbo"))
    assert (qos.kind, qos.subject) == ("missing", "qos")


def test_the_time_limit_of_a_queue_can_depend_on_the_nodes(words: Words) -> None:
    at = profile("alcf-polaris")
    asked = batch(at, partition="prod", filesystems=("home",), cpus_per_rank=16, memory=None)
    (problem,) = refusals(at, at.arch("gpu"), dataclasses.replace(asked, nodes=24, time="04:00:00"))
    assert [name for name in ("04:00:00", "`prod`", "03:00:00") if name not in problem.message] == []
    words("job", problem.message)
    assert refusals(at, at.arch("gpu"), dataclasses.replace(asked, nodes=25, time="04:00:00")) == ()
    assert refusals(at, at.arch("gpu"), dataclasses.replace(asked, nodes=100, time="24:00:00")) == ()


def test_gpus_on_an_arch_without_gpus_are_refused_with_archs_that_have_them(words: Words) -> None:
    at = site()
    (problem,) = refusals(at, at.arch("normal"), batch(at))
    assert "4 GPUs" in problem.message and "`normal`" in problem.message
    words("job", problem.message)
    assert "`--arch accel`" in str(problem.hint)


def test_a_required_value_can_be_in_the_options() -> None:
    at = site({"required": ["account"], "options": ["--account=staff"]})
    assert refusals(at, at.arch("accel"), batch(at, account=None)) == ()
    at = site({"required": ["account"]})
    (problem,) = refusals(at, at.arch("accel"), batch(at, account=None))
    assert "`--account ACCOUNT`" in str(problem.hint)


def test_a_forbidden_value_is_refused(words: Words) -> None:
    at = site({"forbidden": ["partition"]})
    (problem,) = refusals(at, at.arch("accel"), batch(at))
    assert [name for name in ("`cluster`", "`partition`", "`debug`") if name not in problem.message] == []
    words("job", problem.message)
    assert (problem.kind, problem.subject) == ("forbidden", "partition")


def test_one_error_contains_every_refusal(words: Words) -> None:
    at = site({"required": ["account"]})
    with pytest.raises(ConfigError, match="requires `account`") as caught:
        refuse(at, at.arch("accel"), batch(at, account=None, nodes=9))
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.kind == "refused-by-site"
    assert [one["kind"] for one in caught.value.problems] == ["missing", "limit"]
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
