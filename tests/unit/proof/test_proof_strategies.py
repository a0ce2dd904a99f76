"""Each training program of a stack has a strategy: its own arguments, its judge, and the words for who trained."""

from __future__ import annotations

import pytest

from parts.reports import one_process, workers
from provision.model.operation import Prove
from provision.profile.launcher import Launcher
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS
from provision.proof.strategies import STRATEGIES, strategy_of


def make_proof(program: str) -> Prove:
    """A proof on one node, with two ranks if the program has ranks."""
    return Prove(
        program=f"/site/provision/proof/programs/{program}.py",
        launcher=Launcher(name="mpiexec", options=()),
        mpiexec="mpiexec",
        nodes=1,
        ranks_per_node=1 if program in ONE_PROCESS_PROGRAMS else 2,
        cpus_per_task=1,
        timeout_s=100,
        training=(),
        devices=2 if program == "mirrored" else 1,
    )


def test_each_program_of_a_stack_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(PROGRAMS)


@pytest.mark.parametrize(
    ("program", "arguments", "on_cpus", "on_gpus"),
    [
        ("horovod_keras", (), "2 ranks", "2 ranks with a GPU each"),
        ("horovod_graph", (), "2 ranks", "2 ranks with a GPU each"),
        ("single", (), "one process", "one process with a GPU"),
        ("mirrored", ("--devices", "2"), "2 replicas of one process", "2 GPUs of one process"),
        (
            "multiworker",
            ("--communication", "AUTO", "--stall", "20"),
            "2 workers",
            "2 workers with a GPU each",
        ),
    ],
)
def test_a_strategy_has_the_arguments_and_words_of_its_program(
    program: str, arguments: tuple[str, ...], on_cpus: str, on_gpus: str
) -> None:
    proof = make_proof(program)
    strategy = strategy_of(proof)
    assert strategy.arguments(proof) == arguments
    assert strategy.words(proof, 0, None) == on_cpus
    assert strategy.words(proof, 1, None) == on_gpus


def test_each_strategy_judges_with_the_checks_of_its_program() -> None:
    def check_names(program: str) -> set[str]:
        proof = make_proof(program)
        reports = [one_process()] if program in ONE_PROCESS_PROGRAMS else workers()
        verdict = strategy_of(proof).judge(proof, reports, 0.9, None)
        return {check.name for check in verdict.checks}

    names = {program: check_names(program) for program in PROGRAMS}
    assert [program for program in PROGRAMS if "communication" in names[program]] == ["multiworker"]
    assert [program for program in PROGRAMS if "replicas" in names[program]] == ["mirrored"]
    assert "allreduce" not in names["single"]
    assert all("peers" in names[program] for program in ("horovod_keras", "horovod_graph"))
