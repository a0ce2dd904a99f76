"""What a program printed before a launcher or a scheduler noticed its end, and what an error announces in the next lines."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.last_words import ID
from provision.knowledge.failures.log_reader import LogReader
from provision.machine.tables import known_failures

BOX = """\
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 7.
--------------------------------------------------------------------------
"""

NOTICE = """\
--------------------------------------------------------------------------
[[2,1],0]: A high-performance module
was unable to find any relevant network interfaces:
--------------------------------------------------------------------------
"""


def shown(text: str, *, failed: bool = False) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures(), failed=failed)


ABORTS = {
    "a refusal of the program": (
        "reading the mesh\n\nthese cells have no neighbour: 12 14\nflurble gives up\n" + BOX,
        "these cells have no neighbour: 12 14",
    ),
    "an error of the system": (
        "flurble cannot use its mesh, the device is lost: Text file busy\n" + BOX.replace("rank 0", "rank 3"),
        "a program is written while it runs",
    ),
    "in a quoted log": (
        "> the plasma frequency is not a number in cell 5\n" + "".join(f"> {line}\n" for line in BOX.splitlines()),
        "the plasma frequency is not a number in cell 5",
    ),
    "below another box": (
        NOTICE + "unprocessed word: input\nthe solver gives up\n" + BOX,
        "unprocessed word: input; the solver",
    ),
    "above another box": ("the mesh has no cells\n" + NOTICE + BOX, "the mesh has no cells"),
    "behind ranks": (
        "[1,0]<stdout>:negative density in block 4\n[1,0]<stderr>:" + BOX.splitlines()[1] + "\n",
        "negative density in block 4",
    ),
}


@for_each("name", ABORTS)
def test_the_last_words_of_a_program_say_more_than_the_box_of_its_launcher(name: str) -> None:
    text, words = ABORTS[name]
    known = shown(text).known
    assert known is not None and words in known.cause, known
    assert "MPI ended the others" not in known.cause


@pytest.mark.parametrize(
    "above",
    [
        "step 12 loss: 0.5, no errors\n",
        "written 12 cells to out.h5\n",
        "$ mpirun -np 2 ./flurble --no-cache mesh\n",
        "-----\n",
    ],
    ids=["a training", "no complaint", "a command", "a line"],
)
def test_lines_that_complain_of_nothing_are_no_last_words(above: str) -> None:
    found = shown(above + BOX)
    assert found.verdict == "unknown" and found.findings[0].failure.id == "mpi-aborted"


def test_the_lines_above_are_known_across_blocks() -> None:
    reader = LogReader(known_failures())
    reader.feed(b"the plasma frequency is not a number in cell 5\n")
    reader.feed(BOX.encode())
    known = reader.conclude().known
    assert known is not None and known.failure.id == ID and known.hit.number == 1


def test_no_secret_is_among_the_last_words() -> None:
    reader = LogReader(known_failures(), hide=lambda text: text.replace("geheim", "***"))
    reader.feed(f"the token geheim has no rights\n{BOX}".encode())
    known = reader.conclude().known
    assert known is not None and "`the token *** has no rights`" in known.cause


def test_a_consequence_alone_is_no_cause() -> None:
    found = shown("srun: error: n001: task 3: Exited with exit code 1\n")
    assert found.verdict == "unknown" and found.known is None
    assert found.findings[0].failure.id == "task-failed"


ANNOUNCED = {
    "the end of MPICH's stack": (
        """\
Fatal error in MPI_Init: Other MPI error, error stack:
MPIR_Init_thread(586)..............:
MPID_Init(224).....................: channel initialization failed
flurble_open(99)...................: the flux device is not there
""",
        "it says: `the flux device is not there`",
    ),
    "a cut stack": (
        """\
Fatal error in MPI_Init: Other MPI error, error stack:
MPIR_Init_thread(586)..: the flux device is not there
""",
        "it says: `the flux device is not there`",
    ),
    "a list": (
        "ResolvePackageNotFound:\n  - flurble==1.2\n",
        "it says: `flurble==1.2`",
    ),
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_what_an_error_announces_is_part_of_the_cause(name: str) -> None:
    text, words = ANNOUNCED[name]
    known = shown(text).known
    assert known is not None and words in known.cause, known


REFUSED = {
    "an unknown key": "flurble 3.2\nreading flurble.in\nread_line: unknown key sparse_flux\n",
    "a program that ends itself": "flurble 3.2\nthe mesh has no cells, aborting\n",
    "an unknown name alone": "Unknown environment: tests\n",
    "a package that is not there": "Updating dependencies\nPackage flurble (2.2.0) not found.\n",
    "what must be": "flurble 3.2\nMust have more residues than processors!\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_log_that_ends_with_a_refusal_is_not_healthy(name: str) -> None:
    known = shown(REFUSED[name]).known
    assert known is not None and known.failure.id in (ID, "reported-error") and known.sureness == "guess"


def test_a_training_that_works_may_end_with_a_refusal() -> None:
    text = "step: 1, loss: 0.5\n" * 4 + "read_line: unknown key sparse_flux, using 3\n"
    assert shown(text).verdict == "healthy"


REMARKS = {
    "of Open MPI": "[n1:7] 11 more processes have sent help message help-mpi-btl-openib.txt / unknown type of port\n",
    "of a solver": "Converged after 120 iterations, stopping.\n",
    "of a checker": "Success: no issues found in 12 source files\n",
    "of a search": "flurble: no known vulnerabilities found\n",
    "of a transport": "[n1:24985] Read -1, expected 122880, errno = 1\n",
}


@pytest.mark.parametrize("name", REMARKS)
def test_a_remark_at_the_end_is_no_refusal(name: str) -> None:
    assert shown(REMARKS[name]).verdict == "healthy"
