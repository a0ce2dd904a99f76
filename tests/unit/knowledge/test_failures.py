"""Logs of failed steps: real outputs of uv 0.13, pip 23, gcc 12, MPICH and Slurm are explained, or their errors shown."""

from __future__ import annotations

import random
import re
import time

import pytest

from provision.knowledge.failures import (
    ERROR_LINE,
    NOISE_LINE,
    TRACEBACK_END,
    WINDOW,
    KnownFailure,
    LogReader,
    alternatives,
    explain,
    pick_error_lines,
)
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
    "pip version": (PIP_NO_VERSION, "not-on-index"),
    "uv disk": (UV_DISK, "disk-full"),
    "pip disk": (PIP_DISK, "disk-full"),
    "quota": (QUOTA, "quota"),
    "no mpi.h": (GCC_NO_MPI, "mpi-not-found"),
    "gcc killed": (GCC_KILLED, "out-of-memory"),
    "cmake": (CMAKE_TENSORFLOW, "tensorflow-not-found"),
    "loader": (LOADER, "missing-library"),
    "glibcxx": (GLIBCXX, "glibcxx"),
    "srun": (SRUN, "srun-mpi"),
    "srun-openmpi": (SRUN_OPENMPI, "srun-openmpi"),
    "illegal": (ILLEGAL, "illegal-instruction"),
    "hydra": (HYDRA, "hydra-host"),
    "horovodrun": (HOROVODRUN, "horovods-runner"),
    "horovod.run": (HOROVOD_RUN, "horovods-runner"),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_known_failure_is_explained(name: str) -> None:
    text, expected = EXPLAINED[name]
    failure = explain(text.splitlines(), known_failures())
    assert failure is not None
    assert failure.id == expected


def test_every_known_failure_has_a_sample_here() -> None:
    explained = {identifier for _, identifier in EXPLAINED.values()}
    assert {failure.id for failure in known_failures()} - explained <= {"no-compiler"}


@pytest.mark.parametrize("failure", known_failures(), ids=lambda failure: failure.id)
def test_every_known_failure_has_a_pattern_a_cause_and_a_hint(failure: KnownFailure) -> None:
    pattern = re.compile(failure.match)
    assert pattern.search("") is None, "it would explain every log"
    assert failure.cause[0].islower() or failure.cause.startswith("CMake")
    assert not failure.cause.endswith(".")
    assert failure.hint
    assert failure.source


