"""What differs between the training programs of a proof: arguments, judge, and the words for who trained. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from provision.model.operation import Prove
from provision.model.verdict import Verdict
from provision.proof.horovod import judge
from provision.proof.reports import Report
from provision.proof.without_horovod import judge_mirrored, judge_single, judge_workers
from provision.wording import count

# Workers that do nothing for this part of the proof's time limit have stalled; the rest of the time is for a second try.
STALL_SHARE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one training program is started, judged and named."""

    judge: Callable[[Prove, Sequence[Report], float, str | None], Verdict]
    """The verdict on the reports, for a lowest accuracy (0..1), and for how the first try stalled, if it did."""
    arguments: Callable[[Prove], tuple[str, ...]]
    """The arguments that only this program has."""
    words: Callable[[Prove, int, str | None], str]
    """Who trained: how many processes used a GPU, and how the first try stalled, if it did."""


def strategy_of(proof: Prove) -> Strategy:
    """The strategy of the proof's program."""
    return STRATEGIES[proof.strategy]


def _no_arguments(_: Prove) -> tuple[str, ...]:
    return ()


def _judge_horovod(proof: Prove, reports: Sequence[Report], min_accuracy: float, _: str | None) -> Verdict:
    gpus = proof.gpu is not None
    return judge(reports, ranks=proof.processes, min_accuracy=min_accuracy, nodes=proof.nodes, gpus=gpus)


def _name_ranks(proof: Prove, gpus: int, _: str | None) -> str:
    return f"{count(proof.processes, 'rank')}{' with a GPU each' if gpus else ''}"


def _judge_single(proof: Prove, reports: Sequence[Report], min_accuracy: float, _: str | None) -> Verdict:
    return judge_single(reports, min_accuracy=min_accuracy, gpus=proof.gpu is not None)


def _name_process(_: Prove, gpus: int, __: str | None) -> str:
    return "one process with a GPU" if gpus else "one process"


def _judge_mirrored(proof: Prove, reports: Sequence[Report], min_accuracy: float, _: str | None) -> Verdict:
    return judge_mirrored(reports, replicas=proof.devices, min_accuracy=min_accuracy, gpus=proof.gpu is not None)


def _number_of_devices(proof: Prove) -> tuple[str, ...]:
    return ("--devices", str(proof.devices))


def _name_replicas(proof: Prove, gpus: int, _: str | None) -> str:
    return f"{proof.devices} {'GPUs' if gpus else 'replicas'} of one process"


def _judge_workers(proof: Prove, reports: Sequence[Report], min_accuracy: float, stalled: str | None) -> Verdict:
    return judge_workers(
        reports,
        workers=proof.processes,
        nodes=proof.nodes,
        min_accuracy=min_accuracy,
        gpus=proof.gpu is not None,
        stalled=stalled,
    )


def _communication(proof: Prove) -> tuple[str, ...]:
    return ("--communication", proof.communication, "--stall", str(max(1, proof.timeout_s // STALL_SHARE)))


def _name_workers(proof: Prove, gpus: int, stalled: str | None) -> str:
    second_try = f" (with RING, because {proof.communication} stalled)" if stalled else ""
    return f"{proof.processes} workers{' with a GPU each' if gpus else ''}{second_try}"


_HOROVOD = Strategy(judge=_judge_horovod, arguments=_no_arguments, words=_name_ranks)

STRATEGIES: Mapping[str, Strategy] = {
    "horovod_keras": _HOROVOD,
    "horovod_graph": _HOROVOD,
    "single": Strategy(judge=_judge_single, arguments=_no_arguments, words=_name_process),
    "mirrored": Strategy(judge=_judge_mirrored, arguments=_number_of_devices, words=_name_replicas),
    "multiworker": Strategy(judge=_judge_workers, arguments=_communication, words=_name_workers),
}
"""The strategy of each training program that a stack can name."""
