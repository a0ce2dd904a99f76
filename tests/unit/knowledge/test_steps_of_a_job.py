"""A job of several steps whose script goes on after an error: what follows from the first failure is not named instead of it."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

CP2K = """\
 *   ___                                                                       *
 * [ABORT]                                                                     *
 *  \\___/     The requested basis set <DZVP> for element <O> was not found      *
"""
FIRST = {
    CP2K: "reported-error",
    'Traceback (most recent call last):\n  File "/home/ada/fit.py", line 3, in <module>\n    fit(x)\n'
    "ValueError: the table is empty": "error-in-program",
}
LATER = (
    "cp: cannot stat 'restart.dat': No such file or directory",
    "tail: cannot open 'solver.log' for reading: No such file or directory",
    "job.sh: line 9: ./solver: No such file or directory",
    "slurmstepd: error: execve(): ./solver: No such file or directory",
    "job.sh: line 9: gnuplot: command not found",
    (
        "Traceback (most recent call last):\n  File \"plot.py\", line 2, in <module>\n    open('out.csv')\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'out.csv'"
    ),
)


def _named(log: str) -> str:
    known = explain([f"{log}\n".encode()], known_failures()).known
    return known.failure.id if known else ""


@for_each("later", LATER)
@for_each("first", FIRST)
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


def test_a_rank_that_was_killed_is_named_and_not_the_step_that_slurm_ends_then() -> None:
    log = "srun: error: n1: task 1: Killed\nslurmstepd-n1: error: *** STEP 49.0 ON n1 CANCELLED AT 2026-11-23T22:25:26 ***\n"
    assert (
        _named(f"{log}srun: error: n1: task 0: Terminated\nsrun: Force Terminated StepId=49.0") == "killed-with-others"
    )


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


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("job.sh: line 7: conda: command not found", "conda-command-missing"),
        ('Lmod has detected the following error: The following module(s) are unknown: "pytorch/2.1"', "module-unknown"),
    ],
)
def test_an_environment_that_was_not_loaded_lacks_its_packages(first: str, named: str) -> None:
    for module in ("torch", "tensorflow"):
        log = f'{first}\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import {module}\n'
        assert _named(f"{log}ModuleNotFoundError: No module named '{module}'") == named


def test_what_python_lists_when_it_crashes_is_no_failure() -> None:
    log = "F1123 22:47:05.720931 20808 train.py:4] vocabulary too small\nFatal Python error: Aborted\n\n"
    assert _named(f"{log}Extension modules: numpy.core._multiarray_umath, yaml._yaml (total: 2)") != "numpy-damaged"


def test_a_name_that_a_package_misses_is_not_sought_in_the_program() -> None:
    log = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    import torch\n'
    log += '  File "/env/lib/python3.11/site-packages/torch/__init__.py", line 35, in <module>\n'
    log += "    from typing_extensions import (\n"
    log += "ImportError: cannot import name 'TypeIs' from 'typing_extensions' (/home/ada/pyl/typing_extensions.py)"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "your program" not in known.cause


def test_a_message_like_an_exception_is_harmless_if_the_training_goes_on() -> None:
    log = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'\n" * 5
    assert explain([log.encode()], known_failures()).known is not None
    for epoch in range(2):
        log += f"Epoch {epoch}/2\n57/57 [==============================] - 0s - loss: 2.1\n"
    assert explain([log.encode()], known_failures()).known is None
