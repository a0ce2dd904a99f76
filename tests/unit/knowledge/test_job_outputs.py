"""Outputs of jobs and builds: which of their lines only look like a failure, and which failures they show."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([f"{text}\n".encode()], known_failures())


PROBE = """\
Performing C SOURCE FILE Test CMAKE_HAVE_LIBC_PTHREAD failed with the following output:
Change Dir: /home/ada/build/CMakeFiles/CMakeTmp

Run Build Command(s):/usr/bin/make cmTC_3ad42/fast
src.c:(.text+0x3e): undefined reference to `pthread_create'
collect2: error: ld returned 1 exit status
make[1]: *** [cmTC_3ad42] Error 1
make: *** [cmTC_3ad42/fast] Error 2

"""
MPI_PROBE = """\
Determining if the include file mpi.h exists failed with the following output:
/home/ada/CheckIncludeFile.c:1:10: fatal error: mpi.h: No such file or directory
compilation terminated.

"""
BROKEN = """\
Determining if the C compiler works failed with the following output:
/usr/bin/ld: cannot find crt1.o: No such file or directory
collect2: error: ld returned 1 exit status
"""
WRITTEN_DOWN = """\
---
events:
  -
    kind: "try_compile-v1"
    backtrace:
      - "/usr/share/cmake-3.31/Modules/CheckIncludeFile.cmake:109 (try_compile)"
    buildResult:
      stdout: |
        CheckIncludeFile.c:1:10: fatal error: mpi.h: No such file or directory
      exitCode: 1
"""


@pytest.mark.parametrize(
    "text",
    [PROBE, MPI_PROBE, PROBE + MPI_PROBE, MPI_PROBE + PROBE, WRITTEN_DOWN],
    ids=["c", "mpi", "both", "turned", "yaml"],
)
def test_a_file_with_the_probes_of_cmake_shows_no_failure(text: str) -> None:
    assert shown(text).verdict == "healthy"


def test_a_compiler_that_does_not_work_is_no_probe() -> None:
    known = shown(PROBE + BROKEN).known
    assert known is not None and known.failure.id == "compiler-without-gcc"


def test_what_follows_a_probe_in_the_log_of_a_build_counts() -> None:
    build = "-- Configuring\n" * 10
    assert shown(build + MPI_PROBE + "make: *** No rule to make target 'flux'.  Stop.").verdict != "healthy"
    broken = "solve.c:3:10: fatal error: mpi.h: No such file or directory\nmake: *** [solve.o] Error 1\n"
    known = shown(build + MPI_PROBE + broken + "x\n" * 3000 + PROBE).known
    assert known is not None and known.failure.id == "mpi-not-found"


HEALTHY = (
    " TESTING RELATIVE ERROR over r ranging from 0.0 to cutoff",
    "| CHECK switch(x): max rel err =   0.2738E-14   at   2.422500",
    "Ewald error estimate:   0.3210E-03",
    "CondaError: Run 'conda init' before 'conda deactivate'",
    "Unable to init server: Could not connect: Connection refused\n(train.py:4711): Gdk-CRITICAL **: a: assertion 'b' failed",
    "    0.5          1560601        572      2728.3      1505     20681     1647.9  cuEventRecord",
    "[n1:23521] mca_base_component_repository_open: unable to open mca_oob_ud: libosmcomp.",
    "E external/xla/cuda_timer.cc:86] Delay kernel timed out: measured time has sub-optimal accuracy.",
    "WARNING:tensorflow:AutoGraph could not transform A and will run it as-is.\nCause: module 'gast' has no attribute 'Index'",
)
DASHES = "-" * 74
PMIX = f"""\
{DASHES}
A requested component was not found, or was unable to be opened.  This
means that this component is either not installed or is unable to be
used on your system (e.g., sometimes this means that shared libraries
that the component requires are unable to be found/loaded).  Note that
PMIx stopped checking at the first component that it did not find.

Host:      c001
Framework: psec
Component: munge
{DASHES}
hello from rank 0 of 1"""


@for_each("text", [*HEALTHY, PMIX])
def test_what_only_sounds_like_a_failure(text: str) -> None:
    assert shown(f"starting\n{text}").verdict == "healthy"


def test_a_message_of_pmix_that_was_cut_is_no_failure() -> None:
    assert shown(PMIX.partition("Framework")[0]).verdict == "healthy"


def test_a_part_that_open_mpi_lacks_still_counts() -> None:
    assert shown(PMIX.replace("PMIx stopped", "Open MPI stopped").replace("psec", "btl")).verdict == "known"


CONSEQUENCES = (
    "Command '['flower-simulation', '--app', '.']' returned non-zero exit status 1.",
    "======\n   Job Id:             42.gadi-pbs\n   Exit Status:        1",
    "2023-11-16 22:21:10,196 INFO    SenderThread:41702 [sender.py:send_exit():585] handling exit code: 1",
)


@pytest.mark.parametrize("text", CONSEQUENCES)
def test_a_report_that_only_says_that_a_program_failed_leaves_the_cause_unknown(text: str) -> None:
    assert shown(text).verdict == "unknown"
    assert shown(text.replace("status 1", "status 0").replace(" 1", " 0")).verdict == "healthy"


NAMED = {
    "/usr/include/string.h:652:42: error: ‘memcpy’ was not declared in this scope": "nvcc-glibc-string",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "gpu-broken",
    "NVRM: Xid (PCI:0000:41:00): 79, pid=4711, GPU has fallen": "gpu-broken",
    "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ": "dataloader-worker",
    "Error for command \"run\": unknown shorthand flag: 'v' in -v": "argument-error",
    "[n1:24108] [ 6] /usr/lib64/ucx/libuct_ib.so.0(uct_ib_mlx5_completion_with_err+0x4c9)[0x7f]": "infiniband",
    "Command '['flower-simulation']' returned non-zero exit status 1.\nKeyError: 'a'": "error-in-program",
}


@for_each(("text", "name"), NAMED.items())
def test_what_whole_outputs_name(text: str, name: str) -> None:
    known = shown(text).known
    assert known is not None
    assert known.failure.id == name


def test_a_script_of_a_package_that_spack_builds_is_not_the_users_program() -> None:
    stage = "/tmp/ada/spack-stage/spack-stage-wirecell-0.30.2-ypfuxuq53kzpgin5xlc63b2q5lqa6axn/spack-src"
    place = f'  File "{stage}/wscript", line 24, in version\n    raise ValueError("no")'
    text = f"Traceback (most recent call last):\n{place}\nValueError: no flux"
    known = shown(text).known
    assert known is not None
    assert "the build of `wirecell` stopped" in known.cause
    assert "pip" not in known.hint


TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 3, in <module>
    {0}()
NameError: name '{0}' is not defined
"""
NOT_IN_DATA = {
    "a guarded command": "+ cp a b\ncp: cannot stat 'a': No such file or directory\n+ true\n+ make",
    "logging": "10it [00:07]--- Logging error ---\n"
    + TRACEBACK.format("flux")
    + 'Call stack:\n  File "a.py", line 3, in a\n',
    "a cgroup": "slurmstepd: error: Unable to move pid 42 to init root cgroup /sys/fs/cgroup",
    "mixed precision": "UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling",
    "words": '{"time":"2025-11-03T20:30:10","level":"INFO","msg":"api: Cannot connect: error: timed out"}',
    "a table of a fit": "NO.   NAME      VALUE            ERROR          SIZE\nEXTERNAL ERROR MATRIX.    NDIM=  25    NPAR=  3",
    "nothing to remove": "rm: *.so: No such file or directory\ncc -c a.c",
    "another requirement": "Loading a/4.1.5\n  ERROR: Load of requirement cuda/12 failed\n  Loading requirement: hwloc/2.2.0",
    "the end": "Deferred error: Bad profiling data\nFinished Training",
    "tests": "Number of FAILED  tests 0\nNumber of WRONG   tests 0",
}


@for_each("name", NOT_IN_DATA)
def test_what_ends_no_run(name: str) -> None:
    assert shown(NOT_IN_DATA[name]).verdict == "healthy"


FOUND = {
    "ModuleNotFoundError: No module named 'pip._internal.cli.main'": "pip-two-versions",
    "ModuleNotFoundError: No module named 'pip'": "build-needs-module",
    "socket.gaierror: [Errno 8] nodename nor servname provided, or not known": "no-network",
    "OSError: [Errno 8] Exec format error: './a'": "wrong-architecture",
    "ImportError: cannot import name 'Plugin' from 'config' (unknown location)": "module-is-a-folder",
    "[SLURM STDERR fallback] srun: error: n1: task 0: Killed": "killed-with-others",
    "exitcode  : 1 (pid: 2680836)": "torchrun-worker-failed",
    "W tensorflow/core/framework/op_kernel.cc:975] Data loss: file is too short to be an sstable": "saved-file-damaged",
    "AttributeError: 'DistributedDataParallel' object has no attribute 'vit'": "wrapped-model",
    "AttributeError: 'DistributedOptimizer' object has no attribute '_hyper'": "horovod-keras-optimizer",
    "run.sh: line 41: run.num_workers=0: command not found": "line-not-continued",
    "srun: Job step aborted: Waiting up to 32 seconds\nslurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2025 ***": "job-cancelled",
    "srun: error: n1: task 0: Exited with exit code 1\nslurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2 ***": "task-failed",
    " exit status of rank 3: killed by signal 9 \n exit status of rank 2: killed by signal 11 ": "segmentation-fault",
    "WorkflowError in line 562 of /home/ada/Snakefile:\n'Wildcards' object has no attribute 'memory'": "reported-error",
    "Jul 13 19:12:47 SetKernelStatus [Error]: BadProperty": "reported-error",
    "[WARNING] sbatch: error: Batch job submission failed: Job violates accounting/QOS policy": "job-limits",
    "Failed to modify QP to RTR: Connection timed out": "nccl-infiniband",
    "1.py: Resource exhausted: Failed to allocate request for 1.5GiB on device ordinal 0": "gpu-out-of-memory",
    "launcher.c:4:21: error: mpi.h: No such file or directory": "mpi-not-found",
    "ibv_create_cq() failed: Device or resource busy": "infiniband",
    "RNA pipeline failed: Cell type clustering required for it.": "reported-error",
    "** Severe  ** invalid Construction Name": "reported-error",
    "----- Begin Fatal Exception\nException Message:\nMissingParameter: no such key": "reported-error",
    "[E::main_mem] fail to open file `a.fq'.": "reported-error",
    "ERROR: Could not find QM output file!\nFATAL ERROR: (unknown error): No such file or directory": "reported-error",
}


