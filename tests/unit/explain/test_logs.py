"""Recorded logs: each row of `logs/lines.txt` and `logs/outputs.txt` names the entry that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts.loops import for_each
from provision.explain.conclude import Explanation
from provision.explain.known import KnownFailure
from provision.machine.programs.failed_program import explain_log, known_failures

LOGS = Path(__file__).parent / "logs"
LINES = [row.split("\t", 1) for row in (LOGS / "lines.txt").read_text(encoding="utf-8").splitlines()[1:]]
OUTPUTS = [part.split("\n", 1) for part in (LOGS / "outputs.txt").read_text(encoding="utf-8").split("\n=== ")[1:]]
EXAMPLES = [entry for entry in known_failures().entries if entry.example]


def shown(text: str, *, failed: bool = False) -> Explanation:
    """What a log shows."""
    return explain_log([text.encode()], failed=failed)


def answer(text: str) -> str:
    """The entry that a log shows, or the verdict if no entry names its failure."""
    explanation = shown(text)
    return explanation.known.entry.id if explanation.known else explanation.verdict


@for_each(("wanted", "text"), LINES)
def test_a_line_shows_one_failure(wanted: str, text: str) -> None:
    assert answer(f"{text}\n") == wanted


@for_each(("wanted", "text"), OUTPUTS)
def test_the_output_of_a_program_shows_one_failure(wanted: str, text: str) -> None:
    assert answer(f"{text}\n") == wanted


# The example of each entry, in logs around it

BEFORE = """\
Loading gcc/12.2.0
2026-11-21 10:00:01.104512: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is optimized
2026-11-21 10:00:00.003: E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: \
no CUDA-capable device is detected
WARNING: There was an error initializing an OpenFabrics device.
 312/1875 [===>..........................] - ETA: 41s - loss: 0.4211 - accuracy: 0.8712
"""
AFTER = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
"""


def ranked(text: str, rank: int) -> str:
    """The lines as `mpirun --tag-output` prints them, in red."""
    return "".join(f"[1,{rank}]<stderr>:\x1b[31m{line}\x1b[0m\n" for line in text.splitlines())


@for_each("entry", EXAMPLES, ids=lambda entry: entry.id)
def test_the_example_of_an_entry_is_explained_by_it(entry: KnownFailure) -> None:
    alone = shown(f"{entry.example}\n")
    if entry.level == "notice":
        assert alone.verdict == "healthy" and entry.id in {note.entry.id for note in alone.findings}
        return
    assert alone.verdict == ("unknown" if entry.level == "consequence" else "known")
    assert alone.findings[0].entry.id == entry.id
    assert "…" not in alone.findings[0].cause.replace("=…", ""), "each name of the cause is in the example"
    if entry.level not in ("wait", "consequence", "complaint", "remark"):
        assert answer(ranked(BEFORE, 0) + ranked(entry.example, 3) + AFTER) == entry.id


@for_each("entry", EXAMPLES, ids=lambda entry: entry.id)
def test_an_entry_has_a_cause_and_a_hint_and_names_no_line_of_another(entry: KnownFailure) -> None:
    assert entry.match and entry.cause and entry.hint and entry.source
    assert not entry.cause.endswith(".") and not entry.hint.endswith(".")
    assert any(
        entry.id == found.id for line in entry.example.split("\n") for _, found, _ in known_failures().matches(line)
    )


def test_no_pattern_is_in_two_entries() -> None:
    patterns = [pattern for entry in EXAMPLES for pattern in entry.match]
    assert [pattern for pattern in patterns if patterns.count(pattern) > 1] == []


@pytest.mark.parametrize("text", ["", "all is well\n", "checking whether errors are found... yes\n", "\0" * 9000])
def test_a_log_without_a_failure_is_healthy(text: str) -> None:
    assert shown(text).verdict == "healthy"


def test_an_output_of_a_program_that_failed_is_never_healthy() -> None:
    explanation = shown("all is well\n", failed=True)
    assert explanation.verdict == "unknown" and explanation.last_only


