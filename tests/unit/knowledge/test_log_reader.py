"""The reader of logs: tracebacks, excuses, ranks, healthy logs, logs of any length, and bytes that are not text."""

from __future__ import annotations

import os
import time

import pytest

from parts.loops import for_each
from provision.knowledge.failures.evidence import SHOWN
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.line_parts import WINDOW
from provision.knowledge.failures.log_reader import MOST_LOOKS, LogReader
from provision.knowledge.failures.reported_errors import ID
from provision.knowledge.failures.words import line_words
from provision.machine.tables import known_failures


def shown(text: str, *, failed: bool = False) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures(), failed=failed)


USERS = """\
Epoch 1/3
Traceback (most recent call last):
  File "/home/u/train.py", line 41, in <module>
    main()
  File "/home/u/train.py", line 30, in main
    print(hvd_rank)
          ^^^^^^^^
NameError: name 'hvd_rank' is not defined
"""
CALLS = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 41, in <module>
    frame = pd.read_table(3)
  File "/env/lib/python3.11/site-packages/pandas/io/parsers/readers.py", line 1326, in read_table
    return _read(filepath_or_buffer, kwds)
TypeError: expected str, got int
"""
NOTEBOOK = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[3], line 5
      3 a = {}
----> 5 print(a['x'])

KeyError: 'x'
"""
SYNTAX = """\
  File "train.py", line 7
    def f(:
          ^
SyntaxError: invalid syntax
"""
PROGRAMS = {
    "a name": (USERS, "`/home/u/train.py`, line 30"),
    "a call": (CALLS, "`/home/u/train.py`, line 41 calls `pandas`"),
    "a notebook": (NOTEBOOK, "`cell 3`, line 5"),
    "syntax": (SYNTAX, "`train.py`, line 7"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_in_the_users_program_is_named_with_its_place(name: str) -> None:
    text, place = PROGRAMS[name]
    known = shown(text).known
    assert known is not None and known.failure.id == "error-in-program" and known.failure.program
    assert place in known.cause


def test_each_rank_has_its_own_traceback() -> None:
    lines = USERS.splitlines()
    mixed = "".join(f"[1,{rank}]<stderr>:{line}\n" for line in lines for rank in range(3))
    known = shown(mixed).known
    assert known is not None and "line 30" in known.cause


def test_a_library_without_a_place_in_a_program_of_the_user_is_not_accused_as_one() -> None:
    known = shown(CALLS.replace("/home/u/train.py", "/env/lib/python3.11/site-packages/dask/a.py")).known
    assert known is not None and not known.failure.program and known.sureness == "guess"
    assert known.cause == "`pandas` stopped the program, and says: `TypeError: expected str, got int`"


def test_an_exception_in_a_destructor_is_ignored() -> None:
    assert shown(f"Exception ignored in: <function f at 0x1>\n{USERS}").verdict == "healthy"


HEALTHY = {
    "excused above": "libcudart.so.11.0: cannot open shared object file\nIgnore above cudart dlerror if you do not have a GPU.\n",
    "ignored by make": "make: [Makefile:3: clean] Error 1 (ignored)\n",
    "retried": "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError: refused'\n"
    "Successfully installed six-1.17.0\n",
    "installed in the end": "ERROR: Failed building wheel for x\nRunning setup.py install for x\nSuccessfully installed x-1\n",
    "trained on": "ERROR: cannot open /a/b\n" + "".join(f"step {n} loss: 0.{n}\n" for n in range(5)),
    "tests that print errors": "test_a (__main__.T) ... ERROR: simulated failure\nok\n\nOK (skipped=1, expected failures=1)\n",
    "a warning": "UserWarning: Disk quota exceeded soon\n",
    "typed": "+ echo 'No space left on device'\n",
    "Open MPI without InfiniBand": "[[13245,1],0]: A high-performance Open MPI point-to-point messaging module\n"
    "was unable to find any relevant network interfaces:\n\nModule: OpenFabrics (openib)\n  Host: n001\n\n"
    "Another transport will be used instead, although this may result in\nlower performance.\nrank 0 of 2\n",
    "TensorFlow on a CPU": "2024-03-01 10:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to "
    "register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n"
    "2024-03-01 10:00:01.0: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2256] Cannot dlopen some GPU libraries.\n",
    "CMake looks for what it does not need": "-- Performing Test CMAKE_HAVE_LIBC_PTHREAD - Failed\n"
    "-- Looking for pthread_create in pthreads - not found\n[100%] Built target horovod\n",
    "pip's late conflict": "ERROR: pip's dependency resolver does not currently take into account all the packages that are "
    "installed.\ntensorflow 2.4.1 requires numpy~=1.19.2, but you have numpy 1.24.0 which is incompatible.\n"
    "Successfully installed numpy-1.24.0\n",
    "informs": "n1:1:1 [0] NCCL INFO NET/IB : No device found. unhandled system error\n",
}


@for_each("name", HEALTHY)
def test_a_line_that_excuses_itself_is_not_accused(name: str) -> None:
    explanation = shown(HEALTHY[name])
    assert explanation.verdict == "healthy", explanation.findings


STEPS = "".join(f"[1,{n % 3}]<stdout>:step {n} loss: 0.{n}\n" for n in range(40))
FAILED = {
    "other ranks print on": "".join(f"[1,7]<stderr>:{line}\n" for line in USERS.splitlines()) + STEPS,
    "the next two lines of a training": USERS + "step 1 loss: 0.1\nstep 2 loss: 0.2\n",
    "mpirun gave up": "mpirun noticed that process rank 7 with PID 0 on node n1 exited on signal 9 (Killed).\n" + STEPS,
    "Slurm ended the job": "slurmstepd: error: *** JOB 867 ON n1 CANCELLED AT 2021-05-11T12:06:17 DUE TO TIME LIMIT ***\n"
    + STEPS,
    "something else was installed": "ERROR: No matching distribution found for a==9\nSuccessfully installed b-1\n",
    "installed after a program failed": "OSError: [Errno 5] Input/output error\nSuccessfully installed b-1\n",
}


@for_each("name", FAILED)
def test_what_other_ranks_or_commands_print_later_excuses_no_failure(name: str) -> None:
    assert shown(FAILED[name]).verdict == "known"


def test_a_rank_that_goes_on_after_a_traceback_has_not_failed() -> None:
    mine = "".join(f"[1,7]<stdout>:step {n} loss: 0.{n}\n" for n in range(40))
    assert shown(FAILED["other ranks print on"] + mine).verdict == "healthy"


def test_a_library_that_fails_while_it_is_imported_is_no_error_of_the_program() -> None:
    known = shown(CALLS.replace("in read_table", "in <module>")).known
    assert known is not None and not known.failure.program
    assert known.cause == "`pandas` fails while it is imported: `TypeError: expected str, got int`"


def test_the_first_cause_is_named_and_the_others_are_ranked() -> None:
    text = "OSError: [Errno 122] Disk quota exceeded\nx\nOSError: [Errno 28] No space left on device\n"
    text += "srun: error: n1: task 3: Exited with exit code 1\n"
    names = [finding.failure.id for finding in shown(text).findings]
    assert names == ["quota", "disk-full", "task-failed"]


def test_the_number_of_the_deciding_line_counts_line_breaks_only() -> None:
    bar = "\r".join(f"{n}%" for n in range(100))
    known = shown(f"a\r\n{bar}\r\nNo space left on device\r\n").known
    assert known is not None and known.hit.number == 3


def test_an_unknown_failure_shows_its_lines_and_a_healthy_log_its_last_ones() -> None:
    explanation = shown("one\nError: see the log above\ntwo\n")
    assert (explanation.verdict, explanation.lines) == ("unknown", ((2, "Error: see the log above"),))
    assert shown("".join(f"line {n}\n" for n in range(20))).lines[-1] == (20, "line 19")
    assert shown("it stopped\n", failed=True).verdict == "unknown"


def test_blocks_that_end_anywhere_between_lines_give_the_same() -> None:
    text = (USERS * 3 + "OSError: [Errno 122] Disk quota exceeded\n").encode()
    lines = text.splitlines(keepends=True)
    whole = explain([text], known_failures())
    for size in (1, 2, 5, 7):
        blocks = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
        assert explain(blocks, known_failures()) == whole


def test_a_failure_is_found_anywhere_in_a_very_long_line() -> None:
    for before in (0, 1, WINDOW - 1, WINDOW, 3 * WINDOW + 5, 100_000):
        line = "x" * before + " No space left on device " + "y" * 10_000
        known = shown(line).known
        assert known is not None and known.failure.id == "disk-full", before
        assert "No space left" in known.hit.text and len(known.hit.text) <= SHOWN


def test_lines_that_differ_in_digits_only_are_still_found() -> None:
    text = "".join(f"copy {n} of 9: error 0\n" for n in range(MOST_LOOKS * 3)) + "os error 27\nos error 28\n"
    known = shown(text).known
    assert known is not None and known.hit.text == "os error 28"


def test_bytes_that_are_not_text_accuse_no_one() -> None:
    names = [alternative.failure.message for alternative in known_failures().alternatives]
    program = b"\x7fELF\x02\x01\x01" + b"\0\0\1\0\0\0\0".join(name.encode() for name in names) + os.urandom(1000)
    explanation = explain([program], known_failures())
    assert explanation.known is None
    assert not explanation.is_text


# A line that looks like an error takes half a millisecond, and others less than a tenth of that.
@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("error: cannot open file {}\n", 1000),
        ("step {} loss: 0.5\n", 5000),
        ('  File "a{}.py", line 3, in f\n', 5000),
        ("{}", 5000),
    ],
)
def test_the_time_grows_with_the_length_of_the_log(line: str, lines: int) -> None:
    seconds = []
    for size in (1, 4):
        blocks = [
            "".join(line.format(f"{n:x}") for n in range(part, part + lines)).encode()
            for part in range(0, size * lines, lines)
        ]
        began = time.process_time()
        reader = LogReader(known_failures())
        for block in blocks:
            reader.feed(block)
        reader.conclude()
        seconds.append(time.process_time() - began)
    assert seconds[1] < 12 * max(seconds[0], 0.05)


