"""Each training program of a stack has a strategy: its own arguments, its judge, and the words for who trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parts.reports import make_proof, one_process, workers
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS
from provision.proof.strategies import STRATEGIES, judge, name_trainers, retry_arguments


def test_each_program_of_a_stack_and_the_numerical_proof_have_a_strategy() -> None:
    assert set(STRATEGIES) == {*PROGRAMS, "keras_torch", "thorough", "thorough_torch"}


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
        ("horovod_torch", (), "2 ranks", "2 ranks with a GPU each"),
        ("ddp", ("--communication", "AUTO", "--stall", "20"), "2 ranks of DDP", "2 ranks of DDP with a GPU each"),
    ],
)
def test_a_strategy_has_the_arguments_and_words_of_its_program(
    program: str, arguments: tuple[str, ...], on_cpus: str, on_gpus: str
) -> None:
    proof = make_proof(program)
    assert STRATEGIES[program].arguments(proof) == arguments
    assert name_trainers(proof, 0, None) == on_cpus
    assert name_trainers(proof, 1, None) == on_gpus


def test_only_workers_that_have_another_way_to_reduce_are_started_once_more() -> None:
    proof = make_proof("multiworker")
    assert retry_arguments(proof) == ("--communication", "RING")
    assert retry_arguments(replace(proof, communication="RING")) == ()
    assert retry_arguments(make_proof("ddp")) == retry_arguments(make_proof("horovod_keras")) == ()


RANKS = "reports ranks nodes versions gpus"
EXCHANGE = "allreduce peers shards initial-weights"


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("horovod_keras", f"{RANKS} {EXCHANGE} weights loss accuracy"),
        ("horovod_graph", f"{RANKS} {EXCHANGE} restart weights loss accuracy"),
        ("horovod_torch", f"{RANKS} {EXCHANGE} broadcast weights restart loss accuracy"),
        *((numbers, f"{RANKS} checks") for numbers in ("thorough", "thorough_torch")),
        ("single", f"{RANKS} restart loss accuracy"),
        ("mirrored", f"replicas {RANKS} allreduce batch weights restart loss accuracy"),
        ("multiworker", f"{RANKS} communication {EXCHANGE} broadcast weights restart loss accuracy"),
        ("ddp", f"{RANKS} communication {EXCHANGE} broadcast weights restart loss accuracy"),
    ],
)
def test_each_strategy_asks_all_of_its_questions_the_likeliest_cause_first(program: str, names: str) -> None:
    reports = [one_process()] if program in ONE_PROCESS_PROGRAMS else workers()
    verdict = judge(make_proof(program, gpus=True), reports, 0.9)
    assert " ".join(check.name for check in verdict.checks) == names
