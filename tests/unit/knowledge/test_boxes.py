"""Messages between two lines of dashes, and the last words of programs that print only complaints."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.boxes import read_box
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.log_reader import explain
from provision.machine.tables import known_failures

DASHES = "-" * 74
START = "reading data/train.h5\nthe grid has 4 parts\n"
# Messages of Open MPI 5, PRRTE 4 and PMIx 6 (their help-*.txt) that no entry of the catalogue names.
ENDS = {
    "a job that cannot be mapped": (
        "A request for multiple cpus-per-proc was given, but a directive was also given\n"
        "to map to an object level that has less cpus than requested ones:\n\n  #cpus-per-proc:  8\n\n"
        "Please specify a mapping level that has more cpus, or else let us define a\ndefault mapping."
    ),
    "MPI that is ended twice": (
        "The function MPI_FINALIZE was invoked multiple times in a single\nprocess on host n17, PID 4711.\n\n"
        "This indicates an erroneous MPI program; MPI_FINALIZE is only allowed\nto be invoked exactly once in a process."
    ),
    "a limit that is too low": (
        'The "eager limit" MCA parameter in the sm BTL was set to a value which\n'
        "is too low for Open MPI to function properly.  Please re-run your job"
    ),
    "the name of the launcher first": "prterun was unable to read the file of addresses\nnodes.txt",
    "a message that says both": (
        "A transport has no more memory. It is likely that your MPI job will now\n"
        "either abort or experience performance degradation."
    ),
}
GOES_ON = {
    "a warning": "WARNING: Open MPI failed to frob the device of this node due to an error.",
    "a value that is ignored": 'An invalid value was supplied for an MCA variable "frob".\nThe variable will be ignored.',
    "a slower way": "Open MPI's OFI driver cannot select an optimal device because the current\nprocess is not bound. "
    "This may negatively impact performance.",
    "a file that stays": "We attempted to remove a file, but were unable to do so:\n\n  Path:  /tmp/pmix.12\n"
    "  Error: No such file or directory",
    "a job that continues": "PRTE tried to bind a new process, but something went wrong and the process\n"
    "was left unbound. The job will continue.",
    "a table": "Layer            Output shape      Errors\ndense_1          (None, 10)        invalid",
    "a heading": "RESULTS, ERRORS",
    "nothing wrong": "The function returned a list of all nodes of this job, and the launcher\nnow starts one process on each.",
}


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures())


def box(text: str) -> str:
    """A message as Open MPI prints it."""
    return f"{DASHES}\n{text}\n{DASHES}\n"


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
def test_a_message_between_lines_of_dashes_is_quoted_from_its_first_line(text: str) -> None:
    """It is a failure although no entry names it, also if nothing follows."""
    found = shown(START + box(text)).known
    assert found
    assert found.hit.number == 4
    assert " ".join(text.split())[:200] in " ".join(found.cause.split())


@pytest.mark.parametrize("text", GOES_ON.values(), ids=GOES_ON)
def test_a_message_with_which_the_program_goes_on_accuses_no_one(text: str) -> None:
    """Nor do tables between such lines."""
    assert shown(START + box(text)).verdict == "healthy"


def test_an_entry_of_the_catalogue_knows_better_than_the_message() -> None:
    """Its line stands in the message."""
    text = "There are not enough slots available in the system to satisfy the 4\nslots that were requested by the application"
    found = shown(START + box(text)).known
    assert found and found.failure.id == "mpi-slots"


def test_a_line_that_only_follows_from_something_does_not_explain_the_message() -> None:
    """PRRTE's first line ends with a colon, and the reason is below it."""
    found = shown(
        START
        + box("A process could not be mapped:\n\n  Hostname: n17\n\nThe cpuset is empty, so it could not continue.")
    ).known
    assert found and "The cpuset is empty" in found.cause


def test_a_message_after_a_good_end_is_a_failure() -> None:
    """The first program ended well, and not the second one."""
    assert shown("Training complete\n" + box(ENDS["MPI that is ended twice"])).verdict == "known"