def test_a_report_in_one_line_is_data() -> None:
    report = '{"errors": {}, "objects": [' + ", ".join(f'"/env/h5py/_errors.{n}.so"' for n in range(500)) + "]}\n"
    assert shown(f"import of h5py\n{report}done\n").verdict == "healthy"
    assert shown('{"level": "error", "msg": "No space left on device"}\n').known is not None


def test_a_traceback_that_was_sent_as_one_text_is_read() -> None:
    escaped = repr(USERS.removeprefix("Epoch 1/3\n"))
    known = shown(f"RuntimeError: {escaped}\n").known
    assert known is not None and known.failure.id == "error-in-program" and "line 30" in known.cause


@pytest.mark.parametrize("blanks", [0, 6])
def test_an_indented_traceback_is_read_like_others(blanks: int) -> None:
    known = shown("".join(f"{' ' * blanks}{line}\n" for line in USERS.splitlines())).known
    assert known is not None and "`/home/u/train.py`, line 30: `NameError" in known.cause


def test_what_cmake_did_not_find_counts_only_if_it_failed() -> None:
    status = "-- Could NOT find CUDA (missing: CUDA_NVCC_EXECUTABLE)\n-- Could NOT find MPI_C (missing: MPI_C_WORKS)\n"
    assert shown(f"{status}-- Configuring done\n").verdict == "healthy"
    error = "CMake Error at FindPackageHandleStandardArgs.cmake:137 (message):\n"
    failed = shown(f"{status}{error}  Could NOT find MPI (missing: MPI_C_FOUND)\n")
    assert failed.known is not None and failed.known.failure.id == "mpi-not-found"


