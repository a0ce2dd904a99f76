"""Forms of lines that hide an error or look like one: banners, Markdown, clocks of the kernel, counts, repeated warnings."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.lines import is_excused, read_line
from provision.knowledge.failures.words import line_words
from provision.machine.tables import known_failures

START = "reading data/train.h5\nthe grid has 4 parts\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    names = eval(args.names)\n'
ERRORS = {
    "Python without the module to run": (
        "/env/bin/python: Error while finding module specification for 'flux.run' (ModuleNotFou\n",
        "module specification for 'flux.run'",
    ),
    "pytest": (
        ">       ???\nE   OSError: Unable to open file (the flags of the flux don't match)\n\nflux/h5f.pyx:102: OSError\n",
        "the flags of the flux don't match",
    ),
    "a program that says why it aborts": (
        (
            "FATAL ERROR: Unable to access config file flux.conf\n"
            "job.sh: line 9: 21923 Aborted                 (core dumped) flux flux.conf\n"
        ),
        "Unable to access config file flux.conf",
    ),
    "a number that is no measurement": ("ERROR: 3.1 is no version of the flux\n", "3.1 is no version"),
    "an error that repeats a warning": (
        "FATAL:   while extracting a.sif: extraction failed: WARNING: no passwd file\n",
        "while extracting a.sif",
    ),
    "the clock of the kernel": ("[   21.091872] flurble: fatal: the flux is negative\n", "the flux is negative"),
    "Markdown": (
        f"{TRACEBACK}**NameError: name 'flux' is not defined**\n",
        "name 'flux' is not defined",
    ),
    "a package that CMake only reports": (
        " Could NOT find Flurble (missing:  FLURBLE_EXECUTABLE)\nCMake Error at a.txt:9 (message):\n  The flux is not there.\n",
        "The flux is not there",
    ),
    "a prefix of torchrun": (
        "".join(f"    | [rank0]: {line}\n" for line in (*TRACEBACK.splitlines(), "ValueError: the flux is negative")),
        "the flux is negative",
    ),
    "a check of configure": (
        "checking whether the flux is sane... configure: error: the flux is not sane\n",
        "the flux is not sane",
    ),
    "a box of Typer": (
        "╭─ Error ──────────────────────────╮\n│ Invalid value for '--data': path │\n│ '/x' does not exist.             │\n",
        "Invalid value for '--data': path '/x' does not exist.",
    ),
    "an eval": (
        f"{TRACEBACK}  File \"<string>\", line 1, in <module>\nNameError: name 'flux' is not defined\n",
        "a.py",
    ),
}
FINE = {
    "advice": "For OpenMP binding to work as intended, MPI ranks must be bound to exclusive CPU sets.\n",
    "a count": "ARMCI Error: 0\n",
    "a measured error": "MAE Error: 0.125\n",
    "a measured error with a unit": "RMS Error: 0.125 eV per atom\n",
    "a measured error in capitals": "ERROR: 0.0012\n",
    "a measured error in per cent": "Test error: 3.1 %, train error: 2.9 %\n",
    "a note": "Note: Failed to import flurble, plots are written to files\n",
    "a warning in a progress bar": "3%| | 1/9 [00:01<?, ?it/s]/env/a.py:12: UserWarning: the flux is not set\n",
    "a source that Spack has": "curl: (37) Couldn't open file /a.tar.gz\n==> Already fetched /stage/a\n",
    "CUDA that Open MPI does without": (
        "but each of them failed.  CUDA-aware support is disabled.\nlibcuda.so.1: cannot open shared object file\n"
        "/usr/lib64/libcuda.so.1: cannot open shared object file: No such file or directory\n"
        "If you are not interested in CUDA-aware support, then run with\n--mca mpi_cuda_support 0 to suppress this message.\n"
    ),
    "an image that Apptainer unpacks": (
        "fusermount3: mount failed: Operation not permitted\n"
        "WARNING: squashfuse mount failed, falling back to extraction: encountered error while trying to mount image\n"
        "INFO:    Converting SIF file to temporary sandbox...\n"
    ),
    "a report that names a file of errors": "  Exit Status:       0\n  Error Log:         /g/data/ada/flux.e42\n",
    "a banner of stars": "*** Results ***\nno part is missing\n",
}


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([(START + text).encode()], known_failures())


@for_each("name", ERRORS)
def test_the_error_is_quoted(name: str) -> None:
    """And not what is around it."""
    text, says = ERRORS[name]
    known = shown(text).known
    assert known is not None and says in known.cause


@for_each("name", FINE)
def test_these_lines_accuse_no_one(name: str) -> None:
    """They have words of errors."""
    assert shown(FINE[name]).verdict == "healthy"


def test_what_a_program_printed_before_an_installation_that_worked_did_not_end_it() -> None:
    """pip prints conflicts as errors, and installs."""
    text = "ERROR: the flux of a package is not that of another one\nSuccessfully installed flurble-1.0\n"
    assert shown(text).verdict == "healthy"


@pytest.mark.parametrize("end", ["Successfully installed flurble-1.0", "[100%] Built target flux_tests"])
def test_what_ended_a_program_is_seen_although_an_installation_follows(end: str) -> None:
    """Only what pip says of packages is excused by it."""
    known = shown(f"flux: fatal error: the flux of part 3 is negative\n{end}\n").known
    assert known is not None and "the flux of part 3" in known.cause


@pytest.mark.parametrize(
    "end",
    [
        "==> Already fetched /stage/zlib.tar.gz",
        "CMake Warning: Not searching for unused variables given on the command line.",
    ],
)
def test_a_failure_beside_a_line_of_a_build_tool_is_seen(end: str) -> None:
    """A source that is there excuses only what fetched it, and a warning has no text that is not indented."""
    failure = "OSError: [Errno 28] No space left on device"
    for text in (f"{failure}\n{end}\n", f"{end}\n{failure}\n"):
        known = shown(text).known
        assert known is not None and known.failure.id == "disk-full", text


def test_what_cmake_does_not_find_is_named_if_its_error_only_points_there() -> None:
    """The error says that a package is missing, and not which."""
    text = """\