def test_a_message_with_which_the_program_goes_on_is_not_quoted_for_another_failure() -> None:
    """Nor are the lines within it."""
    first = box("The variable will be ignored, because of this:\nError: the value 12 of the variable is not a name")
    found = shown(START + first + "frob: error: the flux of part 3 is negative\n").known
    assert found and "the flux of part 3" in found.cause


def test_what_an_entry_says_of_a_message_with_which_the_program_goes_on_is_no_failure() -> None:
    """CUDA is not there, and Open MPI does without it."""
    text = "The library opens others.  CUDA-aware support is disabled.\nlibcuda.so.1: cannot open shared object file"
    explanation = shown(START + box(text))
    assert explanation.verdict == "healthy"
    assert "libcuda-missing" in [note.failure.id for note in explanation.findings]


def test_a_line_between_dashes_that_points_elsewhere_is_not_quoted() -> None:
    """The message is above it."""
    text = "Error: could not create the flux file\n" + box("the run of flux halts (see previous error message)...")
    found = shown(START + text).known
    assert found and "could not create the flux file" in found.cause


def test_what_stands_between_two_messages_is_no_message() -> None:
    """The second line of dashes of the first one does not begin another."""
    between = "The solver did not converge in the first pass, so it is not done\n"
    text = START + box(GOES_ON["a job that continues"]) + between + box(GOES_ON["a warning"])
    assert shown(text).verdict == "healthy"


def test_the_lines_of_other_ranks_are_no_part_of_a_message() -> None:
    """With `--tag-output`, they stand between its lines."""
    lines = box(ENDS["MPI that is ended twice"]).splitlines()
    text = "".join(f"[1,0]<stderr>:{line}\n[1,1]<stdout>:part {number} is read\n" for number, line in enumerate(lines))
    found = shown(START + text).known
    assert found and "MPI_FINALIZE was invoked multiple times" in found.cause
    assert "part 3" not in found.cause


def test_a_training_that_goes_on_after_a_message_did_without_it() -> None:
    """What it prints of its steps shows it."""
    steps = "".join(f"step {number} loss: 0.{number}\n" for number in range(10, 60))
    assert shown(START + box(ENDS["a limit that is too low"]) + steps).verdict == "healthy"


def test_a_message_has_a_length() -> None:
    """Two lines of dashes with pages between them are none."""
    lines = [(1, DASHES), *((number, "The run failed in this step") for number in range(2, 80))]
    assert read_box("", reversed(lines[:20]), 0)
    assert read_box("", reversed(lines), 0) is None


@pytest.mark.parametrize(
    "line",
    [
        "/var/spool/job.sh: line 12: TIMEFORMAT: `x': invalid format character",
        "qalter: illegal -W value",
        "pbs_rsub: No support for requested service",
        "tar: Malformed dumpdir: expected 'x' but found 644",
        "ld: Register must be between r0 and r7",
    ],
)
def test_a_log_that_ends_with_a_complaint_of_such_a_program_is_no_healthy_one(line: str) -> None:
    """These programs print their names only if they complain."""
    found = shown(START + line + "\n").known
    assert found and line.partition(": ")[2][-20:] in found.cause
    assert shown(START + line + "\nall 12 steps done\nTraining complete\n").verdict == "healthy"


@pytest.mark.parametrize(
    "line", ["mkdir: created directory 'not there'", "tar: Removing leading `/' from member names, not kept"]
)
def test_what_such_programs_say_of_their_work_is_no_complaint(line: str) -> None:
    """With `-v` they name what they do."""
    assert shown(START + line + "\n").verdict == "healthy"


def test_an_exception_without_a_class_of_its_own_is_one() -> None:
    """`Exception: TEXT` without a traceback is quoted."""
    found = shown(START + "Exception: the flux of part 3 is not a number\n").known
    assert found and "the flux of part 3" in found.cause