def test_an_exception_of_a_compiled_library_is_no_error_of_the_program() -> None:
    text = """\
Traceback (most recent call last):
  File "train.py", line 131, in <module>
    gather(x)
  File "mpi4py/MPI/Comm.pyx", line 1262, in mpi4py.MPI.Comm.gather
mpi4py.MPI.Exception: the flux is inverted
"""
    known = shown(text).known
    assert known is not None and not known.failure.program
    assert (
        "your program calls a library at `train.py`, line 131" in known.cause and "the flux is inverted" in known.cause
    )


def test_of_two_failures_in_one_line_the_one_that_says_more_is_named() -> None:
    line = "E cuda_event.cc:49] Error polling for event status: failed to query event: CUDA_ERROR_LAUNCH_FAILED\n"
    named = {finding.failure.id for finding in shown(line).findings}
    assert {"cuda-illegal-access", "tensorflow-internal"} <= named
    known = shown(line).known
    assert known is not None and known.failure.id == "cuda-illegal-access"
    words = line_words(line)
    found = known_failures().candidates(words)
    assert found == sorted(found, key=lambda alternative: -alternative.specific)


def test_a_program_that_went_on_without_what_it_did_not_find_has_not_failed() -> None:
    complaint = "flurble: unable to initialize frontend: Dialog\n"
    assert shown(f"{complaint}Setting up a\n").verdict == "known"
    assert shown(complaint + "Setting up a\n" * 5).verdict == "healthy"
    assert shown("Error: unable to start\n" + "Setting up a\n" * 5).verdict == "known"


