"""Logs of runs that work although lines of them look bad, and logs that failed although their end does not look like it."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures import health
from provision.knowledge.failures.catalogue import Catalogue
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures())


# The record of a logger, with the traceback that belongs to it.
DASK = """\
wrote 3 partitions
2026-01-02 10:31:01,593 - distributed.worker - ERROR - Failed to communicate with scheduler during heartbeat.
Traceback (most recent call last):
  File "/env/lib/python3.10/site-packages/distributed/comm/tcp.py", line 224, in read
    frames_nbytes = await stream.read_bytes(fmt_size)
tornado.iostream.StreamClosedError: Stream is closed

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/env/lib/python3.10/site-packages/distributed/worker.py", line 1253, in heartbeat
    response = await retry_operation(
"""
# Lines that programs print although nothing is wrong: a word of a known failure, but not what it says.
NOTICES = {
    "a node without InfiniBand at the end": "step 3\nlibibverbs: Fatal: couldn't read uverbs ABI version.\n",
    "a counter of kills": "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n",
    "what a job may use": "h_vmem limit: 8G\nmaximum wallclock time: 12:00:00\n",
    "the environment of Intel MPI": "I_MPI_PMI_LIBRARY=/opt/slurm/lib64/libpmi2.so\nI_MPI_DEBUG=5\n",
    "a package that is replaced": "      Successfully uninstalled tensorboard-1.14.0\n  Attempting uninstall: flurble\n",
    "a warning with a border": "-" * 74 + "\nWARNING: Open MPI tried to bind a process but failed.  This is a\n"
    "warning only; your job will continue.\n\n  Local host:        n1\n  Error message:     failed to bind memory\n"
    + "-" * 74
    + "\n",
    "a package of Debian without a terminal": "debconf: unable to initialize frontend: Readline\n"
    "debconf: (Can't locate Term/ReadLine.pm in @INC (you may need to install the Term::ReadLine module))\n",
    "MPI on a node without InfiniBand": "libibverbs: Fatal: couldn't read uverbs ABI version.\n"
    "[0,1,0]: OpenIB on host n1 was unable to find any HCAs.\nAnother transport will be used instead, although this may\n",
    "programs that a report looks for": "/bin/sh: line 1: type: llvm-config-9: not found\n" + "op built .. [NO]\n" * 3,
    "a compiler that CMake tries": 'Compiling the CUDA compiler identification source file "CMakeCUDACompilerId.cu" succeeded.\n',
    "a download with a login": "HTTP request sent, awaiting response... 401 Unauthorized\n"
    "HTTP request sent, awaiting response... 200 OK\n",
    "Intel MPI without a tuning file": '[0] MPI startup(): File "/opt/impi/2021.9/etc/tuning_x.dat" not found\n'
    "[0] MPI startup(): Rank    Pid      Node name  Pin cpu\n",
    "one process of Open MPI 5": "to launch application, 1 singletons will be started.\n",
    "CUDA IPC that Open MPI does without": "The call to cuIpcOpenMemHandle failed. This is a warning and the program\n"
    "will continue to run.\n  cuIpcOpenMemHandle return value:   205\n",
    "a callback of Keras": "callbacks: [EarlyStopping, TerminateOnNaN]\n",
    "files of a saved model": "adding: saved_model/keras_metadata.pb (deflated 88%)\n",
    "a description of images": "Image size: 64\nNumber of channels: 3\n",
    "weights that fit": "loading state_dict for generator\nhash check OK\n",
    "no old checkpoint": "checkpoint runs/a/last.pt not found, starting from scratch\n",
    "a strategy": "using CollectiveAllReduceStrategy on 4 workers, check_health interval 30 s\n",
    "a package without headers": "warning: no files found matching '*.h' under directory 'src'\n",
    "the metadata of a package": "Requires-Python: >=3.8\nRequires-Dist: numpy\n",
    "a kernel with user namespaces": "user namespaces are enabled\n",
    "a server with its own certificate": "Generating a self-signed certificate for localhost\n",
    "Qt in a job": "QStandardPaths: XDG_RUNTIME_DIR not set, defaulting to '/tmp/runtime-u'\n",
    "SDL in a job": "error: XDG_RUNTIME_DIR not set in the environment.\n" + "frame 1 drawn\n" * 9,
    "a backend for a node without a screen": "headless node, using the backend agg\n",
    "a folder that exists": "mkdir: cannot create directory 'out': File exists\n" + "cell 1 done\n" * 9,
    "a program on the CPU": "CUDA is not available, using CPU\nNo GPU found, running on the CPU\n",
    "a shell without the function of another": "sh: module: line 1: syntax error: unexpected end of file\n"
    "sh: error importing function definition for `BASH_FUNC_module'\n",
    "no folder for temporary files": "slurmstepd: error: Unable to create TMPDIR [/scratch/u]: Permission denied\n"
    "slurmstepd: error: Setting TMPDIR to /tmp\n",
    "a count of nought": "Summary: 12 files, WARNING count: 3, ERROR count: 0\n",
    "a repository of another user": "fatal: detected dubious ownership in repository at '/scratch/flurble'\n"
    "[3/3] Linking C program a\n",
    "the sum of a test suite": "# TOTAL: 3\n# PASS:  3\n# FAIL:  0\n# ERROR: 0\nPLAY RECAP  ok=3  failed=0\nFATAL: 0\n",
}


@for_each("name", NOTICES)
def test_a_line_that_runs_that_work_print_too_accuses_no_one(name: str) -> None:
    explanation = shown(NOTICES[name])
    assert explanation.verdict == "healthy", explanation.findings


# How a log ends that shows an error before, and then that it was overcome.
ENDS = {
    "conda's check of sizes": "SafetyError: The package for flurble located at /env/pkgs/flurble-1\nappears to be corrupted.\n"
    "Executing transaction: ...working... done\n",
    "an error in a source that Ninja compiles again": "a.cc:3:1: error: x was not declared\n[8/8] Linking CXX executable a\n",
    "a package of R": "ERROR: lazy loading failed for package 'flurble'\n* DONE (flurble)\n",
    "CTest": "error: simulated\n100% tests passed, 0 tests failed out of 7\n",
    "a call with a wrong option, and the next one": "train.py: error: unrecognized arguments: --flux\n"
    "300 epochs completed in 2.995 hours.\n",
    "losses of a GAN": "ERROR: cannot open /a/b\n"
    + "".join(f"Epoch: [ 1/25] [ {n}/99] d_loss: 2.4, g_loss: 0.{n}\n" for n in range(3)),
    "batches that are counted": "ERROR: cannot open /a/b\n"
    + "".join(f"Test: [{n}0/124] Batch 76.3\n" for n in range(1, 4)),
}


@for_each("name", ENDS)
def test_an_error_that_was_overcome_accuses_no_one(name: str) -> None:
    assert shown(ENDS[name]).verdict == "healthy"


@for_each("name", ENDS)
def test_the_same_error_at_the_end_is_a_failure(name: str) -> None:
    first, _, _ = ENDS[name].partition("\n")
    assert shown(f"{first}\n").verdict != "healthy"


CONFIG_LOG = """\
configure:2866: checking for C compiler version
configure:2875: icc -V >&5
icc: error: unrecognized command line option '-V'
configure:2886: $? = 1
configure:3065: checking whether the C compiler works
configure:3087: icc conftest.c -lflurble >&5
ld: cannot find -lflurble
configure:3091: $? = 1
"""


def test_a_probe_of_configure_that_failed_counts_only_if_configure_stopped_there() -> None:
    went_on = (
        "configure:3139: result: no\nconfigure:3142: checking for suffix of executables\nconfigure:3150: result: \n"
    )
    assert shown(f"{CONFIG_LOG}{went_on}configure: exit 0\n").verdict == "healthy"
    assert shown(CONFIG_LOG + went_on).verdict == "healthy"
    stopped = "configure:3071: error: C compiler cannot create executables\nconfigure: exit 77\n"
    named = {found.failure.id for found in shown(CONFIG_LOG + stopped).findings}
    assert "compiler-flag-unknown" not in named and named & {"link-library-missing", "no-compiler"}


def test_a_build_script_that_reports_problems_after_it_is_completed_has_failed() -> None:
    link = "a.o: undefined reference to `nf_open_'\nmake[1]: [Makefile:17: em] Error 1 (ignored)\n"
    done = "build completed: Mon Aug 31 22:38:26 UTC 2020\n"
    assert shown(f"{link}{done}\n---> Problems building executables, look for errors in the build log  <---\n").known


def test_a_solver_that_gave_up_has_failed_whatever_the_installer_says() -> None:
    text = "Encountered problems while solving.\nProblem: nothing provides flux needed by flurble-1\n"
    assert shown(f"{text}\nExecuting transaction: ...working... done\n").known


WITHOUT = {
    "a module": 'Lmod has detected the following error:  The following module(s) are unknown: "flurble/1.0"\n',
    "a program": "slurm_script: line 22: flurble: command not found\n",
    "nvidia-smi": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
    "a component of Open MPI": "A requested component was not found, or was unable to be opened.  This\n",
    "a repository": "fatal: not a git repository (or any of the parent directories): .git\n",
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_a_program_did_without_counts_only_near_the_end_or_with_another_failure(name: str) -> None:
    lines = "".join(f"cell {n} of the grid is computed\n" for n in range(health.AFTER_KNOWN_COMPLAINT + 1))
    failure = shown(WITHOUT[name]).findings[0].failure
    assert failure.goes_on
    healthy = shown(WITHOUT[name] + lines)
    assert healthy.verdict == "healthy"
    assert failure.id in {note.failure.id for note in healthy.findings}, "it is shown as what may be harmless"
    assert shown(f"{WITHOUT[name]}{lines}flurble: fatal: the flux is inverted\n").verdict == "known"
    assert shown(lines + WITHOUT[name]).verdict != "healthy"
    limit = "slurmstepd: error: *** JOB 867 ON n1 CANCELLED AT 2021-05-11T12:06:17 DUE TO TIME LIMIT ***\n"
    known = shown(WITHOUT[name] + lines + limit).known
    assert known is not None and known.failure.id == "time-limit"


def test_a_program_that_prints_hundreds_of_lines_after_an_error_went_on() -> None:
    error = "flux: error: cannot read the mesh\n"
    lines = "".join(f"step {n} of the forecast is written\n" for n in range(health.AFTER_ERROR + 1))
    assert shown(error + lines[: len(lines) // 2]).verdict == "known"
    assert shown(error + lines).verdict == "healthy"
    assert shown(f"ld: cannot find -lflurble\n{lines}make: *** [Makefile:3: all] Error 1\n").verdict == "known"


# Logs that failed, though their last lines do not look like an error.
QUIET = {
    "pytest": "FAILED tests/test_flux.py::test_a - assert 1 == 2\n==== 1 failed, 3 passed in 0.12s ====\n",
    "pytest with errors": "==== 3 passed, 1 error in 0.12s ====\n",
    "Cargo's tests": "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n",
    "Automake's tests": "PASS: a\nFAIL: b\n# TOTAL: 2\n# PASS:  1\n# FAIL:  1\n# ERROR: 0\n",
    "a test in TAP": "ok 1 - a\nnot ok 2 - b\n1..2\n",
    "prove": "Files=1, Tests=3\nResult: FAIL\n",
    "Cromwell": "workflow finished with status 'Failed'.\n",
    "a solver": "     convergence NOT achieved after 100 iterations: stopping\n",
    "a status": "launcher: program ended with status 137\n",
    "a cancelled job": "Job 867 has been cancelled\n",
    "a time limit of a program": "n001: barrier of 12 ranks timed out\n",
    "a model that refuses": " decomp(): Number of processes exceeds number of cells   256   253\n",
    "the variable of a job": "FLUX_JOB_ID not defined.  You are likely not on a compute node.\n",
    "a build of pip": "FileNotFoundError: [Errno 2] No such file or directory: 'flurblecc'\nSuccessfully built a b\n"
    "  Running setup.py install for flurble ... error\n",
    "a library that ends the job": "A process called fork().\n\nYour job will now abort.\n",
    "make was interrupted": "make: *** [Makefile:103: all] Interrupt\n",
}


@for_each("name", QUIET)
def test_a_log_whose_end_says_quietly_that_it_failed_is_not_healthy(name: str) -> None:
    assert shown(QUIET[name]).verdict != "healthy"


NAMELESS = {
    "a library of another version": "flurble: symbol lookup error: /opt/x/libflux.so: undefined symbol: flux_now\n",
    "an error with a number": "flux.F90(108): error #6404: This name does not have a type\n",
    "what bash says of a killed program": "job.sh: line 15: 60721 Killed                  flurble --all\n",
    "a package that is not there": "ResolvePackageNotFound:\n  - flurble=1.2\n",
}


@pytest.mark.parametrize("name", NAMELESS)
def test_a_failure_that_no_entry_names_is_one(name: str) -> None:
    assert explain([NAMELESS[name].encode()], Catalogue(())).verdict == "unknown"


WAITS = {
    "step-waits": "srun: Job 867 step creation temporarily disabled, retrying (Requested nodes are busy)\n",
}


@pytest.mark.parametrize("name", WAITS)
def test_a_log_that_ends_with_a_program_that_waits_is_not_healthy(name: str) -> None:
    line, step = WAITS[name], "step 3 of the grid\n"
    for text in (line, step * 9 + line * 9, f"{line}\n"):
        known = shown(text).known
        assert known is not None and known.failure.id == name
    healthy = shown(line + step)
    assert healthy.verdict == "healthy" and name in {note.failure.id for note in healthy.findings}
    assert shown(line.replace("5/5", "4/5") if name == "last-retry" else step).verdict == "healthy"


ALONE = {
    "with the command": "mpirun -np 2 ./flurble\nHello from n001, process 0 of 1\nHello from n001, process 0 of 1\n",
    "typed": "$ srun -N 2 -n 4 python a.py\nworld size: 1\nworld size: 1\nworld size: 1\nworld size: 1\n",
    "without the command": "I am rank 0 out of 1 processors\n" * 3,
    "two tests of NCCL": "#   Rank  0 Pid   1320 on n17 device  0\n#   Rank  0 Pid   2066 on n18 device  0\n",
    "without the number of ranks": "mpiexec -n 4 ./flurble\n" + " greetings from rank           0\n" * 4,
}
TOGETHER = {
    "one rank": "mpirun -np 1 ./flurble\nprocess 0 of 1\nprocess 0 of 1\nprocess 0 of 1\n",
    "two tests": "process 0 of 1\nprocess 0 of 1\n",
    "many ranks": "mpirun -np 4 ./flurble\n" + "".join(f"process {n} of 4\n" for n in range(4)),
    "the first rank of many": "mpirun -np 4 ./flurble\n" + "".join(f"rank 0: part {n} of 12\n" for n in range(12)),
    "one rank of twelve": "rank 0 of 12\n" * 9,
    "two ranks of NCCL": "#   Rank  0 Pid   1320 on n17 device  0\n#   Rank  1 Pid   2066 on n18 device  0\n",
    "two runs of NCCL's tests": "".join(
        f"#   Rank  0 Pid   132{n} on n17 device  0\n" + "# 8 float sum\n" * 9 for n in (1, 2)
    ),
    "one rank that is named twice": "#   Rank  0 Pid   1320 on n17 device  0\n" * 2,
}


@for_each("name", ALONE)
def test_ranks_that_each_run_alone_are_named(name: str) -> None:
    known = shown(ALONE[name]).known
    assert known is not None and known.failure.id == "mpi-singletons"


@for_each("name", TOGETHER)
def test_ranks_that_run_together_or_one_that_should_be_alone_accuse_no_one(name: str) -> None:
    assert shown(TOGETHER[name]).verdict == "healthy"


CHECKED = """\
Horovod v0.28.1:

Available Frameworks:
    [{frameworks}] TensorFlow
    [ ] PyTorch
    [ ] MXNet

Available Controllers:
    [{mpi}] MPI
    [{gloo}] Gloo

Available Tensor Operations:
    [{mpi}] MPI
"""


@pytest.mark.parametrize(
    ("frameworks", "mpi", "gloo", "name"),
    [
        (" ", " ", " ", "horovod-nothing-built"),
        ("X", " ", " ", "horovod-nothing-built"),
        (" ", "X", "X", "horovod-nothing-built"),
    ],
)
def test_a_horovod_without_its_compiled_part_is_named(frameworks: str, mpi: str, gloo: str, name: str) -> None:
    known = shown(CHECKED.format(frameworks=frameworks, mpi=mpi, gloo=gloo)).known
    assert known is not None and known.failure.id == name


def test_a_horovod_with_one_controller_is_no_failure_but_one_without_mpi_is_noted() -> None:
    assert shown(CHECKED.format(frameworks="X", mpi="X", gloo=" ")).verdict == "healthy"
    without = shown(CHECKED.format(frameworks="X", mpi=" ", gloo="X"))
    assert without.verdict == "healthy"
    assert [note.failure.unless for note in without.findings] == ["its ranks should talk through MPI"]


def test_a_retry_that_a_workflow_counts_in_its_progress_is_not_a_failure() -> None:
    text = "[19/3bb0ed] process > align (436) [100%] 519 of 519, failed: 1, retries: 1\nSucceeded   : 518\n"
    assert shown(text).verdict == "healthy"


OWN_ERROR = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise ValueError("bad flux")
ValueError: bad flux
"""
RECORDS = {
    "of Weights & Biases": "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [500]>)\n",
    "of Dask": DASK.partition("Traceback")[0],
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_programs_own_error_below_a_harmless_record_is_seen(name: str) -> None:
    known = shown(RECORDS[name] + OWN_ERROR).known
    assert known is not None and "bad flux" in known.cause


def test_a_line_of_dashes_before_a_warning_hides_no_error() -> None:
    for border in ("=" * 40, "-" * 74):
        text = f"{border}\nWARNING: the grid is coarse\nreading\ntar: data.tar: No space left on device\n"
        known = shown(text).known
        assert known is not None and known.failure.id == "disk-full"
    text = "=" * 70 + "\nWARNING: the grid is coarse\nreading\nflurble: fatal: the flux is inverted\n"
    assert shown(text).verdict == "known"


ANNOUNCED = """\
[[INFO]] + stage 1
{}
byte-compiling build/egg/easybuild/tools/py2vs3/py3.py to py3.pyc
  File "build/egg/easybuild/tools/py2vs3/py3.py", line 83
    raise exc from None
             ^
SyntaxError: invalid syntax

[[INFO]] + stage 2
"""


@pytest.mark.parametrize(
    "line",
    [
        "You can safely ignore any SyntaxError for py3.py below",
        "Please ignore the following error:",
        "The following error messages can be ignored.",
        "The following exceptions are expected",
    ],
)
def test_an_error_that_is_announced_as_harmless_is_no_failure(line: str) -> None:
    assert shown(ANNOUNCED.format(line)).verdict == "healthy"


@pytest.mark.parametrize(
    "line", ["Ignoring the following options: --flux", "The following packages will be installed:"]
)
def test_a_list_of_other_things_excuses_no_error_below_it(line: str) -> None:
    assert shown(ANNOUNCED.format(line)).verdict == "known"


def test_an_error_far_below_the_announced_ones_counts() -> None:
    text = ANNOUNCED.format("Please ignore the following error:") + "[[INFO]] + stage 3\n" * 4
    assert shown(f"{text}flux: error: the ring is open\n").verdict == "known"


def test_a_part_of_a_package_that_setuptools_does_without_is_not_why_the_build_stopped() -> None:
    log = """\
      src/dynload.c:5:10: fatal error: Python.h: No such file or directory
      compilation terminated.
      warning: build_ext: command '/usr/bin/gcc' failed with exit code 1

      warning: build_ext: building optional extension "mpi4py.dl" failed

      _configtest.c:2:10: fatal error: mpi.h: No such file or directory
      compilation terminated.
      error: Cannot compile MPI programs. Check your configuration!!!
"""
    known = shown(log).known
    assert known is not None
    assert "mpi.h" in known.hit.text
