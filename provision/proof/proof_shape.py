"""The shape of a proof: how many processes, on how many nodes, and the CPUs and GPUs of each. Pure.

The plan, the job's request and the outline have the same shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from provision.knowledge.frameworks import FRAMEWORKS
from provision.launch.rank_threads import INTER, INTRA, cpus_of_rank, job_environ, parts_of_node
from provision.model.batch import Shape
from provision.model.operation import Prove
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import KERAS_PROGRAMS, ONE_PROCESS_PROGRAMS, Stack
from provision.profile.strategy import StrategyName


def proof_shape(site: Site, arch: Arch, stack: Stack) -> Shape:
    """The shape of a stack's proof on an arch of a site. A job that has whole nodes need not ask for their CPUs.

    A program of one process has one node and one task, whatever the arch has for ranks. `mirrored` trains on as
    many devices as there are ranks on a node for Horovod: those are the GPUs that a job of the arch gets. If there are
    none, parts of the CPU replace them: at least two, because one replica exchanges nothing.
    """
    proof, cpus = arch.proof, arch.job.cpus_per_task
    if not cpus and not arch.job.exclusive:
        cpus = cpus_of_rank(site, arch, proof.ranks_per_node)
    one_process, mirrored = stack.proof_program in ONE_PROCESS_PROGRAMS, stack.proof_program == "mirrored"
    shares = proof.ranks_per_node if mirrored else 1
    ranks = 1 if one_process else proof.ranks_per_node
    return Shape(
        nodes=1 if one_process else proof.nodes,
        ranks_per_node=ranks,
        devices=max(2, shares) if mirrored and arch.gpu is None else shares,
        cpus_per_rank=cpus * shares,
        gpus_per_node=ranks * shares if arch.gpu else 0,
    )


def proof_environ(site: Site, arch: Arch, stack: Stack) -> tuple[tuple[str, str], ...]:
    """The variables that a build's job sets for the processes of the proof, as a user's job of that shape does."""
    shape = proof_shape(site, arch, stack)
    variables = job_environ(arch, parts_of_node(site, arch, shape.ranks_per_node, shape.cpus_per_rank))
    # Only TensorFlow has these pools.
    pools = any(one.name == "tensorflow" for one in stack.frameworks)
    return tuple(one for one in variables if pools or one[0] not in (INTER, INTRA))


def prove_operation(
    site: Site, arch: Arch, stack: Stack, programs_folder: str, prefix: str, deliver: str | None = None
) -> Prove:
    """The proof of an environment at `prefix`: the stack's program, started with the launcher of the arch.

    Other frameworks for which its Horovod is compiled train after it in the same shape, then Keras in one process on each of its
    other backends. `deliver` is the program that starts each process with the image of the environment, if there is one.
    """
    shape = proof_shape(site, arch, stack)
    strategy: StrategyName = "ddp" if stack.proof_program == "ddp" else "multiworker"
    proof = Prove(
        program=f"{programs_folder}/{stack.proof_program}.py",
        launcher=arch.launcher,
        mpiexec=f"{prefix}/bin/mpiexec" if arch.mpi.provider == "pypi" else "mpiexec",
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        cpus_per_task=shape.cpus_per_rank,
        timeout_s=arch.proof.timeout_s,
        training=stack.training,
        gpu=arch.gpu,
        devices=shape.devices,
        communication=site.strategy(strategy).communication,
        deliver=deliver,
    )

    def other(program: str, **changes: Any) -> Prove:
        return replace(proof, program=f"{programs_folder}/{program}.py", **changes)

    one_process = {"nodes": 1, "ranks_per_node": 1, "devices": 1}
    return replace(
        proof,
        others=(
            *(other(FRAMEWORKS[name].of_horovod) for name in stack.beside),
            *(
                other(KERAS_PROGRAMS[backend], **one_process)
                for backend in stack.keras_backends
                if backend != stack.framework.interface.package
            ),
        ),
    )