def test_a_message_that_was_wrapped_to_the_terminal_is_read_as_one() -> None:
    lmod = (
        'Lmod has detected the following error:  The following module(s) are\nunknown: "fsl/5.0.10"\n\nPlease check\n'
    )
    known = shown(lmod).known
    assert known is not None and known.failure.id == "module-unknown" and known.hit.number == 1
    cmake = (
        "CMake Error at CMakeLists.txt:20 (include):\n  include could not find\n  requested file:\n\n-- Incomplete\n"
    )
    known = shown(cmake).known
    assert known is not None and known.cause == "CMake stopped with an error: include could not find requested file:"


def test_an_argument_that_a_function_does_not_take_may_be_of_another_version() -> None:
    text = USERS.replace(
        "NameError: name 'hvd_rank' is not defined", "TypeError: fit() got an unexpected keyword argument 'nb_epoch'"
    )
    known = shown(text).known
    assert known is not None and known.failure.id == "arguments-unknown" and "`nb_epoch`" in known.cause


def test_a_fatal_line_of_tensorflow_is_a_failure() -> None:
    line = (
        "Fri Sep 25 16:52:35 2020[3]<stderr>:2020-09-25 16:52:35.948682: F tensorflow/x.cc:34] the flux is inverted\n"
    )
    known = shown(line).known
    assert known is not None and known.failure.id == "tensorflow-fatal" and known.cause.endswith("the flux is inverted")
    known = shown("F0000 00:00:1795285483.813069    6792 x.cc:74] the flux is inverted\n").known
    assert known is not None and known.failure.id == ID


PANDAS = """\
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/pandas/core/indexes/base.py", line 3805, in get_loc
    return self._engine.get_loc(casted_key)
KeyError: 'height'
"""
FROM = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_a_name_that_is_not_in_the_data_is_an_error_of_the_program_or_its_data() -> None:
    known = shown(PANDAS).known
    assert known is not None and known.failure.program and known.sureness == "guess"
    assert "`pandas` does not find what it is asked for: `KeyError: 'height'`" in known.cause
    for text in (PANDAS.replace("in get_loc", "in <module>"), PANDAS.replace("pandas/core", "dask/core")):
        known = shown(text).known
        assert known is not None and known.failure.id == "library-stopped"


def test_a_traceback_without_its_end_has_that_of_the_exception_it_followed_from() -> None:
    cut = PANDAS + FROM + "".join(f"{line}\n" for line in USERS.splitlines()[1:4])
    known = shown(cut).known
    assert known is not None and "`/home/u/train.py`, line 41 calls `pandas`" in known.cause
    assert "KeyError: 'height'" in known.cause


