"""Of several failures in one log, the one that is named: the end of a job, the work of its program, and tests that passed."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures())


CONDA = "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\n"
LIMIT = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n"
BROKEN_OFF = """\
Traceback (most recent call last):
  File "/home/u/fetch.py", line 3, in <module>
    text = requests.get(address).text
  File "/env/lib/python3.9/site-packages/requests/models.py", line 818, in generate
    raise ChunkedEncodingError(e)
requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(48 bytes read, 55 more expected)')
"""
PAGES = "".join(f"page {number} of 40\n" for number in range(40))
FIRST = {
    "a program that ran comes before its job's preamble": (
        CONDA + PAGES + BROKEN_OFF,
        "download-broken",
    ),
    "a module that is missing ended nothing": (
        'Lmod has detected the following error: The following module(s) are unknown: "python"\n\n' + PAGES + BROKEN_OFF,
        "download-broken",
    ),
    "so does the end of the job": (CONDA + PAGES + LIMIT, "time-limit"),
    "a package that is missing may be missing because of the preamble": (
        CONDA + "Traceback (most recent call last):\nModuleNotFoundError: No module named 'flurble'\n",
        "conda-not-initialised",
    ),
    "what breaks behind the end of a job follows from it": (
        LIMIT.replace(" DUE TO TIME LIMIT", "")
        + "n1:7:9 [0] NCCL WARN socketProgress: Connection closed by remote peer n2<40318>\n",
        "job-cancelled",
    ),
    "a program that ended had ended before its job": (
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'\n" + LIMIT,
        "file-not-found",
    ),
    "what tidies up did not end the program": (
        "rm: cannot remove 'a.txt': No such file or directory\nflurble: error: the flux is inverted\n",
        "reported-error",
    ),
    "if nothing else failed, it did": ("rm: cannot remove 'a.txt': No such file or directory\n", "tidying-failed"),
}


@for_each("name", FIRST)
def test_the_failure_that_ended_the_job_is_named(name: str) -> None:
    text, failure = FIRST[name]
    assert shown(text).findings[0].failure.id == failure


TEST = """\
1: [ RUN      ] Conv.Small
1: [E:x:Default, call.cc:93 Call] CUDNN failure 8: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0
1: [{result}] Conv.Small (706 ms)
"""


def test_what_a_test_prints_that_passes_is_no_failure() -> None:
    assert shown(TEST.format(result="       OK ")).verdict == "healthy"
    known = shown(TEST.format(result="  FAILED  ")).known
    assert known is not None and "cuDNN" in known.cause


def test_a_program_that_calls_its_line_an_error_comes_before_one_that_complains() -> None:
    known = shown("gpg: no ultimately trusted keys found\nflurble: error: the flux is inverted\n").known
    assert known is not None and "the flux is inverted" in known.cause


def test_a_word_of_prose_is_no_program() -> None:
    known = shown("The file 'a.mat' could not be opened\nbecause: No such file or directory\n").known
    assert known is not None and "`because`" not in known.cause


ABORTS = """\
--> FOAM FATAL ERROR:
the flux of cell 12 is negative

    From function void Foam::flux(int)
    in file flux.C at line 79.

FOAM aborting

[n1:42] *** Process received signal ***
[n1:42] Signal: Aborted (6)
[n1:42] Signal code:  (-6)
"""


def test_why_a_program_ended_itself_comes_before_its_end() -> None:
    known = shown(ABORTS).known
    assert known is not None and "the flux of cell 12 is negative" in known.cause
