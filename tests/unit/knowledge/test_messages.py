"""Logs of several lines: what one line says of another, and what a later line makes good."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([f"{text}\n".encode()], known_failures())


LOST = "[n1:13] [[27891,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file orte/util/show_help.c at line 501"


NO_FOLDER = "slurmstepd: error: couldn't chdir to `/home/ada/run': No such file or directory: going to /tmp instead"


POTENTIAL = "ERROR on proc 0: cannot open eam potential file Cu.eam: No such file or directory (src/potential_file_reader.cpp:59)"


def test_a_help_text_that_mpirun_lost_does_not_hide_the_error_of_the_program() -> None:
    known = explain([f"{POTENTIAL}\n{LOST}\n".encode()], known_failures()).known
    assert known is not None and "Cu.eam" in known.cause


def test_memory_that_tensorflow_asked_for_in_vain_is_harmless_if_the_training_goes_on() -> None:
    line = "E tensorflow/stream_executor/cuda/cuda_driver.cc:936] failed to allocate 7.92G (8500084736 bytes) from device: "
    line += "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    log = f"{line}\n" + "".join(f"step {n} loss: 0.{n}\n" for n in range(9))
    assert explain([log.encode()], known_failures()).verdict == "healthy"


def test_a_package_that_the_build_cache_of_spack_does_not_have_is_built() -> None:
    log = """\
==> Fetching https://mirror.example.org/build_cache/linux-flux-1.0-abc.spec.yaml
curl: (22) The requested URL returned error: 404 Not Found
==> Failed to fetch file from URL: https://mirror.example.org/build_cache/linux-flux-1.0-abc.spec.yaml
    URL https://mirror.example.org/build_cache/linux-flux-1.0-abc.spec.yaml was not found!