def test_the_names_of_known_failures_are_unique() -> None:
    names = [failure.id for failure in known_failures()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", ["", PIP_GCC, "all is well\n", "checking whether errors are found... yes\n"])
def test_an_unknown_failure_is_not_explained(text: str) -> None:
    assert explain(text.splitlines(), known_failures()) is None


def test_the_compilers_error_comes_first_in_the_output_of_pip() -> None:
    lines = pick_error_lines(PIP_GCC.splitlines())
    assert lines[0] == "bad.cc:2:21: error: 'nothing' was not declared in this scope"
    assert not any("subprocess" in line or "note:" in line or "Failed building" in line for line in lines)


def test_a_wrong_hash_is_shown_with_its_package() -> None:
    assert any("six==1.17.0" in line for line in pick_error_lines(UV_HASH.splitlines()))
    assert pick_error_lines(PIP_HASH.splitlines())[0].startswith("ERROR: THESE PACKAGES DO NOT MATCH")


def test_the_last_lines_are_shown_if_no_line_looks_like_an_error() -> None:
    assert pick_error_lines([f"line {number}" for number in range(20)], most=3) == ("line 17", "line 18", "line 19")
    assert pick_error_lines(["", "  ", "only one  "]) == ("only one",)
    assert pick_error_lines([]) == ()


def test_error_lines_are_limited_in_number_and_length_and_unique() -> None:
    lines = ["error: same"] * 5 + [f"error: number {number}" for number in range(20)] + ["error: " + "x" * 1000]
    picked = pick_error_lines(lines)
    assert len(picked) == 8
    assert len(set(picked)) == 8
    assert max(len(line) for line in pick_error_lines(lines, most=100)) == 300


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


@pytest.mark.parametrize("name", THREADS)
def test_the_error_line_about_too_many_threads_is_shown(name: str) -> None:
    (line,) = pick_error_lines(THREADS[name].splitlines())
    assert "thread" in line.lower()


def test_a_busy_socket_is_not_explained_as_too_many_threads() -> None:
    assert explain(["recv failed: Resource temporarily unavailable"], known_failures()) is None


@pytest.mark.parametrize("text", [HYDRA_RANKS, RANK_RESET])
def test_unreachable_ranks_are_not_explained_as_an_unreachable_index(text: str) -> None:
    failure = explain(text.splitlines(), known_failures())
    assert failure is None or failure.id != "index-unreachable"


def test_slurms_message_about_memory_is_explained() -> None:
    failure = explain(SLURM_OOM.splitlines(), known_failures())
    assert failure is not None
    assert failure.id == "out-of-memory"


def test_another_signal_is_not_an_illegal_instruction() -> None:
    assert explain(["srun: error: n1: task 0: ended by signal 42"], known_failures()) is None


def test_the_program_that_pip_prints_is_not_shown_as_an_error() -> None:
    lines = pick_error_lines(PIP_PROGRAM.splitlines())
    assert lines == ("bad.cc:2:21: error: 'nothing' was not declared in this scope",)


# Logs of any length

EVERY_PATTERN = {
    **{failure.id: failure.match for failure in known_failures()},
    "error line": ERROR_LINE,
    "noise line": NOISE_LINE.pattern,
    "end of a traceback": TRACEBACK_END.pattern,
    "compiler error": COMPILER_ERROR.pattern,
}


@pytest.mark.parametrize("name", EVERY_PATTERN)
def test_a_pattern_takes_linear_time_for_hostile_lines(name: str) -> None:
    pattern = EVERY_PATTERN[name]
    texts = {text for text in re.findall(r"[\w =:#'/`.-]+", re.sub(r"\\[wdsSb]|\\", "", pattern)) if text}
    hostile = {"=", "==a", "a.", "a", " ", "1", "a:1:1: ", ":", "_", "\n", "\na."}
    if name not in ("noise line", "end of a traceback", "compiler error"):  # they have no words
        texts |= {word for word, _ in alternatives(pattern)}
    hostile |= {text + end for text in texts for end in ("", " ", ": ", "a", "0")}
    for seed in sorted(hostile):
        line = (seed * (1 + 200_000 // len(seed)))[:200_000]
        began = time.process_time()
        re.search(pattern, line)
        # Linear: some milliseconds. With two repetitions that compete (`Retrying .*refused`) it is ten seconds and more.
        assert time.process_time() - began < 1, f"{seed!r} again and again"


@pytest.mark.parametrize("failure", known_failures(), ids=lambda failure: failure.id)
def test_every_alternative_of_a_pattern_has_a_text_by_which_its_lines_are_found(failure: KnownFailure) -> None:
    found = alternatives(failure.match)
    assert "|".join(alternative.pattern for _, alternative in found) == failure.match
    for word, alternative in found:
        assert len(word) >= 4, alternative.pattern
        # Deleting a character of the word from the pattern deletes it from every match.
        assert re.escape(word) in re.escape(alternative.pattern.replace("\\", ""))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("abc|de+f|g", None),
        ("abc|def?gh", ["abc", "de"]),
        (r"a\.bc\d+efghi", ["efghi"]),
        ("ab(cdefg|h)ij", ["ab"]),
        ("ab[cd|)]efg|x{2,3}yz", ["efg", "yz"]),
        (r"\bGot  +[0-9a-f]{64}", ["Got  "]),
        ("ab*|cd", None),
    ],
)
def test_the_longest_literal_text_of_each_alternative_is_found(pattern: str, words: list[str] | None) -> None:
    if words is None:
        with pytest.raises(ValueError, match="has no literal text"):
            alternatives(pattern)
    else:
        assert [word for word, _ in alternatives(pattern)] == words


def by_lines(lines: list[str], most: int = 8) -> tuple[str | None, list[str]]:
    """What a log shows, in the plainest way: every pattern on every line."""
    known = (failure for failure in known_failures() if any(re.search(failure.match, line) for line in lines))
    errors = [
        line.strip()
        for line in lines
        if (re.search(ERROR_LINE, line) or TRACEBACK_END.match(f"\n{line}")) and not NOISE_LINE.search(line)
    ]
    chosen = list(dict.fromkeys(errors))[:most] or [line.strip() for line in lines if line.strip()][-most:]
    return next((failure.id for failure in known), None), [line[:300] for line in chosen]


@pytest.mark.parametrize("seed", range(20))
def test_the_reader_finds_what_every_pattern_on_every_line_finds(seed: int) -> None:
    chance = random.Random(seed)
    samples = [line for text, _ in EXPLAINED.values() for line in text.splitlines()] + PIP_GCC.splitlines()
    dull = [
        "gcc -Wall -Werror -c a.cc",
        "copying a/b.py",
        "",
        "tensorflow.python.x: it is",
        "note: an error",
        "queue.Empty: ",
    ]
    lines = [chance.choice(samples if chance.random() < seed / 60 else dull) for _ in range(200)]
    reader = LogReader(known_failures())
    for start in range(0, len(lines), 7):
        reader.feed("\n".join([*lines[start : start + 7], ""]))
    expected, chosen = by_lines(lines)
    assert (reader.known.id if reader.known else None) == expected
    assert list(reader.evidence) == chosen


def test_a_failure_is_found_anywhere_in_a_very_long_line() -> None:
    for before in (0, 1, WINDOW - 1, WINDOW, 3 * WINDOW + 5, 1_000_000):
        line = "x" * before + " No space left on device " + "y" * 100_000
        assert explain([line], known_failures()) == known_failures()[0], before
        assert len(pick_error_lines([line])[0]) <= 300
