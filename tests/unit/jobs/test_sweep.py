"""`--sweep`: the size of each job, all or nothing in the queue, and the command that compares the runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from provision.errors import JobError
from provision.machine.submission import submit as submission

Captured = pytest.CaptureFixture[str]
GPU = ("--site", "nersc-perlmutter", "--arch", "gpu", "--account", "m1")
CPU = ("--site", "nersc-perlmutter", "--arch", "cpu", "--account", "m1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shapes(folder: Path) -> list[tuple[int, int, int, int]]:
    """The nodes, ranks, CPUs of a rank and GPUs of a node of each job, as its record will have them."""
    found = []
    for path in folder.iterdir():
        (line,) = [line for line in path.read_text().splitlines() if line.startswith("printf '{")]
        record = json.loads(line.split("'")[1].replace("%s", "").replace("%d", "1").removesuffix("\\n"))
        assert record["tensorflow"] == "2.15.1"
        assert '"${SLURM_JOB_NODELIST:-}"' in line
        found.append((record["nodes"], record["tasks"], record["cpus"], record["gpus"]))
    return sorted(found)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("horovod", *GPU), [(1, 1, 32, 1), (1, 2, 32, 2), (1, 4, 32, 4), (2, 8, 32, 4)]),
        (("horovod", *CPU), [(1, 1, 128, 0), (1, 2, 128, 0), (2, 4, 128, 0), (4, 8, 128, 0)]),
    ],
)
def test_small_sizes_stay_on_a_node_and_large_ones_use_whole_nodes(
    words: tuple[str, ...], expected: list[tuple[int, int, int, int]], here: Path, capsys: Captured
) -> None:
    assert call("job", *words, "--sweep", "8,1,4,2", "--out", "sweep") == 0
    assert shapes(here / "sweep") == expected
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"sbatch sweep/horovod-{words[4]}-1.sh"
    assert lines[-1].endswith("provision scaling" + 4 * " $SCRATCH/runs/JOBID")


def test_every_size_is_submitted_and_the_last_line_compares_them(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    """A stand-in for `sbatch`: it counts."""
    numbers = iter(("41", "42"))
    monkeypatch.setattr(submission, "_submit", lambda *args: next(numbers))
    assert call("job", "mirrored", *GPU, "--sweep", "1,4", "--submit", "--json") == 4
    sweep = json.loads(capsys.readouterr().out)["result"]["sweep"]
    assert [(job["size"], job["job"]) for job in sweep] == [(1, "41"), (4, "42")]
    assert all(Path(job["file"]).is_file() for job in sweep)
    monkeypatch.setattr(submission, "_submit", lambda *args: "43")
    assert call("job", "mirrored", *GPU, "--sweep", "2", "--submit") == 4
    out = capsys.readouterr().out
    assert out.endswith("provision scaling $SCRATCH/runs/43\n")
    words("job", out)


def test_a_refused_job_names_those_that_wait_already(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """A stand-in for `sbatch`: it refuses the second job."""
    calls: list[object] = []

    def submit(*args: object) -> str:
        calls.append(args)
        if len(calls) == 2:
            raise JobError("Slurm refused the job", state="SUBMIT_FAILED")
        return "41"

    monkeypatch.setattr(submission, "_submit", submit)
    assert call("job", "horovod", *GPU, "--sweep", "1,2,4", "--submit") == 1
    assert "`scancel 41` cancels them" in capsys.readouterr().err
    assert len(calls) == 2
