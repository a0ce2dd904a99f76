"""A job of several steps whose script goes on after an error: what follows from the first failure is not named instead of it."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

CP2K = """\
 *   ___                                                                       *
 * [ABORT]                                                                     *
 *  \\___/     The requested basis set <DZVP> for element <O> was not found      *
"""
FIRST = {
    CP2K: "reported-error",
    "ERROR: Lost atoms: original 2048 current 100 (src/thermo.cpp:439)": "application-reports",
    "solver: grid.c:7: main: Assertion `n > 0' failed.": "assertion-failed",
    'Traceback (most recent call last):\n  File "/home/ada/fit.py", line 3, in <module>\n    fit(x)\n'
    "ValueError: the table is empty": "error-in-program",
    "main.f90:(.text+0x1c): undefined reference to `dgesv_'": "undefined-reference",
}
LATER = (
    "cp: cannot stat 'restart.dat': No such file or directory",
    "tail: cannot open 'solver.log' for reading: No such file or directory",
    "job.sh: line 9: ./solver: No such file or directory",
    "slurmstepd: error: execve(): ./solver: No such file or directory",
    "job.sh: line 9: gnuplot: command not found",
    ("Traceback (most recent call last):\n  File \"plot.py\", line 2, in <module>\n    open('out.csv')\n"
    "FileNotFoundError: [Errno 2] No such file or directory: 'out.csv'"),
)


def _named(log: str) -> str:
    known = explain([f"{log}\n".encode()], known_failures()).known
    return known.failure.id if known else ""


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("first", FIRST)
def test_what_a_later_step_does_not_find_follows_from_the_first_error(first: str, later: str) -> None:
    assert _named(f"{first}\nstep 2\n{later}") == FIRST[first]
    assert _named(later) != FIRST[first]


def test_a_missing_absolute_path_is_a_cause_of_its_own() -> None:
    log = "ERROR: no key in the settings\ncp: cannot stat '/data/restart.dat': No such file or directory"
    assert _named(log) == "file-not-found"


def test_a_run_that_misses_the_restart_of_the_first_one_follows_from_that() -> None:
    banner = "FLUX solver, release 7\nusing 1 thread for each task\nreading the input\n"
    first = f"{banner}ERROR: Lost atoms: original 2048 current 100\n"
    second = f"{banner}ERROR on proc 0: Cannot open restart file eq.rst: No such file or directory\n"
    known = explain([f"{first}{second}".encode()], known_failures()).known
    assert known is not None and "Lost atoms" in known.hit.text


def test_the_end_of_a_log_in_the_code_that_raises_names_the_message() -> None:
    log = 'Traceback (most recent call last):\n  File "/home/ada/run.py", line 3, in main\n'
    log += "    raise Exception('only names: %s' % x)"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "only names" in known.cause


def test_gfortran_names_where_a_program_crashed_if_the_line_of_the_signal_is_cut_off() -> None:
    log = "Backtrace for this error:\n#0  0x7f5a4e54451f in ???\n#1  0x7f5a4e5a73fe in __GI___libc_free\n"
    log += "        at ./malloc.c:33\n"
    log += "#2  0x8f6bbf in __module_dm_MOD_split\n        at /home/ada/dm.f90:57\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == "fortran-backtrace" and "module_dm::split" in known.cause


def test_a_consequence_in_a_traceback_is_no_error_of_the_program() -> None:
    log = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    loss.backward()\n'
    explanation = explain([f"{log}RuntimeError: NCCL communicator was aborted.\n".encode()], known_failures())
    assert explanation.verdict == "unknown"
