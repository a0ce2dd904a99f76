"""The shape of a proof: how many processes, on how many nodes, and the CPUs and GPUs of each. Pure.

The plan, the job's request and the outline have the same shape.
"""

from __future__ import annotations

from provision.launch.rank_threads import INTER, INTRA, cpus_of_rank, job_environ, parts_of_node
from provision.model.operation import Prove
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import ONE_PROCESS_PROGRAMS, Stack
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
    if stack.proof_program not in ONE_PROCESS_PROGRAMS:
        return Shape(
            nodes=proof.nodes,
            ranks_per_node=proof.ranks_per_node,
            devices=1,
            cpus_per_rank=cpus,
            gpus_per_node=proof.ranks_per_node if arch.gpu else 0,
        )
    mirrored = stack.proof_program == "mirrored"
    shares = proof.ranks_per_node if mirrored else 1
    return Shape(
        nodes=1,
        ranks_per_node=1,
        devices=max(2, shares) if mirrored and arch.gpu is None else shares,
        cpus_per_rank=cpus * shares,
        gpus_per_node=shares if arch.gpu else 0,
    )


def proof_environ(site: Site, arch: Arch, stack: Stack) -> tuple[tuple[str, str], ...]:
    """The variables that a build's job sets for the processes of the proof, as a user's job of that shape does."""
    shape = proof_shape(site, arch, stack)
    variables = job_environ(arch, parts_of_node(site, arch, shape.ranks_per_node, shape.cpus_per_rank))
    # Only TensorFlow has these pools.
    return tuple(one for one in variables if stack.framework.name == "tensorflow" or one[0] not in (INTER, INTRA))


def prove_operation(
    site: Site, arch: Arch, stack: Stack, programs_folder: str, prefix: str, deliver: str | None = None
) -> Prove:
    """The proof of an environment at `prefix`: the stack's program, started with the launcher of the arch.

    `deliver` is the program that starts each process with the image of the environment, if there is one.
    """
    shape = proof_shape(site, arch, stack)
    strategy: StrategyName = "ddp" if stack.proof_program == "ddp" else "multiworker"
    return Prove(
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