TRAINED = "Epoch 1/2\n10/10 - 1s - loss: 0.3 - 100ms/step\n"
BAR = "\x1b[1m10/10\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m0s\x1b[0m 1ms/step - loss: 0.2"
SAGA = """\
Task and CPU usage stats:
JobID    JobName  AllocCPUS   NTasks     MinCPU MinCPUTask     AveCPU    Elapsed ExitCode
345             train          4                                               00:00:30      0:0

Memory usage stats:
JobID     MaxRSS MaxRSSTask     AveRSS MaxPages   MaxPagesTask   AvePages

Job 345 consumed 0.1 billing hours from project nn1234k.

Job 345 completed at Thu Jan 12 13:44:11 CET 2023
"""


@pytest.mark.parametrize(
    ("end", "whole"),
    [
        ("Epoch 2/2\n10/10 - 1s - loss: 0.3 - 100ms/step\n", True),
        (f"Epoch 2/2\n\r 1/10 ETA: 1s\r{BAR}\n", True),
        ("Epoch 2/2\n 3/10 [==>.......] - ETA: 3s - loss: 0.3\n", False),
        ("", False),
        ("the job ended well\n", True),
        (
            "the site deletes in the folder of the output: old files; copy it:\nprovision data pull runs/3 --site x\n",
            True,
        ),
        ("published: zen2/tensorflow/2.21.0-32496eafe4\n", True),
        (SAGA, True),
        ("345|train|COMPLETED|0:0\n", True),
        ("Slurm Job_id=3 Name=x Ended, Run time 00:00:10, COMPLETED, ExitCode 0\n", True),
        ("Application 123 resources: utime ~3s, stime ~1s, Rss ~5, inblocks ~3, outblocks ~4\n", True),
        ("Info: task completed normally with an exit code of 0; initiating job cleanup and removal\n", True),
        ("Job finished at Mon Nov 20 10:00:00 CET 2026\n", True),
        ("End time: Mon Nov 20 10:00:00 CET 2026\n", True),
        ("Done.\n", True),
        ("\nreal\t0m3.2s\nuser\t0m3s\nsys\t0m0.1s\n", True),
        ("Done.\n" + TRAINED * 5, False),
    ],
)
def test_the_end_of_a_healthy_log_is_known(end: str, whole: bool) -> None:
    explanation = shown(TRAINED + end)
    assert (explanation.verdict, explanation.ended or explanation.whole) == ("healthy", whole)
    failed = shown(
        "Traceback (most recent call last):\n  File \"/a/t.py\", line 3, in <module>\n    x()\nNameError: name 'x'\n"
        + SAGA
    )
    assert failed.verdict == "known", "an epilog also follows a failure"


LOST = """\
Traceback (most recent call last):
  File "/a/train.py", line 3, in <module>
    x = os.environ['DATA_DIR']
  File "/usr/lib/python3.11/os.py", line 679, in __getitem__
    raise KeyError(key) from None
KeyError: 'DATA_DIR'
"""
LIMIT = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\n"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.npz'\n"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (MISSING + LIMIT, "file-not-found"),
        (MISSING + "step 1\n" * 4 + LIMIT, "time-limit"),
        ("process 0 of 1\n" * 3, "ranks-alone"),
        ("".join(f"[1,{rank}]<stdout>:process 0 of 1\n" for rank in range(3)), "ranks-alone"),
        ("[1,0]<stdout>:process 0 of 1\n" * 3, None),
        ("slurmstepd: error: execve(): python: No such file or directory\n", "program-missing-on-node"),
        ("slurmstepd: error: execve(): /a/run.sh: No such file or directory\n", "script-missing-on-node"),
    ],
)
def test_what_stands_directly_above_an_error_can_be_its_cause(text: str, entry: str | None) -> None:
    known = shown(text).known
    assert (known.entry.id if known else None) == entry


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd: error: execve(): python: No such file or directory\n",
        "/var/spool/slurmd/job00123/slurm_script: line 8: module: command not found\n",
        "/var/spool/slurmd/job00123/slurm_script: line 8: DATA_DIR: unbound variable\n",
        LOST,
    ],
)
def test_an_environment_that_export_did_not_pass_on_is_named(text: str) -> None:
    assert "--export=NONE" in (shown(text).cause or "")