@for_each(("text", "name"), FOUND.items())
def test_what_is_found_in_an_output(text: str, name: str) -> None:
    explanation = shown(text)
    assert explanation.findings and explanation.findings[0].failure.id == name, explanation


LAST = (
    '  warnings.warn(f"Failed to load video {path}: {e}")\nsrun: error: n1: task 0: Exited with exit code 1',
    '[n1:2] Set MCA parameter "orte_base_help_aggregate" to 0\nsrun: error: n1: task 0: Exited with exit code 1',
)


@pytest.mark.parametrize("text", LAST)
def test_no_last_words_of_a_program(text: str) -> None:
    assert shown(text).verdict == "unknown"


def test_a_number_is_no_message() -> None:
    assert shown("Error code: 0").verdict == "unknown"
    assert shown("WorkflowError:\nAt least one job did not complete successfully.").verdict == "unknown"


def test_of_two_errors_the_one_that_says_something_is_quoted() -> None:
    known = shown(
        "ERROR: Could not find QM output file!\nFATAL ERROR: (unknown error): No such file or directory"
    ).known
    assert known is not None and "QM output file" in known.cause


def test_a_log_that_ends_within_a_traceback_has_failed() -> None:
    place = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\n    main()\n'
    assert shown(f"Finished training! Saving model\n{place}").verdict == "unknown"
    assert shown(f"{place}Finished training! Saving model\nTraining complete").verdict == "healthy"


