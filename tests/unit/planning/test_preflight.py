"""What stands in the way of a build: all of it at once, each with its fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from golden_files import Words, cray_site, facts_of, local_site, place, request_for, slurm_site
from provision.errors import Fault, PlanError
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known
from provision.model.facts import Cpu, Existing, Folder, SpackFacts
from provision.planning.planner import make_plan
from provision.planning.preflight import (
    USUAL,
    blockers,
    closed_faults,
    gpu_faults,
    network_faults,
    place_faults,
    space_of_earlier,
    space_of_wheels,
)
from provision.profile.site import Site

TENSORFLOW = USUAL["tensorflow"]

SITES = pytest.mark.parametrize("make_site", [local_site, slurm_site])


def subjects(faults: tuple[Fault, ...]) -> list[str]:
    """What the problems are about."""
    return [fault.subject for fault in faults]


@SITES
def test_a_machine_that_has_everything_is_not_blocked(make_site: Callable[[], Site]) -> None:
    assert blockers(request_for(make_site()), facts_of(make_site())) == ()


def test_a_cpu_that_lacks_an_instruction_set_is_blocked_with_what_it_lacks(words: Words) -> None:
    old = Cpu(
        target="ivybridge",
        features=frozenset(["sse", "sse2", "sse3", "ssse3", "sse4_1", "sse4_2", "popcnt", "avx", "f16c"]),
    )
    (fault,) = blockers(request_for(slurm_site()), facts_of(slurm_site(), cpu=old))
    assert "avx2" in fault.evidence[0]
    assert "fma" in fault.evidence[0]
    assert "ivybridge" in fault.evidence[1]
    words("doctor", fault.message)


def test_a_login_node_is_sent_to_a_job(words: Words) -> None:
    (fault,) = blockers(request_for(slurm_site()), facts_of(slurm_site(), job=None))
    assert fault.subject == "job"
    words("doctor", f"{fault.message}\n{fault.hint}")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (place(free_bytes=TENSORFLOW.size - 1), "GB left"),
        (place(free_inodes=TENSORFLOW.files - 1), "inodes left"),
        (place(free_inodes=0), "0 inodes left"),
        (place(writable=False, free_bytes=0, free_inodes=0), "cannot be written"),
    ],
)
def test_a_root_without_space_is_refused(changed: Folder, expected: str) -> None:
    (fault,) = place_faults(changed)
    assert expected in fault.message
    assert fault.hint
    assert place_faults(place(free_bytes=TENSORFLOW.size, free_inodes=None)) == ()


def test_the_space_that_is_left_and_the_space_that_is_needed_are_named(words: Words) -> None:
    """The numbers of the 46 wheels of TensorFlow 2.21 with Horovod's tools, as their central directories list them."""
    needed = space_of_wheels(46, 1_616_503_804, 23_771, 4_928, 71_680_197, compiles=True)
    here = place(free_bytes=1_500_000_000, free_inodes=20_000)
    of_bytes, of_files = place_faults(here, needed)
    words("doctor", "\n".join([of_bytes.message, of_files.message, *of_bytes.evidence]))
    assert place_faults(place(free_bytes=2_100_000_000, free_inodes=40_000), needed) == ()
    small = space_of_earlier("knl/t/1-0", 30_000_000, 900, compiles=False)
    assert place_faults(place(free_bytes=40_000_000, free_inodes=1_000), small) == ()
    (fault,) = place_faults(place(free_bytes=31_000_000, free_inodes=1_000), small)
    words("doctor", "\n".join([fault.message, *fault.evidence]))


def test_all_problems_are_listed_at_once() -> None:
    facts = facts_of(
        slurm_site(),
        cpu=Cpu(target="x86_64", features=frozenset()),
        job=None,
        place=place(free_bytes=5, free_inodes=5),
    )
    faults = blockers(request_for(slurm_site()), facts)
    assert subjects(faults) == ["cpu", "job", "root", "root"]
    assert [fault.kind for fault in faults] == ["mismatch", "outside-job", "no-space", "no-space"]
    assert all(fault.hint for fault in faults)


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