-- Could NOT find MPI_C (missing: MPI_C_LIB_NAMES MPI_C_HEADER_DIR)
CMake Error at CMakeLists.txt:35 (message):
  A needed package is missing, see above.


-- Configuring incomplete, errors occurred!
"""
    known = shown(text).known
    assert known is not None and known.failure.id == "mpi-not-found"


def test_a_complaint_far_above_the_end_is_not_the_cause() -> None:
    """The program did without it for many lines."""
    steps = "".join(f"the part {number} is done\n" for number in range(60))
    text = "Could not find a cached mesh, so it is computed\n"
    assert shown(f"{text}{steps}Job state: FAILED\n").verdict == "unknown"
    assert shown(f"{steps}{text}Job state: FAILED\n").verdict == "known"


def test_a_notice_is_shown_although_a_line_says_to_ignore_it() -> None:
    """TensorFlow says so of each library of CUDA, whether the program should use a GPU or not."""
    text = """\
W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcudart.so.11.0'
I tensorflow/stream_executor/cuda/cudart_stub.cc:29] Ignore above cudart dlerror if you do not have a GPU set up on your machine.
"""
    explanation = shown(text)
    assert explanation.verdict == "healthy"
    assert [note.failure.unless for note in explanation.findings] == ["the program should use a GPU"]


@pytest.mark.parametrize("clock", ["", "00:00:51.436  ", "[1,0]<stderr>:"])
def test_an_empty_line_behind_a_clock_or_a_rank_ends_a_message(clock: str) -> None:
    """Otherwise the advice of Lmod, which names an option `--ignore-cache`, is part of its error and excuses it."""
    lines = (
        "Lmod has detected the following error: The following module(s) are unknown:",
        '"flux/7.2.0"',
        "",
        'Please check the spelling or version number. Also try "module spider ..."',
        "It is also possible your cache file is out-of-date; it may help to try:",
        '  $ module --ignore-cache load "flux/7.2.0"',
        "",
    )
    known = shown("".join(f"{clock}{line}\n" for line in lines)).known
    assert known is not None and known.failure.id == "module-unknown"


def test_the_exit_code_of_a_rank_that_was_ended_with_others_is_not_the_cause() -> None:
    """Hydra prints that of any rank, and the text of the first signal."""
    text = """\
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   EXIT CODE: 9
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
"""
    known = shown(text).known
    assert known is not None and known.failure.id == "segmentation-fault"


@pytest.mark.parametrize("before", ["00:00:51.436  ", "2024-08-12 15:19:29 ", "[1,0]<stderr>:", "  3: "])
def test_a_line_that_is_only_a_clock_or_a_rank_is_empty(before: str) -> None:
    """It separates messages."""
    assert not read_line(1, before).text.strip()


def test_an_option_to_ignore_something_excuses_no_line() -> None:
    """Words that say it do."""
    for text, excused in (("module --ignore-cache load flux", False), ("the flux is ignored", True)):
        assert is_excused(text, line_words(text)) is excused
