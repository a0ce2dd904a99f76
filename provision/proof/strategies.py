"""What differs between the programs of a proof: arguments, checks, hints, and the words for who trained. Pure.

`STRATEGIES` has one row for each program of `proof/programs/`. Its checks are in the order of likely causes, because the first
that fails is the headline of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from provision.model.check import Check
from provision.model.operation import Prove
from provision.model.verdict import Verdict
from provision.proof import exchange_checks as exchange
from provision.proof import process_checks as processes
from provision.proof import training_checks as training
from provision.proof.reports import Report, Run, figures_of
from provision.proof.training_checks import check_numbers
from provision.wording import count

# Workers that do nothing for this part of the proof's time limit have stalled; the rest of the time is for a second try.
STALL_SHARE = 5

Judge = Callable[[Run], Check | Sequence[Check] | None]
"""One question to the reports of a run, or several; None if the run has nothing to ask about."""

ONE_WORLD: Sequence[Judge] = (
    *(processes.check_missing_gpus, processes.check_reports),
    *(processes.check_ranks, processes.check_nodes, processes.check_versions, processes.check_delivery),
)
BETWEEN_RANKS: Sequence[Judge] = (
    exchange.check_allreduce,
    exchange.check_peers,
    training.check_shards,
    training.check_initial_weights,
)
LEARNED: Sequence[Judge] = (training.check_loss, training.check_accuracy)
WITHOUT_MPI: Sequence[Judge] = (
    *(*ONE_WORLD, processes.check_gpus, exchange.check_communication, *BETWEEN_RANKS),
    *(training.check_broadcast, training.check_weights, training.check_restart, *LEARNED),
)
"""Of processes that find each other by addresses."""

MEETING_HINT = (
    "`communication` in the reports lists the address and interface of each rank; start the ranks with the launcher of the "
    "site, one task for each rank, and never with torchrun"
)
DDP_REDUCTION_HINT = (
    "the ranks exchanged wrong data, or not with all others: look at `communication` in the reports, on GPUs at NCCL "
    "(`NCCL_DEBUG=INFO`, `NCCL_P2P_DISABLE=1`)"
)
CLUSTER_HINT = (
    "`communication` in the reports lists the addresses that each worker had, and their source; in Slurm start the workers with "
    "srun, one task for each worker"
)
REDUCTION_HINT = (
    'the workers exchanged wrong data, or not with all others: try `communication = "RING"` in `[strategies.multiworker]` '
    "of the site's profile"
)
RESTART_HINT = (
    "training could not continue from the saved model: compare the versions of keras, h5py and numpy with the lock"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofStrategy:
    """How one program is started, judged and named."""

    checks: Sequence[Judge]
    """The checks in order. If no process finished, those up to `reports`: all others would then only hide the cause."""
    words: Callable[[Prove, str], str]
    """Who trained. The text is ` with a GPU each` if the processes used GPUs, else empty."""
    arguments: Callable[[Prove], tuple[str, ...]] = lambda _: ()
    """The arguments that only this program has."""
    retry: tuple[str, ...] = ()
    """The arguments with which workers that stalled are started once more; nothing: they are not."""
    numbers: str | None = None
    """The program of the numerical proof, which compares the numbers of ranks of Horovod; None if there are none."""
    packages: tuple[str, ...] = ("tensorflow",)
    """The packages of which a version must be known."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to do about a failed check, by its name, in place of the hint of the check, which is about ranks of Horovod."""


def judge(
    proof: Prove, reports: Sequence[Mapping[str, Any]], min_accuracy: float, stalled: str | None = None
) -> Verdict:
    """Compare the reports of one proof with each other.

    Args:
        proof: the program that ran, and the shape in which it was started.
        reports: one for each process, in any order, including those of processes that failed.
        min_accuracy: share of test images, 0..1, that every rank must recognise.
        stalled: how the first try stalled, if these reports are of the second one.
    """
    strategy, all_reports = STRATEGIES[proof.strategy], [Report(report) for report in reports]
    finished = sorted((report for report in all_reports if report.finished), key=lambda report: report.identity)
    run = Run(
        proof=proof,
        packages=strategy.packages,
        reports=all_reports,
        finished=finished,
        min_accuracy=min_accuracy,
        stalled=stalled,
    )
    checks: list[Check] = []
    for ask in strategy.checks:
        answer = ask(run)
        checks += [answer] if isinstance(answer, Check) else answer or ()
        if ask is processes.check_reports and not finished:
            break
    with_hints = [
        check if check.passed else replace(check, hint=strategy.hints.get(check.name, check.hint)) for check in checks
    ]
    return Verdict(checks=tuple(with_hints), figures=figures_of(finished))


def name_trainers(proof: Prove, gpus: int, stalled: str | None) -> str:
    """Who trained: how many processes used a GPU, and how the first try stalled, if it did."""
    words = STRATEGIES[proof.strategy].words(proof, " with a GPU each" if gpus else "")
    return f"{words} (with RING, because {proof.communication} stalled)" if stalled else words