def test_spacks_own_code_is_not_the_users_program() -> None:
    places = (
        '  File "spack/bin/spack", line 48, in <module>\n  File "spack/lib/spack/spack/main.py", line 605, in main\n'
    )
    known = shown(f"Traceback (most recent call last):\n{places}KeyError: 'flux'").known
    assert known is not None and not known.failure.program, known


def test_what_a_package_lacks_while_it_is_built() -> None:
    place = '  File "/tmp/pip-install-lw/cudf-cu11/setup.py", line 137, in <module>\n    {}\n'
    error = "FileNotFoundError: [Errno 2] No such file or directory: '{}'\n"
    placeholder = 'raise RuntimeError(open("ERROR.txt", "r").read())'
    known = shown("Traceback (most recent call last):\n" + place.format(placeholder) + error.format("ERROR.txt")).known
    assert known is not None and "`cudf-cu11` is a placeholder" in known.cause and not known.failure.program
    known = shown("Traceback (most recent call last):\n" + place.format("read('a/b.h')") + error.format("a/b.h")).known
    assert known is not None and "the build of `cudf-cu11` does not find `a/b.h`" in known.cause


def test_an_import_in_a_module_that_reads_saved_objects_reads_none() -> None:
    place = '  File "/env/lib/python3.8/site-packages/torch/serialization.py", line 18, in {}\n    {}\n'
    error = "ModuleNotFoundError: No module named 'flux'"
    for function, code, name in (
        ("<module>", "import flux", "module-not-installed"),
        ("find_class", "return super().find_class(a)", "saved-by-another-version"),
    ):
        known = shown("Traceback (most recent call last):\n" + place.format(function, code) + error).known
        assert known is not None and known.failure.id == name


def test_an_error_number_of_the_network_is_not_about_files() -> None:
    known = shown("flux: error: fi_av_open(domain): No such file or directory").known
    assert known is not None and "that means" not in known.cause
    known = shown("flux: error: open(domain): No such file or directory").known
    assert known is not None and "that means" in known.cause


def test_what_a_shell_interprets_never_gets_into_a_hint() -> None:
    line = "[n1:5] mca:base:process_repository_item filename {}/mca_preg_a has bad prefix - expected:"
    good, bad = shown(line.format("/usr/lib64/pmix-4.2")).known, shown(line.format("/usr/$(touch${IFS}x)")).known
    assert good and bad and "`ls -lt /usr/lib64/pmix-4.2`" in good.hint and "`ls -lt FOLDER`" in bad.hint
    assert "$(touch" in bad.cause
