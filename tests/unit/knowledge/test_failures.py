"""Known failures: real outputs of uv 0.13, pip 23, gcc 12, MPICH and Slurm, and each entry of the catalogue in logs around it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from parts.loops import for_each
from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure, read_alternatives
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.words import from_word, line_words, split_alternatives, sure_words
from provision.machine.build.executor import COMPILER_ERROR
from provision.machine.tables import known_failures

UV_HASH = """\
Using Python 3.11.7 environment at: v
Resolved 1 package in 69ms
error: Failed to download `six==1.17.0`
  cause: Hash mismatch for `six==1.17.0`

         Expected:
           sha256:0000000000000000000000000000000000000000000000000000000000000001

         Computed:
           sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
"""
PIP_HASH = """\
Looking in indexes: https://pypi.org/simple
Processing /site/cache/six-1.17.0-py2.py3-none-any.whl (from -r bad.txt (line 1))
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, \
please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    six==1.17.0 from file:///site/cache/six-1.17.0-py2.py3-none-any.whl (from -r bad.txt (line 1)):
        Expected sha256 0000000000000000000000000000000000000000000000000000000000000001
             Got        4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274

"""
UV_REFUSED = """\
Using Python 3.11.7 environment at: v
error: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: error sending request for url (http://127.0.0.1:9/simple/six/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
UV_NO_NAME = """\
Using Python 3.11.7 environment at: v
error: Failed to fetch: https://no-such-host.invalid/simple/six/
  cause: error sending request for url (https://no-such-host.invalid/simple/six/)
  cause: client error (Connect)
  cause: dns error
  cause: error resolving DNS
  cause: failed to lookup address information: Name or service not known
"""
PIP_REFUSED = """\
Looking in indexes: http://127.0.0.1:9/simple
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError('<pip._vendor.urllib3.connection.HTTPConnection object at 0x7f9b54c35b90>: Failed to establish a \
new connection: [Errno 111] Connection refused')': /simple/six/
ERROR: Could not find a version that satisfies the requirement six (from versions: none)
ERROR: No matching distribution found for six
"""
UV_LOGIN = (
    "hint: An index URL (http://mirror/simple) could not be queried due to a lack of valid authentication credentials "
    "(401 Unauthorized)"
)
UV_FORBIDDEN = (
    "hint: An index (http://mirror/simple) returned a 403 Forbidden error. Check that the index URL is correct and the "
    "credentials are valid."
)
UV_NO_VERSION = """\
Using Python 3.11.7 environment at: v
error: No solution found when resolving dependencies
  cause: Because there is no version of six==99 and you require six==99, we can conclude that your requirements are \
unsatisfiable.
"""
PIP_NO_VERSION = """\
Looking in indexes: https://pypi.org/simple
ERROR: Could not find a version that satisfies the requirement six==99 (from versions: 1.16.0, 1.17.0)
ERROR: No matching distribution found for six==99
"""
UV_DISK = """\
Resolved 1 package in 199ms
warning: Failed to hardlink files; falling back to full copy. This may lead to degraded performance.
error: Failed to install: numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (numpy==2.4.6)
  cause: Failed to copy to `t/numpy.libs/libscipy_openblas64_-32a4b2a6.so`
  cause: failed to copy file from /site/cache/a.so to t/numpy.libs/.tmpdRUzyT: No space left on device (os error 28)
"""
PIP_DISK = """\
Installing collected packages: numpy
ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device
"""
PIP_GCC = """\
Building wheels for collected packages: bad
  Running command python setup.py bdist_wheel
  building 'bad' extension
  gcc -Wsign-compare -DNDEBUG -O3 -Wall -fPIC -c bad.cc -o build/temp.linux-x86_64-cpython-311/bad.o
  bad.cc: In function 'int main()':
  bad.cc:2:21: error: 'nothing' was not declared in this scope
      2 | int main() { return nothing; }
        |                     ^~~~~~~
  error: command '/usr/bin/gcc' failed with exit code 1
  error: subprocess-exited-with-error

  × python setup.py bdist_wheel did not run successfully.
  │ exit code: 1
  ╰─> See above for output.

  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for bad
  Running setup.py clean for bad
Failed to build bad
ERROR: Failed to build one or more wheels
"""
# After a failed setup.py, pip 23 prints the program with which it ran it.
PIP_PROGRAM = """\
  bad.cc:2:21: error: 'nothing' was not declared in this scope
  error: subprocess-exited-with-error
  full command: /site/bin/python3.11 -u -c '
  # This is <pip-setuptools-caller> -- a caller that pip uses to run setup.py
  # - It provides a clear error message when setuptools is not installed.
  try:
      import setuptools
  except ImportError as error:
      print(
          "ERROR: Can not execute `setup.py` since setuptools is not available in "
"""
GCC_NO_MPI = "  op.cc:1:10: fatal error: mpi.h: No such file or directory\n  compilation terminated.\n"
GCC_KILLED = "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"
CMAKE_TENSORFLOW = "CMake Error: Could NOT find Tensorflow (missing: Tensorflow_LIBRARIES)\n"
LOADER = "python: error while loading shared libraries: libmpi.so.12: cannot open shared object file: No such file\n"
GLIBCXX = "ImportError: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by mpi_lib.so)\n"
SRUN = "srun: error: Couldn't find the specified plugin name for mpi/pmi9 looking at all files\n"
# Debian's Slurm, whose daemons have the name of the node in their own.
SRUN_TASKS = "srun: error: Unable to create step for job 3: More processors requested than permitted\n"
CANCELLED = "slurmstepd-c1: error: *** JOB 5 ON c1 CANCELLED AT 2026-11-22T18:25:09 ***\n"
ILLEGAL = "/site/run.sh: line 3: 4711 Illegal instruction     (core dumped) python -c 'import tensorflow'\n"
HYDRA = "[mpiexec@n1] HYDU_sock_get_iface_ip (lib/utils/sock.c:1): gethostbyname failed, n1 (errno 1)\n"
QUOTA = "error: Failed to copy\n  cause: Disk quota exceeded (os error 122)\n"

# TensorFlow 2.15 and 2.21, libgomp 12 and Python 3.11, each with pools of 400 threads in too little address space.
THREADS = {
    "tensorflow 2.15": "2026-11-21 18:23:47.074281: F external/local_tsl/tsl/platform/default/env.cc:74] Check failed: ret == 0 "
    "(11 vs. 0)Thread tf_numa_-1_Eigen creation via pthread_create() failed.\n",
    "tensorflow 2.21": "F0000 00:00:1795285483.813069    6792 env.cc:84] Check failed: ret == 0 (11 vs. 0) Thread "
    "tf_numa_-1_Eigen creation via pthread_create() failed.\n",
    "libgomp": "\nlibgomp: Thread creation failed: Resource temporarily unavailable\n",
    "python": "    _start_new_thread(self._bootstrap, ())\nRuntimeError: can't start new thread\n",
}

SRUN_OPENMPI = """\
[n1:08366] OPAL ERROR: Unreachable in file ext3x_client.c at line 112
--------------------------------------------------------------------------
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute. There are several options for building PMI support under
"""
HOROVODRUN = """\
error: `horovodrun` is switched off in this environment
  why: Horovod's runner opens servers on all addresses of a node, and anyone who reaches one can run code as you
    (CVE-2024-10190, CVE-2026-31234)
  also switched off: elastic training on changing hosts, `horovod.spark`, `horovod.ray`, Horovod's tf.data service

hint: start the ranks with the launcher of your site: `srun -n 4 python train.py` or `mpiexec -n 4 python train.py`;
  `provision job horovod --help` shows how to write a job script that does this
"""
HOROVOD_RUN = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/site/lib/python3.11/site-packages/horovod/runner/__init__.py", line 247, in run
    return _run(hargs)
           ^^^^^^^^^^^
  File "/site/lib/python3.11/site-packages/horovod/runner/launch.py", line 809, in _run
    refusal.refuse('horovod.run', args.num_proc)
  File "/site/lib/python3.11/site-packages/horovod/runner/refusal.py", line 31, in refuse
    raise RunnerRefused(describe(what, num_proc))
horovod.runner.refusal.RunnerRefused: `horovod.run` is switched off in this environment
  why: Horovod's runner opens servers on all addresses of a node, and anyone who reaches one can run code as you
    (CVE-2024-10190, CVE-2026-31234)
"""
EXPLAINED = {
    **{name: (text, "too-many-threads") for name, text in THREADS.items()},
    "uv hash": (UV_HASH, "hash-mismatch"),
    "pip hash": (PIP_HASH, "hash-mismatch"),
    "uv refused": (UV_REFUSED, "index-unreachable"),
    "uv name": (UV_NO_NAME, "index-unreachable"),
    "pip refused": (PIP_REFUSED, "index-unreachable"),
    "uv version": (UV_NO_VERSION, "not-on-index"),
    "uv forbidden": (f"{UV_NO_VERSION}\n\n{UV_FORBIDDEN}", "index-answer"),
    "uv login": (f"{UV_NO_VERSION}\n\n{UV_LOGIN}", "index-answer"),
    "pip version": (PIP_NO_VERSION, "not-on-index-python"),
    "uv disk": (UV_DISK, "disk-full"),
    "pip disk": (PIP_DISK, "disk-full"),
    "quota": (QUOTA, "quota"),
    "no mpi.h": (GCC_NO_MPI, "mpi-not-found"),
    "gcc killed": (GCC_KILLED, "compiler-out-of-memory"),
    "cmake": (CMAKE_TENSORFLOW, "tensorflow-not-found"),
    "loader": (LOADER, "mpi-library-missing"),
    "glibcxx": (GLIBCXX, "glibcxx"),
    "srun": (SRUN, "srun-mpi"),
    "srun, too many tasks": (SRUN_TASKS, "step-cannot-start"),
    "cancelled": (CANCELLED, "job-cancelled"),
    "srun-openmpi": (SRUN_OPENMPI, "srun-openmpi"),
    "illegal": (ILLEGAL, "illegal-instruction"),
    "hydra": (HYDRA, "hydra-host"),
    "horovodrun": (HOROVODRUN, "horovods-runner"),
    "horovod.run": (HOROVOD_RUN, "horovods-runner"),
}


# Outputs that were once explained wrongly

HYDRA_RANKS = """\
[proxy:0:1@n2] HYDU_sock_connect (lib/utils/sock.c:145): unable to connect from "n2" to "n1" (Connection refused)
[proxy:0:1@n2] main (proxy/pmip.c:105): unable to connect to server n1 at port 37717
"""
RANK_RESET = """\
Fatal error in PMPI_Allreduce: Other MPI error, error stack:
MPIDI_CH3I_Progress: [ch3:sock] failed to connnect to remote process (Connection reset by peer)
"""
SLURM_OOM = """\
slurmstepd: error: Detected 1 oom_kill event in StepId=42.0. Some of the step tasks have been OOM Killed.
"""


def shown(text: str, *, failed: bool = False) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures(), failed=failed)


def named(text: str) -> str | None:
    """The ID of the failure that a log shows."""
    known = shown(text).known
    return known.failure.id if known else None


@for_each("name", EXPLAINED)
def test_a_known_failure_is_explained(name: str) -> None:
    text, expected = EXPLAINED[name]
    assert named(text) == expected


@pytest.mark.parametrize("text", ["", "all is well\n", "checking whether errors are found... yes\n"])
def test_a_log_without_a_failure_is_healthy(text: str) -> None:
    assert shown(text).verdict == "healthy"


def test_the_compilers_error_comes_first_in_the_output_of_pip() -> None:
    lines = [line for _, line in shown(PIP_GCC).lines]
    assert lines[0] == "bad.cc:2:21: error: 'nothing' was not declared in this scope"
    assert not any("subprocess" in line or "note:" in line or "Failed building" in line for line in lines)


def test_a_wrong_hash_is_shown_with_its_package() -> None:
    assert any("six==1.17.0" in line for _, line in shown(UV_HASH).lines)
    assert shown(PIP_HASH).lines[0][1].startswith("ERROR: THESE PACKAGES DO NOT MATCH")


@pytest.mark.parametrize("name", THREADS)
def test_the_error_line_about_too_many_threads_is_shown(name: str) -> None:
    assert "thread" in shown(THREADS[name]).lines[0][1].lower()


def test_a_busy_socket_is_not_explained_as_too_many_threads() -> None:
    assert named("recv failed: Resource temporarily unavailable\n") is None


@pytest.mark.parametrize("text", [HYDRA_RANKS, RANK_RESET])
def test_unreachable_ranks_are_not_explained_as_an_unreachable_index(text: str) -> None:
    assert named(text) != "index-unreachable"


def test_slurms_message_about_memory_is_explained() -> None:
    assert named(SLURM_OOM) == "out-of-memory"


def test_another_signal_is_not_an_illegal_instruction() -> None:
    assert named("srun: error: n1: task 0: ended by signal 42\n") != "illegal-instruction"


def test_the_program_that_pip_prints_is_not_shown_as_an_error() -> None:
    assert [line for _, line in shown(PIP_PROGRAM).lines] == [
        "bad.cc:2:21: error: 'nothing' was not declared in this scope"
    ]


# Each entry of the catalogue, in logs around its message

BEFORE = """\
Loading gcc/12.2.0
  Loading requirement: zlib/1.2.13 binutils/2.40
2026-11-21 10:00:01.104512: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is \
optimized to use available CPU \
instructions in performance-critical operations.
Dataset: 60000 images, 1875 steps in an epoch
Epoch 1/12
 312/1875 [===>..........................] - ETA: 41s - loss: 0.4211 - accuracy: 0.8712
"""
# What TensorFlow prints on nodes without GPUs, and Open MPI without InfiniBand.
SCARY = """\
2026-11-21 10:00:00.001: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic \
library 'libcudart.so.11.0'; \
dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
2026-11-21 10:00:00.002: I tensorflow/stream_executor/cuda/cudart_stub.cc:29] Ignore above cudart dlerror if you \
do not have a GPU set up on \
your machine.
2026-11-21 10:00:00.003: E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call to cuInit: \
CUDA_ERROR_NO_DEVICE: no CUDA-capable \
device is detected
2026-11-21 10:00:00.004: I tensorflow/core/util/port.cc:113] oneDNN custom operations are on. You may see slightly \
different numerical \
results due to floating-point round-off errors from different computation orders. To turn them off, set the \
environment variable \
`TF_ENABLE_ONEDNN_OPTS=0`.
WARNING: There was an error initializing an OpenFabrics device.

  Local host:   n001
  Local device: mlx5_0
