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
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS, WITHOUT_HOROVOD, Stack
from provision.profile.strategy import Strategy
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


def test_mirrored_gets_all_devices_of_a_node_and_single_gets_one() -> None:
    """Without GPUs, mirrored has at least two replicas on the CPU."""
    of_gpus, of_cpus = profile("generic-slurm").arch("gpu"), slurm_site().arch(None)
    assert (of_gpus.proof.ranks_per_node, of_cpus.proof.ranks_per_node) == (4, 1)
    shared = dataclasses.replace(of_gpus, job=dataclasses.replace(of_gpus.job, exclusive=False))
    whole = dataclasses.replace(of_gpus, job=dataclasses.replace(of_gpus.job, exclusive=True))
    assert of_gpus.node is not None
    one = of_gpus.node.cores // 4
    for arch, program, wanted in (
        (shared, "mirrored", (4, 4, 4 * one)),
        (shared, "single", (1, 1, one)),
        (whole, "mirrored", (4, 4, 0)),
        (of_cpus, "mirrored", (2, 0, 0)),
        (of_cpus, "single", (1, 0, 0)),
    ):
        site = slurm_site() if arch is of_cpus else profile("generic-slurm")
        shape = proof_shape(site, arch, stack_with_proof(program))
        assert (shape.devices, shape.gpus_per_node, shape.cpus_per_rank) == wanted


def test_a_process_gets_as_many_threads_as_its_job_requests_cpus() -> None:
    site = profile("sigma2-saga")
    arch = site.arch("accel")
    assert arch.job.cpus_per_task == 6
    threads = {
        program: dict(proof_environ(site, arch, stack_with_proof(program)))["OMP_NUM_THREADS"] for program in PROGRAMS
    }
    assert threads.pop("mirrored") == "24", "with all four GPUs"
    assert set(threads.values()) == {"6"}


def test_workers_communicate_as_the_profile_says_for_their_strategy() -> None:
    site, arch = slurm_site(), slurm_site().arch(None)
    ways = (Strategy(name="ddp", communication="MPI"), Strategy(name="multiworker", communication="RING"))
    site = dataclasses.replace(site, strategies=ways)
    proofs = {name: prove_operation(site, arch, stack_with_proof(name), "/programs", "/prefix") for name in PROGRAMS}
    assert {name: proof.communication for name, proof in proofs.items() if name in WITHOUT_HOROVOD} == {
        **dict.fromkeys(("single", "mirrored", "multiworker"), "RING"),
        "ddp": "MPI",
    }
