"""The driver of the proof: stalled workers are started once more with RING, and the verdict records it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.reports import workers
from provision import cli
from provision.errors import ConfigError, ProofError
from provision.machine.install.ranks import Ranks
from provision.machine.root.store import Store
from provision.model.layout import Layout
from provision.model.operation import Prove
from provision.model.verdict import ProofResult
from provision.profile.arch import Launcher
from provision.profile.stack import Training

# Stands in for mpiexec and the workers: it writes the reports of the next try, and records its arguments.
STAND_IN = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
if "strace" in sys.argv:
    if not (folder / "old-strace").exists():
        sys.exit("strace: not found")
    if "--seccomp-bpf" in sys.argv:  # since strace 5.3 (its NEWS)
        sys.exit("strace: unrecognized option '--seccomp-bpf'")
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text((folder / "old-strace").read_text())
    sys.exit()
with open(folder / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
number = len((folder / "calls").read_text().splitlines())
reports = json.loads((folder / f"try-{{number}}.json").read_text())
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
for rank, report in enumerate(reports):
    (out / f"report-n1-{{rank}}.json").write_text(json.dumps(report))
print((folder / "output").read_text() if (folder / "output").exists() else "")
sys.exit(any(report["error"] for report in reports))
"""

Start = Callable[..., tuple[Ranks, Path]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Makes a proof whose tries leave these reports."""

    def make(*tries: list[dict[str, Any]], communication: str = "AUTO", program: str = "multiworker") -> Any:
        folder = tmp_path / "stand-in"
        folder.mkdir()
        for number, reports in enumerate(tries, 1):
            (folder / f"try-{number}.json").write_text(json.dumps(reports), encoding="utf-8")
        mpiexec = folder / "mpiexec"
        mpiexec.write_text(STAND_IN.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
        mpiexec.chmod(0o755)
        one_process = program in ("single", "mirrored")
        training = Training(data="digits", epochs=8, batch_size=32, learning_rate=0.001, min_accuracy=0.9)
        proof = Prove(
            program=f"/site/provision/proof/programs/{program}.py",
            launcher=Launcher(name="mpiexec", options=()),
            mpiexec=str(mpiexec),
            nodes=1,
            ranks_per_node=1 if one_process else 2,
            cpus_per_task=0,
            timeout_s=100,
            training=(training, dataclasses.replace(training, data="mnist")),
            communication=communication,
        )
        ranks = Ranks(
            store=Store(Layout(tmp_path / "root")),
            python="python",
            proof=proof,
            environ={},
            log=tmp_path / "proof.log",
            listen=lambda event: None,
            into=tmp_path / "root" / "records",
        )
        return ranks, folder

    return make


def second(ranks: Ranks) -> Ranks:
    """The same, with the program of another framework behind it."""
    other = dataclasses.replace(ranks.proof, program="/site/provision/proof/programs/ddp.py")
    return dataclasses.replace(ranks, proof=dataclasses.replace(ranks.proof, others=(other,)))


def reports_of_ddp(accuracy: float = 0.93) -> list[dict[str, Any]]:
    """Reports of two ranks of torch."""
    reports = workers()
    for report in reports:
        report["versions"]["torch"], report["accuracy"] = "2.7.1", accuracy
        report["weights_sha256_broadcast"] = "0" * 64
    return reports


def test_what_another_framework_trained_is_in_the_same_verdict(start: Start) -> None:
    ranks, folder = start(workers(), reports_of_ddp())
    proof = second(ranks).prove()
    assert [Path(next(word for word in call if word.endswith(".py"))).stem for call in launcher_calls(folder)] == [
        "multiworker",
        "ddp",
    ]
    names = [check.name for check in proof.verdict.checks]
    assert len(names) == len(set(names)) and {"weights", "PyTorch: weights", "PyTorch: restart"} <= set(names)
    assert proof.verdict.figures.accuracy == 0.93 and proof.verdict.figures.versions["torch"] == "2.7.1"
    assert "2 workers" in proof.summary and "with PyTorch, 2 ranks of DDP" in proof.summary
    kept = ProofResult.from_dict(json.loads((ranks.into / "verdict.json").read_text()))
    assert kept.verdict == proof.verdict
    assert {path.parent.name for path in ranks.into.glob("*/report-*.json")} == {"proof", "proof-ddp"}


def test_a_framework_that_fails_fails_the_verdict_of_both(start: Start) -> None:
    ranks, _ = start(workers(), reports_of_ddp(accuracy=0.2))
    with pytest.raises(ProofError, match="accuracy"):
        second(ranks).prove()
    kept = json.loads((ranks.into / "verdict.json").read_text())
    assert kept["passed"] is False
    assert [check["name"] for check in kept["checks"] if not check["passed"]] == ["PyTorch: accuracy"]


def stalled_workers() -> list[dict[str, Any]]:
    """Reports of two workers that stalled: one ended itself, the launcher ended the other."""
    first, second = workers()
    first.update(stage="training", error="Stall: nothing happened", stalled={"stage": "training", "seconds": 20})
    second["stage"] = "training"
    return [first, second]


def workers_with_ring() -> list[dict[str, Any]]:
    """Reports of workers that trained with RING."""
    reports = workers()
    for report in reports:
        report["communication"]["asked"] = "RING"
    return reports


def launcher_calls(folder: Path) -> list[list[str]]:
    """How the launcher was called, each time."""
    return [json.loads(line) for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]


def test_workers_that_do_not_stall_are_started_once(start: Start) -> None:
    ranks, folder = start(workers())
    proof = ranks.prove()
    (call,) = launcher_calls(folder)
    assert call[call.index("--communication") :][:4] == ["--communication", "AUTO", "--stall", "20"]
    assert (proof.verdict.figures.ranks, proof.verdict.figures.reads_files) == (2, None), (
        "without strace nothing is known"
    )
    assert [part for part in ("2 workers", "1 node", "digits", "95.0%") if part not in proof.summary] == []


def test_look_ups_are_counted_by_an_old_strace_too(start: Start) -> None:
    ranks, folder = start(workers())
    (folder / "old-strace").write_text(f'7 openat(AT_FDCWD</>, "{ranks.store.root}/a", O_RDONLY) = 3\n')
    reads = ranks.prove().verdict.figures.reads_files
    assert reads is not None and reads.lookups == 1


def test_stalled_workers_are_started_again_with_ring(start: Start, words: Words) -> None:
    ranks, folder = start(stalled_workers(), workers_with_ring())
    proof = ranks.prove()
    assert [call[-1] for call in launcher_calls(folder)] == ["20", "RING"]
    messages = {check.name: check.message for check in proof.verdict.checks}
    assert messages["communication"].startswith("second try: RING")
    assert "`training`" in messages["communication"] and "20 s" in messages["communication"]
    words("test", messages["communication"])
    assert "2 workers" in proof.summary and "RING" in proof.summary and "AUTO" in proof.summary
    assert len(list((ranks.into / "proof-stalled").glob("report-*.json"))) == 2


def test_workers_that_also_stall_with_ring_fail(start: Start) -> None:
    ranks, folder = start(stalled_workers(), stalled_workers())
    with pytest.raises(ProofError, match="reports"):
        ranks.prove()
    assert len(launcher_calls(folder)) == 2


def test_with_ring_in_the_profile_one_try_is_explained_with_the_launcher_output(start: Start) -> None:
    ranks, folder = start(stalled_workers(), communication="RING")
    (folder / "output").write_text("but OMPI was not built with SLURM's PMI support and therefore cannot\n")
    with pytest.raises(ProofError, match="srun started Open MPI") as caught:
        ranks.prove()
    assert "mpirun" in (caught.value.hint or "")
    assert len(launcher_calls(folder)) == 1


def test_the_numerical_proof_is_refused_for_a_stack_without_ranks(start: Start) -> None:
    ranks, _ = start([], program="single")
    with pytest.raises(ConfigError, match="proof is `single`") as caught:
        ranks.prove_numbers()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ((), 2, "environment"),
        (("--provided", "tensorflow/2.21.0"), 2, "`--provided`"),
        (("tensorflow/2.21.0", "--stack", "s"), 2, "`--stack`"),
        (("--provided", "--site", "nyu-greene", "--arch", "cpu"), 2, "`cpu`"),
        (
            ("--provided", "--site", "nersc-cori", "--arch", "knl"),
            1,
            "job",
        ),
    ],
)
def test_what_cannot_be_tested_is_refused_with_a_hint(
    command: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert cli.main(["test", *command]) == code
    err = capsys.readouterr().err
    assert message in err
    words("test", err.splitlines()[0])
    assert "hint: " in err
