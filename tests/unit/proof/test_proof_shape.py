"""The shape of a proof is the same in the plan, in the request of the job, and in the outline, at every site."""

from __future__ import annotations

import dataclasses
import re

from golden_files import slurm_site, stack
from parts.loops import for_each
from parts.profiles import ARCHS, profile
from provision.jobs.build_job import build_batch
from provision.jobs.limits import refusals
from provision.planning.outline import outline
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS, Stack
from provision.proof.proof_shape import proof_environ, proof_shape, prove_operation

BUILT = tuple((name, arch) for name, arch in ARCHS if "venv" in profile(name).runtimes)


def stack_with_proof(program: str) -> Stack:
    """A stack whose proof runs this program."""
    return dataclasses.replace(stack(), proof_program=program)


@for_each("program", PROGRAMS)
@for_each(("name", "arch"), BUILT)
def test_plan_job_and_outline_have_the_same_allowed_shape(name: str, arch: str, program: str) -> None:
    site = profile(name)
    at, proved = site.arch(arch), stack_with_proof(program)
    planned = prove_operation(site, at, proved, "/proof", "/prefix")
    batch = build_batch(site, at, proved, "x", "/jobs", account="tests")
    assert refusals(site, at, batch) == ()
    assert (batch.nodes, batch.ranks_per_node) == (planned.nodes, planned.ranks_per_node)
    assert batch.cpus_per_rank == planned.cpus_per_task
    assert batch.gpus_per_node == (planned.devices * planned.ranks_per_node if at.gpu else 0)
    shape = (1, 1) if program in ONE_PROCESS_PROGRAMS else (at.proof.nodes, at.proof.ranks_per_node)
    assert (planned.nodes, planned.ranks_per_node) == shape
    (shown,) = outline(site, at, proved, ())["prove"]
    ranks = re.search(r"(?:--ntasks=|-np? )(\d+)", shown)
    assert ranks is not None and int(ranks[1]) == planned.processes, shown


def test_mirrored_gets_all_gpus_of_an_arch_and_single_gets_one() -> None:
    site = profile("generic-slurm")
    arch = site.arch("gpu")
    assert arch.proof.ranks_per_node == 4
    shapes = {program: proof_shape(arch, stack_with_proof(program)) for program in ONE_PROCESS_PROGRAMS}
    assert (shapes["mirrored"].devices, shapes["mirrored"].gpus_per_node) == (4, 4)
    assert (shapes["single"].devices, shapes["single"].gpus_per_node) == (1, 1)
    assert shapes["mirrored"].cpus_per_rank == 4 * arch.job.cpus_per_task


def test_without_gpus_mirrored_has_at_least_two_replicas_on_the_cpu() -> None:
    arch = slurm_site().arch(None)
    assert arch.proof.ranks_per_node == 1
    shape = proof_shape(arch, stack_with_proof("mirrored"))
    assert (shape.devices, shape.cpus_per_rank, shape.gpus_per_node) == (2, arch.job.cpus_per_task, 0)
    assert proof_shape(arch, stack_with_proof("single")).devices == 1


def test_a_process_gets_as_many_threads_as_its_job_requests_cpus() -> None:
    site = profile("sigma2-saga")
    arch = site.arch("accel")
    assert arch.job.cpus_per_task == 6
    threads = {
        program: dict(proof_environ(site, arch, stack_with_proof(program)))["OMP_NUM_THREADS"] for program in PROGRAMS
    }
    assert threads.pop("mirrored") == "24", "with all four GPUs"
    assert set(threads.values()) == {"6"}