def test_a_module_that_a_program_only_tried_is_not_the_cause() -> None:
    tried = """\
Traceback (most recent call last):
  File "/home/u/ops.py", line 24, in <module>
    from fast_ops import search
ModuleNotFoundError: No module named 'fast_ops'
"""
    known = shown(tried + DURING + USERS.removeprefix("Epoch 1/3\n")).known
    assert known is not None and known.failure.id == "error-in-program"
    assert "NameError" in known.cause
    known = shown(tried).known
    assert known is not None and known.failure.id == "module-not-installed"
    known = shown(tried.replace("fast_ops", "tensorflow") + DURING + CALLS).known
    assert known is not None and known.failure.id == "tensorflow-not-installed"


def test_a_framework_that_horovods_cmake_only_tries_is_not_the_cause() -> None:
    tried = "  ModuleNotFoundError: No module named 'mxnet'\n  -- Could NOT find Mxnet (missing: Mxnet_LIBRARIES)\n"
    assert shown(f"{tried}-- Configuring done\n").verdict == "healthy"
    known = shown(f"{tried}CMake Error at CMakeLists.txt:345 (file):\n  the flux is inverted\n").known
    assert known is not None and known.failure.id == "cmake-error"


def test_code_that_tensorflow_generated_is_not_the_users_file() -> None:
    generated = '  File "/tmp/__autograph_generated_file5.py", line 15, in tf__train_function\n    retval_ = f()\n'
    text = CALLS.replace('  File "/env', f'{generated}  File "/env', 1)
    known = shown(text).known
    assert known is not None and "`/home/u/train.py`, line 41 calls" in known.cause


def test_an_old_tensorflow_calls_a_failed_operation_a_warning() -> None:
    line = "W tensorflow/core/framework/op_kernel.cc:975] Invalid argument: Received a label value of 255 which is "
    known = shown(f"{line}outside the valid range of [0, 10).\n").known
    assert known is not None and known.failure.id == "index-out-of-range"
    line = "W tensorflow/core/framework/op_kernel.cc:1830] Out of range: End of sequence\n"
    assert shown(line).verdict == "healthy"


DECOYS = {
    "torchrun's workers are still alive": "I torch.distributed.elastic.multiprocessing.api: all workers finished\n",
    "PBS answers": "tm_init() succeeded on n1\nTM: 4 nodes\n",
    "a temporary file": "couldn't create the cache for modules, using the file system\n",
    "Slurm without a controller yet": "slurmctld: reading configuration file /etc/slurm/slurm.conf\nsinfo works\n",
    "a slow notebook": "[W 2021-04-21 14:40:46.899 JupyterHub base:900] User u is slow to start (timeout=10)\n"
    "[I 2021-04-21 14:41:06.101 JupyterHub base:1200] User u took 19.3 seconds to start\n",
    "pip's own hint": "error: metadata-generation-failed\nhint: See above for details.\nSuccessfully installed a-1\n",
    "the word aborted": "Aborted connections so far: 0\n",
}


@for_each("name", DECOYS)
def test_words_of_new_entries_accuse_no_healthy_log(name: str) -> None:
    explanation = shown(DECOYS[name])
    assert explanation.known is None and explanation.verdict == "healthy", explanation.findings


def test_an_error_of_pip_with_an_empty_hint_is_not_taken_for_its_cause() -> None:
    text = "error: metadata-generation-failed\n\n╰─> See above for output.\n\nhint: See above for details.\n"
    found = shown(text)
    assert found.known is None and found.findings[0].failure.id == "pip-build-failed"


def test_an_excerpt_of_a_traceback_may_begin_anywhere() -> None:
    text = """\
      File "/usr/lib64/python3.6/distutils/unixccompiler.py", line 129, in _compile
        raise CompileError(msg)
    distutils.errors.CompileError: command 'gcc' failed with exit status 1
"""
    found = shown(text)
    assert found.verdict == "unknown" and found.findings[0].failure.id == "compile-command-failed"


def test_a_clear_mistake_without_its_traceback_is_an_error_of_a_program() -> None:
    known = shown("NameError: name 'K' is not defined\n").known
    assert known is not None and known.failure.program and known.sureness == "guess"
    known = shown("ValueError: the flux is inverted\n").known
    assert known is not None and known.failure.id == ID and not known.failure.program