"""
ABORTED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[51913,1],3]
  Exit code:    1
--------------------------------------------------------------------------
"""


def ranked(text: str, rank: int = 3) -> str:
    """The lines as `mpirun --tag-output` prints them."""
    return "".join(f"[1,{rank}]<stderr>:{line}\n" for line in text.splitlines())


def coloured(text: str) -> str:
    """The lines with the time and in red."""
    return "".join(
        f"\x1b[31m2026-11-21T10:02:{number:02}.120Z {line}\x1b[0m\n" for number, line in enumerate(text.splitlines())
    )


SURROUNDINGS = {
    "after harmless lines, coloured": lambda message: coloured(SCARY + BEFORE + message),
    "of one rank": lambda message: ranked(BEFORE) + ranked(message) + ABORTED,
    "twice and before noise": lambda message: (
        message + ranked(BEFORE, 1) + message + "make: *** [Makefile:12: all] Error 2\n"
    ),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
@for_each("failure", known_failures().failures, ids=lambda failure: failure.id)
def test_every_known_failure_is_found_in_logs_around_its_message(failure: KnownFailure, name: str) -> None:
    # A notice counts only if no failure is in the log, and what waits only if the log ends with it.
    fitting = list(SURROUNDINGS)[: 1 if failure.waits or failure.weight == WEIGHTS["notice"] else 3]
    # In turn, as the search of a log takes milliseconds; `make fuzz` takes all.
    if name not in fitting or ("FUZZ" not in os.environ and name != fitting[len(failure.message) % len(fitting)]):
        return
    explanation = shown(SURROUNDINGS[name](failure.message.rstrip("\n") + "\n"))
    if failure.weight == WEIGHTS["notice"]:
        assert explanation.verdict == "healthy"
        assert failure.id in {note.failure.id for note in explanation.findings}
        return
    # What only follows from a failure is not its cause.
    assert explanation.verdict == ("unknown" if failure.weight == WEIGHTS["consequence"] else "known")
    found = explanation.findings[0]
    assert found.failure.id == failure.id, found
    assert "…" not in found.cause.replace("=…", ""), "each name of the cause is in the message"


def test_no_pattern_is_in_two_entries() -> None:
    patterns = [pattern for failure in known_failures().failures for pattern in failure.match]
    assert len(patterns) == len(set(patterns)), [pattern for pattern in patterns if patterns.count(pattern) > 1]


@for_each("failure", known_failures().failures, ids=lambda failure: failure.id)
def test_every_known_failure_has_a_pattern_a_cause_and_a_hint(failure: KnownFailure) -> None:
    assert failure.cause.split()[0] not in ("The", "A", "An", "It", "You", "There")
    assert not failure.cause.endswith(".") and not failure.hint.endswith(".")
    assert failure.hint
    assert failure.source
    for alternative in read_alternatives(failure):
        assert re.search(alternative.pattern, "") is None, "it would explain every log"


# The speed of patterns


@for_each("seed", ["=", "==a", "a.", "a:1:1: ", " ", "\n", "_"])
def test_the_pattern_of_compiler_errors_takes_linear_time(seed: str) -> None:
    began = time.process_time()
    COMPILER_ERROR.search((seed * 200_000)[:200_000])
    assert time.process_time() - began < 1


@for_each(
    ("pattern", "words"),
    [
        ("disk quota exceeded", [{"disk", "quota"}]),
        (".disk quota", [{"quota*"}]),
        ("abc|one two three", [set(), {"one", "two"}]),
        (r"a\.bcd\d+ efghi ", [{"bcd", "efghi"}]),
        ("x (and|or) yes ", [{"yes"}]),
        ("x and? or yes ", [{"yes"}]),
        (r"version (?P<v>GLIBC_[0-9.]+)' not found", [{"version", "not"}]),
        (r"^one .*\btwo$", [{"one", "two"}]),
        ("^one.*two$", [set()]),
        (r"QOSMax\w+", [{"qosma*"}]),
    ],
)
def test_the_sure_words_of_a_pattern_are_found(pattern: str, words: list[set[str]]) -> None:
    assert [set(sure_words(text)) for text in split_alternatives(pattern)] == words


@for_each("failure", known_failures().failures, ids=lambda failure: failure.id)
def test_a_line_that_a_pattern_matches_has_the_words_of_the_pattern(failure: KnownFailure) -> None:
    matched = 0
    for line in failure.message.splitlines():
        for alternative in read_alternatives(failure):
            if alternative.search(line):
                matched += 1
                assert alternative.words <= line_words(line)
    assert matched


def test_an_alternative_without_a_whole_word_is_refused() -> None:
    failure = KnownFailure(id="x", message="m", match=("No such", "abc"), cause="c", hint="h", source="s")
    with pytest.raises(ValueError, match=r"`No such` in the patterns of `x` has no whole word"):
        read_alternatives(failure)


# Which check of the node sees a failure before anything is built; the tests of the checks make each of them.
SEEN_BY = {
    "libcuda-stub": "modules-stubs",
    "too-many-open-files": "limit-open-files",
    "no-file-locks": "root-locks",
    "bus-error": "limit-shared-memory",
    "nccl-shared-memory": "limit-shared-memory",
    "nccl-infiniband": "limit-locked-memory",
    "socket-path-too-long": "tmp-length",
    "locked-memory-of-adapter": "limit-locked-memory",
    "static-link": "modules-static",
    "conda-headers-mpi": "shell-conda",
    "old-linker-of-conda": "shell-conda",
    "unicode-locale": "shell-locale",
    "cpu-without-avx": "wheel-avx",
    "modules-no-temporary-file": "tmp-writable",
    "tensorflow-without-attributes": "home-packages",
    "quota": "quota",
    "certificate": "shell-certificates",
}


@for_each("name", SEEN_BY)
def test_a_failure_that_a_check_of_the_node_sees_says_so(name: str) -> None:
    (failure,) = [one for one in known_failures().failures if one.id == name]
    assert "preflight" in failure.caught
    tests = (Path(__file__).parents[1] / "planning" / "test_node_checks.py").read_text()
    assert f'"{SEEN_BY[name]}"' in tests


def test_a_pattern_that_begins_with_a_letter_in_both_cases_begins_at_a_word() -> None:
    assert from_word("[Ss]talled tensor") == r"\b[Ss]talled tensor", "`uninstalled tensorboard` is no stall"
    assert from_word("[ab]c") == "[ab]c"
