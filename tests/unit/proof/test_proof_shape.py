"""The shape of a proof is one: what is planned, what a job asks for and what an outline shows agree, at every site."""

from __future__ import annotations

import dataclasses
import re

import pytest

from golden_files import slurm_site, stack
from parts.profiles import ARCHS, profile
from provision.jobs.build_job import build_batch
from provision.jobs.limits import refusals
from provision.planning.outline import outline
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS, Stack
from provision.proof.proof_shape import proof_environ, proof_shape, prove_operation

BUILT = tuple((name, arch) for name, arch in ARCHS if "venv" in profile(name).runtimes)


def proved_by(program: str) -> Stack:
    """A stack whose proof is this program."""
    return dataclasses.replace(stack(), proof_program=program)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("name", "arch"), BUILT)
def test_plan_job_and_outline_have_one_shape_that_the_site_takes(name: str, arch: str, program: str) -> None:
    site = profile(name)
    found, one = site.arch(arch), proved_by(program)
    planned = prove_operation(site, found, one, "/proof", "/prefix")
    batch = build_batch(site, found, one, "x", "/jobs", account="tests")
    assert refusals(site, found, batch) == ()
    assert (batch.nodes, batch.ranks_per_node) == (planned.nodes, planned.ranks_per_node)
    assert batch.cpus_per_rank == planned.cpus_per_task
    assert batch.gpus_per_node == (planned.devices * planned.ranks_per_node if found.gpu else 0)
    shape = (1, 1) if program in ONE_PROCESS_PROGRAMS else (found.proof.nodes, found.proof.ranks_per_node)
    assert (planned.nodes, planned.ranks_per_node) == shape
    (shown,) = outline(site, found, one, ())["prove"]
    ranks = re.search(r"(?:--ntasks=|-np? )(\d+)", shown)
    assert ranks is not None and int(ranks[1]) == planned.processes, shown


def test_mirrored_has_all_gpus_of_an_arch_and_single_has_one() -> None:
    site = profile("generic-slurm")
    arch = site.arch("gpu")
    assert arch.proof.ranks_per_node == 4
    shapes = {program: proof_shape(arch, proved_by(program)) for program in ONE_PROCESS_PROGRAMS}
    assert (shapes["mirrored"].devices, shapes["mirrored"].gpus_per_node) == (4, 4)
    assert (shapes["single"].devices, shapes["single"].gpus_per_node) == (1, 1)
    assert shapes["mirrored"].cpus_per_rank == 4 * arch.job.cpus_per_task


def test_where_parts_of_the_cpu_stand_for_gpus_there_are_two_replicas_at_least() -> None:
    arch = slurm_site().arch(None)
    assert arch.proof.ranks_per_node == 1
    shape = proof_shape(arch, proved_by("mirrored"))
    assert (shape.devices, shape.cpus_per_rank, shape.gpus_per_node) == (2, arch.job.cpus_per_task, 0)
    assert proof_shape(arch, proved_by("single")).devices == 1


def test_a_process_has_the_threads_of_the_cpus_that_its_job_asks_for() -> None:
    site = profile("sigma2-saga")
    arch = site.arch("accel")
    assert arch.job.cpus_per_task == 6
    threads = {program: dict(proof_environ(site, arch, proved_by(program)))["OMP_NUM_THREADS"] for program in PROGRAMS}
    assert threads.pop("mirrored") == "24", "with all four GPUs"
    assert set(threads.values()) == {"6"}