==> Fetching from https://mirror.example.org/build_cache failed.
==> Using cached archive: /spack/var/cache/flux-1.0.tar.gz
==> Executing phase: 'install'
"""
    assert explain([log.encode()], known_failures()).verdict == "healthy"


def test_what_a_recipe_of_make_does_without_is_no_failure() -> None:
    log = "rm a.o\nrm: cannot remove 'a.o': No such file or directory\nmake: [Makefile:4: clean] Error 1 (ignored)\ncc -o a a.c\n"
    assert explain([log.encode()], known_failures()).verdict == "healthy"


def test_a_compiler_that_a_variable_names_is_missing_also_if_cmake_says_more() -> None:
    log = (
        "CMake Error at /x/CMakeDetermine.cmake:49 (message):\n  Could not find compiler set in environment variable CC:\n\n"
        "  icx.\n\nCMake Error: CMAKE_C_COMPILER not set, after EnableLanguage\n"
    )
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == "compiler-missing"


def test_a_compiler_that_cmake_could_not_use_gives_way_to_the_reason() -> None:
    log = (
        "CMake Error at CMakeLists.txt:2 (project):\n  Running\n\n   '/opt/ninja' '--version'\n\n  failed with:\n\n"
        "   No such file or directory\n\n\nCMake Error: CMAKE_C_COMPILER not set, after EnableLanguage\n"
    )
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id != "compiler-missing"


def test_a_traceback_of_which_each_line_names_the_process_is_read() -> None:
    lines = (
        "Traceback (most recent call last):",
        '  File "/code/rebin.py", line 491, in rebin',
        "    x = 1 / 0",
        "ZeroDivisionError: 0",
    )
    log = "--- Process 114 raised an exception ---\n" + "".join(f"Proc 114: {line}\n" for line in lines)
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "ZeroDivisionError" in known.cause and "rebin.py" in known.cause


@pytest.mark.parametrize(("path", "named"), [("in.dat", "working-folder-missing"), ("/data/in.dat", "file-not-found")])
def test_a_job_that_runs_in_another_folder_finds_no_relative_path(path: str, named: str) -> None:
    known = explain([f"{NO_FOLDER}\ncat: {path}: No such file or directory\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == named
    assert explain([f"{NO_FOLDER}\nreading in.dat\n".encode()], known_failures()).known is None


@pytest.mark.parametrize("line", ["KeyboardInterrupt", "program received signal SIGINT"])
def test_an_interrupted_program_is_not_called_terminated(line: str) -> None:
    explanation = explain([f"{line}\n".encode()], known_failures())
    assert explanation.verdict == "unknown" and explanation.findings[0].failure.id == "interrupted"


BORDER = "-" * 74


NO_LIBRARY = (
    "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library '{0}'; dlerror: {0}: x"
)


JOINING = "nitializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4"


def test_an_internal_error_of_open_mpi_is_quoted_with_the_lines_below_it() -> None:
    text = f"{BORDER}\nAn internal error has occurred in ORTE:\n\n[[5,0],0] FORCE-TERMINATE AT Not found:-13\n{BORDER}"
    known = shown(text).known
    assert known is not None and "FORCE-TERMINATE AT Not found:-13" in known.cause and "it says" not in known.cause


def test_the_library_of_the_driver_is_not_one_of_cuda() -> None:
    for library, notice in (("libcuda.so.1", "no-cuda-device"), ("libcudnn.so.8", "gpu-library-missing")):
        explanation = shown(NO_LIBRARY.format(library))
        assert explanation.verdict == "healthy" and [found.failure.id for found in explanation.findings] == [notice]


@pytest.mark.parametrize("first", "Ii")
def test_ranks_that_have_not_joined_are_named_if_nothing_follows(first: str) -> None:
    """A job that has just begun looks the same, so it is no failure."""
    waiting = explain([f"{first}{JOINING}\n".encode()], known_failures())
    assert waiting.verdict == "healthy"
    assert [note.failure.id for note in waiting.findings] == ["ddp-waits"]
    assert explain([f"{first}{JOINING}\nEpoch 0: step 1\n".encode()], known_failures()).findings == ()


PIP = (
    "ERROR: Could not find a version that satisfies the requirement {0} (from versions: {1})\n"
    "ERROR: No matching distribution found for {0}\n"
)


CLONE = (
    "Cloning into 'solve'...\nssh: connect to host n1 port 22: Connection refused\n"
    "fatal: Could not read from remote repository.\n"
)


SETUP = (
    "Traceback (most recent call last):\n"
    '  File "/tmp/pip-build-env-ab/overlay/lib/python3.11/site-packages/setuptools/build_meta.py", line 317, in run_setup\n'
    "    exec(code, locals())\n"
    '  File "<string>", line 36, in <module>\n'
    "{0}\n      [end of output]\nERROR: Failed to build 'flux' when getting requirements to build wheel\n"
)


STACK = "  #{0:03d}: H5F{0}.c line 17 in H5F_call{0}(): {1}\n    major: File accessibility\n    minor: Unable to open file\n"


QUOTED = {
    # A log, and words of the cause that is named.
    SETUP.format("ValueError: did not find HDF5 headers") + "ModuleNotFoundError: No module named 'flux'\n": (
        "stopped at its line 36, and says: `ValueError: did not find HDF5 headers`"
    ),
    "      /bin/sh: 1: pkg-config: not found\n      Command 'pkg-config --exists a' returned non-zero exit status 127.\n"
    + "x\n" * 20
    + SETUP.format("Exception: Can not find valid pkg-config name."): "Can not find valid pkg-config name",
    "Usage:\n  pip install [options] ...\n\n--no-use-pep517 error: It is not possible to use --no-use-pep517\n"
    "job.sh: line 5: flux: command not found\n": "It is not possible to use --no-use-pep517",
    "Proc 0: *** Parallel ERROR ***\n    VRFY (new and old nkeys equal) failed at line  104 in t_ph5basic.c\n"
    "aborting MPI processes\n": "new and old nkeys equal",
    STACK.format(0, "file create failed")
    + STACK.format(1, "open failed")
    + STACK.format(2, "can't connect to server"): ("can't connect to server"),
    "Runtime Error: /s/wrap.f90, line 10: Invalid procedure reference\n": "Invalid procedure reference",
    "error in src/paw_build.sh: file /opt/include/xc.mod in INCLUDES does not exist\nINCLUDES=/opt/a\n": (
        "file /opt/include/xc.mod in INCLUDES does not exist"
    ),
    "error: Failed to install: flux-1.0-py3-none-any.whl (flux==1.0)\n  Caused by: Failed to clone `/a` to `/b`\n"
    "  Caused by: Resource temporarily unavailable (os error 11)\n": "Resource temporarily unavailable (os error 11)",
    "CreateCondaEnvironmentException:\nYour conda installation is not configured to use strict channel priorities.\n": (
        "is not configured to use strict channel priorities"
    ),
    '"/s/mini.cpp", line 7: catastrophic error: the file is\n          too strange\n': "the file is too strange",
}


MADE_GOOD = (
    PIP.format("six==1.16.0", "none") + "Successfully installed idna-3.4 six-1.16.0\nready\n",
    CLONE + "\nPlease make sure you have the correct access rights\nCloning into 'solve'...\ndone.\nresidual 1e-9\n",
)


@for_each("log", QUOTED)
def test_the_words_of_an_installer_or_compiler_are_quoted(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and QUOTED[log] in known.cause


@pytest.mark.parametrize("log", MADE_GOOD)
def test_an_attempt_that_a_later_one_makes_good_is_no_failure(log: str) -> None:
    assert explain([log.encode()], known_failures()).verdict == "healthy"


def test_a_rank_that_could_only_not_report_its_end_is_no_cause() -> None:
    log = (
        "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
        "[unset]: write_line error; fd=-1 buf=:cmd=abort exitcode=1\n:\nsystem msg for write_line failure : Bad file descriptor\n"
    )
    assert explain([log.encode()], known_failures()).verdict == "unknown"


def test_the_words_of_a_program_come_before_the_ranks_that_ran_on() -> None:
    log = "the flux is too large, cannot continue with this step\nsrun: First task exited 60s ago\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "the flux is too large" in known.cause


def test_a_login_that_is_refused_counts_if_none_was_accepted_after_it() -> None:
    accepted = "Accepted publickey for ada from 127.0.0.1 port 46950 ssh2: ED25519 SHA256:1JU8Yyd2\n"
    known = explain([f"{accepted}ada@n2: Permission denied (publickey,password).\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == "ssh-login"


TRACE = 'Traceback (most recent call last):\n  File "/home/ada/venv/lib/python3.11/site-packages/'


HOOK = f"""\
Error in sys.excepthook:
{TRACE}apport_python_hook.py", line 63, in apport_excepthook
    from apport.fileutils import likely_packaged
ModuleNotFoundError: No module named 'apt_pkg'

Original exception was:
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    train(3)
  File "train.py", line 2, in train
    raise ValueError("flux 3 is inverted")
ValueError: flux 3 is inverted
"""


def test_what_fails_while_python_shows_an_exception_is_not_the_cause() -> None:
    known = explain([HOOK.encode()], known_failures()).known
    assert known is not None and "flux 3 is inverted" in known.cause
