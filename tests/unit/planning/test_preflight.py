"""What stands in the way of a build: all of it at once, each with its fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from golden_files import cray_site, facts_of, local_site, place, request_for, slurm_site
from provision.model.facts import Cpu, Place
from provision.model.problem import Problem
from provision.planning.preflight import (
    NEEDED_BYTES,
    NEEDED_INODES,
    blockers,
    place_problems,
)
from provision.profile.site import Site

SITES = pytest.mark.parametrize("make_site", [local_site, slurm_site])


def subjects(problems: tuple[Problem, ...]) -> list[str]:
    """What the problems are about."""
    return [problem.subject for problem in problems]


@SITES
def test_a_machine_that_has_everything_is_not_blocked(make_site: Callable[[], Site]) -> None:
    assert blockers(request_for(make_site()), facts_of(make_site())) == ()


def test_a_cpu_that_lacks_an_instruction_set_is_blocked_with_what_it_lacks() -> None:
    old = Cpu(
        target="ivybridge",
        features=frozenset(["sse", "sse2", "sse3", "ssse3", "sse4_1", "sse4_2", "popcnt", "avx", "f16c"]),
    )
    (problem,) = blockers(request_for(slurm_site()), facts_of(slurm_site(), cpu=old))
    assert "the CPU of `n1` cannot run what is built for `haswell`" in problem.message
    assert "avx2" in problem.evidence[0]
    assert "fma" in problem.evidence[0]
    assert "ivybridge" in problem.evidence[1]


def test_a_login_node_is_sent_to_a_job() -> None:
    (problem,) = blockers(request_for(slurm_site()), facts_of(slurm_site(), job=None))
    assert problem.subject == "job"
    assert problem.hint == "`provision build --site cluster --arch haswell --submit`"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (place(writable=False), "cannot be written"),
        (place(free_bytes=NEEDED_BYTES - 1), "GB left"),
        (place(free_inodes=NEEDED_INODES - 1), "inodes left"),
        (place(free_inodes=0), "0 inodes left"),
    ],
)
def test_a_root_without_room_is_told(changed: Place, told: str) -> None:
    (problem,) = place_problems(changed)
    assert told in problem.message
    assert problem.hint
    assert place_problems(place(free_bytes=NEEDED_BYTES, free_inodes=None)) == ()


def test_everything_that_stands_in_the_way_is_told_at_once() -> None:
    facts = facts_of(
        slurm_site(),
        cpu=Cpu(target="x86_64", features=frozenset()),
        job=None,
        place=place(free_bytes=5, free_inodes=5),
    )
    assert subjects(blockers(request_for(slurm_site()), facts)) == ["cpu", "job", "root", "root"]


@pytest.mark.parametrize("target", ["power9le", "ppc64le", "aarch64"])
def test_a_cpu_of_another_family_is_blocked(target: str) -> None:
    request = request_for(slurm_site())
    request = dataclasses.replace(request, arch=dataclasses.replace(request.arch, target=target))
    assert "cpu" in subjects(blockers(request, facts_of(slurm_site())))


def test_the_cpu_of_a_service_node_is_no_reason_against_a_build() -> None:
    site, weak = cray_site(script_on="service-node"), Cpu(target="x86_64", features=frozenset({"sse2"}))
    facts = facts_of(site, cpu=weak)
    assert blockers(request_for(site), facts) == ()
    assert blockers(request_for(cray_site()), facts_of(cray_site(), cpu=weak)) != ()