def imported_by(proof: Prove) -> tuple[str, ...]:
    """The modules that every process imports before it joins the others."""
    framework, *others = STRATEGIES[proof.strategy].packages
    return (framework, *(f"{other}.{framework}" for other in others))


def stall_of(reports: Sequence[Mapping[str, Any]]) -> str | None:
    """How the workers stalled, as text; None if no report mentions a stall."""
    for report in map(Report, reports):
        stall = report.part("stalled")
        if stall.fields:
            communication = report.part("communication").text("asked") or "AUTO"
            return f"{communication} stalled in stage `{stall.get('stage')}`: nothing happened for {stall.get('seconds')} s"
    return None


def _communication(proof: Prove) -> tuple[str, ...]:
    return ("--communication", proof.communication, "--stall", str(max(1, proof.timeout_s // STALL_SHARE)))


def retry_arguments(proof: Prove) -> tuple[str, ...]:
    """The arguments with which workers that stalled are started once more; nothing if they are not, or had these already."""
    retry = STRATEGIES[proof.strategy].retry
    return () if proof.communication in retry else retry


_RANKS: Sequence[Judge] = (*ONE_WORLD, processes.check_gpus, *BETWEEN_RANKS, exchange.check_mpi4py)
_HOROVOD = ProofStrategy(
    packages=("tensorflow", "horovod"),
    numbers="thorough",
    words=lambda proof, gpus: f"{count(proof.processes, 'rank')}{gpus}",
    checks=(*_RANKS, training.check_weights, *LEARNED),
)
_ONE_PROCESS = ProofStrategy(
    words=lambda _, gpus: f"one process{gpus.removesuffix(' each')}",
    checks=(*ONE_WORLD, processes.check_gpus, training.check_restart, *LEARNED),
    hints={"restart": RESTART_HINT},
)
_NUMBERS = (*ONE_WORLD, processes.check_gpus, exchange.check_mpi4py, check_numbers)

STRATEGIES: Mapping[str, ProofStrategy] = {
    "horovod_keras": _HOROVOD,
    "horovod_graph": replace(_HOROVOD, checks=(*_RANKS, training.check_restart, training.check_weights, *LEARNED)),
    "thorough": replace(_HOROVOD, checks=_NUMBERS),
    "horovod_torch": replace(
        _HOROVOD,
        packages=("torch", "horovod"),
        numbers="thorough_torch",
        checks=(*_RANKS, training.check_broadcast, training.check_weights, training.check_restart, *LEARNED),
        hints={
            "broadcast": "`hvd.broadcast_parameters` did not reach all ranks",
            "restart": "`hvd.broadcast_parameters` or `hvd.broadcast_optimizer_state` did not reach all ranks",
        },
    ),
    "thorough_torch": replace(_HOROVOD, packages=("torch", "horovod"), checks=_NUMBERS),
    "single": _ONE_PROCESS,
    "keras_torch": replace(_ONE_PROCESS, packages=("torch", "keras")),
    "mirrored": ProofStrategy(
        arguments=lambda proof: ("--devices", str(proof.devices)),
        words=lambda proof, gpus: f"{proof.devices} {'GPUs' if gpus else 'replicas'} of one process",
        checks=(
            processes.check_replicas,
            *ONE_WORLD,
            processes.check_gpus_of_replicas,
            exchange.check_allreduce,
            training.check_batch,
            training.check_weights,
            training.check_restart,
            *LEARNED,
        ),
        hints={
            "allreduce": "the devices exchanged wrong data: look at NCCL (`NCCL_DEBUG=INFO`, `NCCL_P2P_DISABLE=1`)",
            "weights": "the gradients were not summed over the replicas",
            "restart": RESTART_HINT,
        },
    ),
    "multiworker": ProofStrategy(
        arguments=_communication,
        retry=("--communication", "RING"),
        words=lambda proof, gpus: f"{proof.processes} workers{gpus}",
        checks=WITHOUT_MPI,
        hints={
            **dict.fromkeys(("ranks", "communication"), CLUSTER_HINT),
            **dict.fromkeys(("allreduce", "peers", "shards"), REDUCTION_HINT),
            "restart": RESTART_HINT,
        },
    ),
    "ddp": ProofStrategy(
        packages=("torch",),
        arguments=_communication,
        words=lambda proof, gpus: f"{count(proof.processes, 'rank')} of DDP{gpus}",
        checks=WITHOUT_MPI,
        hints={
            **dict.fromkeys(("ranks", "communication"), MEETING_HINT),
            **dict.fromkeys(("allreduce", "peers"), DDP_REDUCTION_HINT),
            "broadcast": "DistributedDataParallel did not give all ranks the weights of rank 0",
            "restart": "training could not continue from the file of rank 0: do all nodes see the same folder?",
        },
    ),
}
"""The strategy of each program that a stack can name, and of the numerical proof."""