def test_places_in_compiled_files_and_on_windows_are_read() -> None:
    text = """\
C:\\Python\\Lib\\site-packages\\keras\\models.pyc in slice_X(X, start, stop)
---> 55             return [x[start] for x in X]

IndexError: index 3595 is out of bounds for axis 0 with size 3595
"""
    known = shown(text).known
    assert known is not None and "`keras` does not find what it is asked for" in known.cause


STATES = {
    "State=OUT_OF_MEMORY\n": "out-of-memory",
    "42.batch  batch  a  1  OUT_OF_ME+  0:125\n": "out-of-memory",
    "   JobState=TIMEOUT Reason=TimeLimit\n": "time-limit",
    "Exit_status=271\n": "terminated",
    "Exit_status=265\n": "killed",
}


@pytest.mark.parametrize("line", STATES)
def test_the_state_that_a_scheduler_reports_is_read(line: str) -> None:
    assert shown(line).findings[0].failure.id == STATES[line]


def test_a_job_that_failed_for_an_unknown_reason_is_not_healthy() -> None:
    assert shown("   JobState=FAILED Reason=NonZeroExitCode\n").verdict == "unknown"
    assert shown("   JobState=COMPLETED Reason=None\nExit_status=0\n").verdict == "healthy"


PIP = """\
  error: subprocess-exited-with-error
      Traceback (most recent call last):
        File "/tmp/pip-install-x1/flurble_0a/setup.py", line 20, in <module>
          raise RuntimeError("the flux library is too old")
      RuntimeError: the flux library is too old
      [end of output]
error: metadata-generation-failed
"""
SPACK = """\
==> Error: ProcessError: Command exited with status 1:
    './configure' '--prefix=/x'
  >> 42    flurble-conf: fatal: the flux library is too old
See build log for details:
"""
ABORTED = """\
terminate called after throwing an instance of 'std::runtime_error'
  what():  the flux library is too old
[n1:123] *** Process received signal ***
[n1:123] Signal: Aborted (6)
"""


@pytest.mark.parametrize("text", [PIP, SPACK, ABORTED], ids=["pip", "Spack", "C++"])
def test_the_words_of_the_program_that_failed_come_before_what_follows_from_it(text: str) -> None:
    explanation = shown(text)
    assert explanation.known is not None and "the flux library is too old" in explanation.known.cause
    assert explanation.findings[1].hit.weight < explanation.known.hit.weight


def test_the_build_of_a_package_is_no_import_of_a_library() -> None:
    known = shown(PIP).known
    assert known is not None and known.cause.startswith("the build of `flurble_0a` stopped")


def test_a_log_without_failure_says_whether_it_shows_an_end() -> None:
    assert shown("Collecting a\nSuccessfully installed a-1\n").ended
    for text in ("Collecting a\n", "Successfully installed a-1\n" + "step 1 of 9\n" * 60):
        explanation = shown(text)
        assert explanation.verdict == "healthy" and not explanation.ended


def test_a_service_that_prints_on_after_an_error_has_not_failed() -> None:
    error = "2015-07-29 23:44:28,903 - ERROR [x:NIOServerCnxn@180] - Unexpected flux:\n"
    info = "2015-07-29 23:44:29,903 - INFO  [y:ZooKeeperServer@595] - Established session {}\n"
    known = shown(error + info.format(0)).known
    assert known is not None and "Established" not in known.cause
    assert shown(error + "".join(info.format(number) for number in range(300))).verdict == "healthy"
    assert shown("x: fatal: the flux is inverted\n" + "".join(info.format(n) for n in range(300))).verdict == "known"


def test_a_traceback_without_its_end_does_not_take_the_place_of_what_the_log_says() -> None:
    cut = "".join(f"{line}\n" for line in CALLS.splitlines()[:5])
    found = shown(f"{PIP.splitlines()[0]}\n{cut}")
    assert found.known is None and found.findings[0].failure.id == "pip-build-failed"
