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
