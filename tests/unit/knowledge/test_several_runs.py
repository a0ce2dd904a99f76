"""Files to which several runs or jobs wrote, lines that were cut, and files with holes."""

from __future__ import annotations

from provision.knowledge.failures.appended_runs import MOST
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([f"{text}\n".encode()], known_failures())


TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 3, in <module>
    {0}()
NameError: name '{0}' is not defined
"""


def report(code: int, *, output: str = "follows:") -> str:
    """What LSF writes of a job."""
    ended = "Successfully completed." if not code else f"Exited with exit code {code}."
    dashes = "-" * 60
    return f"\n{dashes}\nSender: LSF System <lsfadmin@n1>\nSubject: Job 4711: <a>\n\n{ended}\n\nThe output (if any) {output}\n\n"


ABOVE = "is above this job summary."


def test_the_last_of_the_jobs_that_wrote_to_a_file_of_lsf_counts() -> None:
    first, last = TRACEBACK.format("flux"), TRACEBACK.format("solve")
    below = report(1) + first + report(1) + last
    above = first + report(1, output=ABOVE) + last + report(1, output=ABOVE)
    unreported = first + report(1, output=ABOVE) + last
    for text in (below, above, unreported):
        known = shown(text).known
        assert known is not None and "solve" in known.cause, text
        assert not any("flux" in found.cause for found in shown(text).findings)


def test_a_job_of_lsf_that_ended_well_after_others_is_healthy() -> None:
    first = TRACEBACK.format("flux")
    for begins in ("", "notes of a person\n"):
        assert shown(begins + report(1) + first + report(0) + "Training complete").verdict == "healthy"
    assert shown(first + report(1, output=ABOVE) + "loss: 0.1\n" + report(0, output=ABOVE)).verdict == "healthy"
    known = shown(
        "loss: 0.1\n" + report(0, output=ABOVE) + first + report(1, output=ABOVE) + "\nPS:\nRead file <e>"
    ).known
    assert known is not None and "flux" in known.cause
    assert shown(report(0) + "Training complete\n" + report(1) + first).verdict == "known"


HEAD = "Loaded module: python3/3.7.5\nLoaded dependency [cudnn/7.6]: cuda/10.0\nLoaded module: cudnn/7.6\n"


def test_the_last_of_the_runs_that_wrote_to_a_file_counts() -> None:
    first, last = TRACEBACK.format("flux"), TRACEBACK.format("solve")
    explanation = shown(HEAD + first + HEAD + last)
    assert explanation.known is not None and "solve" in explanation.known.cause
    assert (explanation.begins, shown(HEAD + first).begins) == (8, 1)
    assert shown(HEAD + first + HEAD + "loss: 0.1").verdict == "known"  # a rank that started late looks the same
    known = shown(HEAD + first + HEAD + last + HEAD + "loss: 0.1").known
    assert known is not None and "solve" in known.cause
    lost = "ConnectionResetError: [Errno 104] Connection reset by peer\n"
    known = shown(HEAD + first + HEAD + lost).known
    assert known is not None and "flux" in known.cause
    known = shown(HEAD + "loss: 0.1\n" + HEAD + first).known
    assert known is not None and "flux" in known.cause
    known = shown(
        HEAD + first + HEAD + "/etc/run.sh: line 3: a/b.txt: Permission denied\ncp: cannot stat 'a': Permission denied"
    ).known
    assert known is not None and "flux" in known.cause  # a script often goes on after that


def test_ranks_that_begin_alike_are_one_run() -> None:
    first, last = TRACEBACK.format("flux"), TRACEBACK.format("solve")
    labelled = [
        "".join(f"{rank}: {line}\n" for line in (HEAD + text).splitlines()) for rank, text in ((0, first), (1, last))
    ]
    known = shown("".join(labelled)).known
    assert known is not None and "flux" in known.cause
    known = shown(first + last).known
    assert known is not None and "flux" in known.cause


def test_a_line_that_was_cut_is_harmless_if_the_whole_one_is() -> None:
    whole = "W tensorflow/dso_loader.cc:55] Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file"
    cut = whole.format("libcufft.so.10.0")[:75]
    assert cut.endswith("'libcufft.so.")
    assert shown(f"{whole.format('libcudart.so.10.0')}\n{cut}").verdict == "healthy"
    assert shown(f"{cut}\nflux: error: no such key").verdict == "known"
    display = "Unable to init server: Could not connect: Connection refused"
    assert shown(display).verdict == shown(f"{display}\n{display[:45]}").verdict == "healthy"
    assert shown(f"{display}\nUnable to init server: Could not bind").verdict == "known"
    failed = "flux: error: cannot write the second of the files a.txt"
    assert shown(f"{failed}, retrying\n{failed}").verdict == "known"  # the last attempt is no cut line


def test_holes_in_a_file_are_no_text() -> None:
    explanation = explain([b"epoch 1 loss: 0.1\n" + b"\0" * 9000 + b"epoch 2 loss: 0.1\n"], known_failures())
    assert explanation.is_text and explanation.verdict == "healthy"


def test_lines_that_each_step_repeats_begin_no_run() -> None:
    """An error that a program did without is judged by the whole file, not by the part that ends with it."""
    steps = [HEAD + "loss: 0.1 - accuracy: 0.5\n" * 40 for _ in range(4)]
    complaint = "flux: error: cannot open the file of last time\n"
    whole = "".join((*steps[:2], complaint, *steps[2:]))
    assert shown(whole.replace("Loaded", "Kept")).verdict == shown(whole).verdict == "healthy"


def test_lines_that_stand_there_very_often_begin_no_run() -> None:
    first, last = TRACEBACK.format("flux"), TRACEBACK.format("solve")
    known = shown(HEAD + first + HEAD * (MOST + 1) + last).known
    assert known is not None and "flux" in known.cause
    known = shown(HEAD + first + HEAD * MOST + last).known
    assert known is not None and "solve" in known.cause


def test_a_run_is_found_in_any_block() -> None:
    first, last = TRACEBACK.format("flux"), TRACEBACK.format("solve")
    for blocks in (
        (HEAD + first, HEAD + last),
        (HEAD, first + HEAD, last),
        ("\n\n" + HEAD + first + "\n" + HEAD + last,),
    ):
        known = explain([block.encode() for block in blocks], known_failures()).known
        assert known is not None and "solve" in known.cause
        lines = "".join(blocks).split("\n")
        assert lines[known.hit.number - 1] == "NameError: name 'solve' is not defined"


def test_numbers_of_any_length_may_differ_in_the_first_lines() -> None:
    def head(number: int) -> str:
        return f"run {number} begins\non node n{number} at {number}:30\nwith the seed {number}\n"

    known = shown(head(9) + TRACEBACK.format("flux") + head(123) + TRACEBACK.format("solve")).known
    assert known is not None and "solve" in known.cause