def test_what_is_installed_already_needs_less_room() -> None:
    little = place(free_bytes=TENSORFLOW.size // 2, free_inodes=TENSORFLOW.files // 2)
    assert subjects(place_faults(little)) == ["root", "root"]
    assert place_faults(little, installed=True) == ()
    facts = facts_of(slurm_site(), place=little)
    assert blockers(request_for(slurm_site()), facts, installed=True) == ()


def network_site(compute: str, login: str = "yes", *, scheduler: bool = True) -> Site:
    """A site with this network."""
    site = slurm_site() if scheduler else local_site()
    return dataclasses.replace(site, network=dataclasses.replace(site.network, login=login, compute=compute))


@pytest.mark.parametrize(
    ("site", "stopped"),
    [
        (network_site("no"), True),
        (network_site("yes"), False),
        (network_site("proxy"), False),
        (network_site("yes", login="no"), False),
        (network_site("yes", login="no", scheduler=False), True),
        (network_site("no", scheduler=False), False),
    ],
    ids=["nodes without", "nodes with", "proxy", "login without", "machine without", "machine with"],
)
def test_a_build_without_network_is_stopped_unless_all_is_fetched(site: Site, stopped: bool) -> None:
    request, facts = request_for(site), facts_of(site)
    plan = make_plan(request, facts, Existing())
    faults = network_faults(request, plan)
    assert bool(faults) is stopped
    for fault in faults:
        assert "not fetched: horovod-0.28.1.tar.gz" in fault.evidence
        assert "provision fetch" in str(fault.hint)
        assert f"--stack {request.stack.name}" in str(fault.hint)
    fetched = Existing(
        fetched=frozenset(lock.sha256 for lock in request.locks), sources=frozenset({"horovod-0.28.1.tar.gz"})
    )
    assert network_faults(request, make_plan(request, facts, fetched)) == ()


def test_a_stack_for_gpus_is_refused_on_an_arch_without_them(words: Words) -> None:
    request = request_for(slurm_site())
    assert gpu_faults(request, facts_of(slurm_site())) == ()
    for_gpus = dataclasses.replace(request, stack=dataclasses.replace(request.stack, name="tf-gpu", gpus=True))
    (fault,) = gpu_faults(for_gpus, facts_of(slurm_site()))
    words("plan", fault.message)
    with pytest.raises(PlanError, match="`haswell`"):
        make_plan(for_gpus, facts_of(slurm_site()), Existing())


def test_the_shipped_stacks_for_gpus_say_so() -> None:
    stacks = [shipped.load_stack(name) for name in known("stacks")]
    assert {stack.name for stack in stacks if stack.gpus} == {stack.name for stack in stacks if "-gpu" in stack.name}
    assert all(stack.framework.package == "tensorflow" for stack in stacks if stack.gpus)


def test_a_python_that_other_users_cannot_run_blocks_a_build_for_others(words: Words) -> None:
    closed = ("drwx------ /home/ada",)
    (fault,) = blockers(request_for(slurm_site()), facts_of(slurm_site(), closed=closed))
    assert fault.message.endswith("`")
    assert fault.evidence == closed
    words("doctor", f"{fault.message}\n{fault.hint}")
    alone = local_site()
    assert not closed_faults(request_for(alone), facts_of(alone, closed=closed)), "a machine of one user"
    group = dataclasses.replace(alone, files=dataclasses.replace(alone.files, group="hpcadm"))
    assert closed_faults(request_for(group), facts_of(group, closed=closed))


def test_a_store_of_another_user_is_named_before_spack_runs(words: Words) -> None:
    site = slurm_site()
    spack = SpackFacts(root="/s", version="1.0", commit="9cf6633", python="/p", closed="/site/root/spack/store")
    found = blockers(request_for(site), facts_of(site, spack=spack))
    (fault,) = [one for one in found if "`/site/root/spack/store`" in one.message]
    words("spack", f"{fault.message}\n{fault.hint}")


def test_a_shell_that_holds_a_job_is_told_that_it_is_not_on_its_node() -> None:
    site = slurm_site()
    facts = facts_of(site, job=None, environ={"SLURM_JOB_ID": "15"})
    (fault,) = [one for one in blockers(request_for(site), facts) if one.kind == "outside-job"]
    assert fault.message.startswith("you hold job 15, but this shell runs on ")
    assert "`srun --overlap --pty bash`" in str(fault.hint)
