"""Messages between two lines of dashes, and the last words of programs that print only complaints."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.log_reader import LogReader
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


@for_each("text", GOES_ON.values(), ids=GOES_ON)
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
    halts = box("The MPI run of flux halts (see previous error message)...")
    found = shown(START + "Error: could not create the flux file\n" + halts).known
    assert found and "could not create the flux file" in found.cause
    assert shown(START + halts).known is None


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


def test_the_lines_of_ranks_are_no_part_of_a_message_without_a_rank() -> None:
    """The launcher prints it without one."""
    lines = box(ENDS["MPI that is ended twice"]).splitlines()
    lines.insert(2, "[1,1]<stdout>:part 3 is read")
    found = shown(START + "\n".join((*lines, ""))).known
    assert found and "MPI_FINALIZE was invoked multiple times" in found.cause
    assert "part 3" not in found.cause


def test_an_exception_between_the_lines_of_a_warning_is_no_part_of_it() -> None:
    """A program may print to the same terminal at the same time."""
    lines = box("WARNING: There was an error initializing an OpenFabrics device.\n  Local host: n17").splitlines()
    lines.insert(2, "OSError: [Errno 28] No space left on device")
    found = shown(START + "\n".join((*lines, ""))).known
    assert found and found.failure.id == "disk-full"


def test_a_training_that_goes_on_after_a_message_did_without_it() -> None:
    """What it prints of its steps shows it."""
    steps = "".join(f"step {number} loss: 0.{number}\n" for number in range(10, 60))
    assert shown(START + box(ENDS["a limit that is too low"]) + steps).verdict == "healthy"


def test_a_message_has_a_length() -> None:
    """Two lines of dashes with pages between them are none."""
    lines = "".join(
        f"The node n{number} could not be reached, and the job is not able to continue\n" for number in range(50)
    )
    assert "not able to continue" in str(shown(START + box(lines.strip())).known)
    filler = "".join(f"the part {number} is read\n" for number in range(90))
    explanation = shown(START + DASHES + "\nThe job is not able to continue\n" + filler + DASHES + "\n" + filler)
    assert explanation.verdict == "healthy"


def test_a_message_at_the_end_of_a_block_is_read() -> None:
    """The reader gets a log in blocks."""
    blocks = [f"{line}\n".encode() for line in (START + box(ENDS["a limit that is too low"])).splitlines()]
    found = explain(blocks, known_failures()).known
    assert found and "eager limit" in found.cause


# What programs print between lines of dashes although nothing failed.
HEALTHY = {
    "a banner": "Welcome to the cluster Frontier.\nPlease report problems to help@hpc.example.org.",
    "an epilogue": "Job 4711 finished on n17.\nUsed 12 % of the memory; if this is too low, request less.",
    "a summary": "Loading the training set from train.h5\nRows: 120000, missing values: 12 (replaced by the mean)",
}


@pytest.mark.parametrize("text", HEALTHY.values(), ids=HEALTHY)
def test_a_banner_or_a_summary_between_lines_of_dashes_accuses_no_one(text: str) -> None:
    """It does not say that it is from Open MPI, or that the program ends."""
    steps = "".join(f"the part {number} is done\n" for number in range(5))
    assert shown(START + box(text) + steps).verdict == "healthy"
    assert shown(START + steps + "Training complete\n" + box(text)).verdict == "healthy"


def test_a_message_of_an_unknown_program_counts_if_the_log_ends_with_it() -> None:
    """Otherwise it may be a banner."""
    text = box("The solver library could not read the license of this node.")
    found = shown(START + text).known
    assert found and "could not read the license" in found.cause
    assert shown(START + text + "the part 1 is done\n").verdict == "healthy"


@pytest.mark.parametrize("dashes", [61, 80])
def test_lines_of_dashes_of_other_programs_are_no_borders(dashes: int) -> None:
    """STREAM and HPL print other numbers of dashes than Open MPI."""
    text = (
        "The following process grid was used, which was smaller than\n"
        "requested, because fewer ranks exist than the process grid needs. Errors are measured below."
    )
    assert shown(f"{START}{'-' * dashes}\n{text}\n{'-' * dashes}\n").verdict == "healthy"


def test_the_text_between_a_heading_and_another_is_no_message() -> None:
    """Lines of dashes alternate: one begins a message, the next one ends it."""
    between = "The solver of the processes does not converge below 1e-9, so the tolerance is 1e-6"
    text = f"{START}{DASHES}\nGradient check of the flux\n{DASHES}\n{between}\n{DASHES}\nall parts are done\n"
    assert shown(text).verdict == "healthy"


def test_the_messages_of_two_ranks_are_kept_apart() -> None:
    """What a rank prints between two of its warnings is no message, whatever another one prints."""
    warning = box(GOES_ON["a warning"]).splitlines()
    between = "The first pass of the ranks does not find a better partition, so the old one is used"
    lines = [
        *(f"[1,0]<stderr>:{line}" for line in warning),
        *(f"[1,1]<stderr>:{line}" for line in warning),
        f"[1,0]<stderr>:{between}",
        *(f"[1,0]<stderr>:{line}" for line in warning),
    ]
    assert shown("\n".join((*lines, ""))).verdict == "healthy"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        ("flux: fatal error: the flux of part 3 is negative", "reported-error"),
    ],
)
def test_a_warning_of_one_rank_excuses_no_line_of_another(line: str, name: str) -> None:
    """With `--tag-output`, the lines of ranks stand between each other."""
    warning = box("WARNING: There was an error initializing an OpenFabrics device.\n  Local host: n17").splitlines()
    lines = [f"[1,0]<stderr>:{part}" for part in warning]
    lines.insert(2, f"[1,1]<stderr>:{line}")
    found = shown("\n".join((*lines, ""))).known
    assert found and found.failure.id == name


def test_a_message_that_names_performance_and_a_failed_job_is_a_failure() -> None:
    """One word of a warning does not excuse it."""
    text = "The launcher could not open the file with the performance counters of part 3. The job failed."
    found = shown(START + box(text) + "the part 1 is done\n").known
    assert found and "performance counters" in found.cause


def test_a_harmless_line_in_a_message_does_not_explain_it() -> None:
    """It says more than the notice does."""
    notice = (
        "Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file"
    )
    text = f"The process cannot fork, and the job is not able to continue.\n{notice}"
    found = shown(START + box(text)).known
    assert found and "not able to continue" in found.cause


def test_of_many_lines_with_the_same_failure_a_few_are_kept() -> None:
    """A notice among them makes no difference; otherwise the time grows with their square."""
    reader = LogReader(known_failures())
    reader.feed(b"WARNING: No space left on device\n")
    for number in range(50):
        reader.feed(f"OSError: [Errno 28] No space left on device {number}\n".encode())
    (hits,) = [hits for name, hits in reader._evidence.hits.items() if name == "disk-full"]
    assert len(hits) == 8
    assert all(hit.weight for hit in hits)


@for_each(
    "line",
    [
        "/var/spool/job.sh: line 12: TIMEFORMAT: `x': invalid format character",
        "qalter: illegal -W value",
        "pbs_rsub: No support for requested service",
        "tar: Malformed dumpdir: expected 'x' but found 644",
        "ld: Register must be between r0 and r7",
        "find: invalid expression; you have used a binary operator",
    ],
)
def test_a_log_that_ends_with_a_complaint_of_such_a_program_is_no_healthy_one(line: str) -> None:
    """These programs print their names only if they complain."""
    found = shown(START + line + "\n").known
    assert found and line.partition(": ")[2][-20:] in found.cause
    assert shown(START + line + "\nall 12 steps done\nTraining complete\n").verdict == "healthy"


@for_each(
    "line",
    [
        "mkdir: created directory 'not there'",
        "tar: Removing leading `/' from member names, not kept",
        "df: 1200 rows, 4 columns, no missing values",
        "env: CartPole-v1, no rendering",
        "find: 12 matches, no duplicates",
        "tail: expected 0.05, found 0.049",
        "test: error 0.05, must improve",
        "No malformed records in train.csv",
        "No values out of range were found",
    ],
)
def test_what_such_programs_say_of_their_work_is_no_complaint(line: str) -> None:
    """With `-v` they name what they do; and names of programs are also words."""
    assert shown(START + line + "\n").verdict == "healthy"


def test_an_exception_without_a_class_of_its_own_is_one() -> None:
    """`Exception: TEXT` without a traceback is quoted."""
    found = shown(START + "Exception: the flux of part 3 is not a number\n").known
    assert found and "the flux of part 3" in found.cause
