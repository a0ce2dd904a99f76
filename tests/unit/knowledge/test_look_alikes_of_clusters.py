"""Lines of launchers, schedulers and scientific programs that look alike: the words of the line decide the entry."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

LOST = "[n1:13] [[27891,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file orte/util/show_help.c at line 501"
LINES = {
    # A line, and the entry that explains it.
    "[mpiexec@n1] HYDT_bscd_pbs_wait_for_completion (pbs_wait.c:67): tm_poll(obit_event) failed with TM error 17002": (
        "mpi-outside-of-pbs"
    ),
    "[mpiexec@n1] HYDT_bsci_launcher_pbs_init (pbs_init.c:33): tm_init() failed with TM error 17002": "mpi-outside-of-pbs",
    "[n1:17814] [[3,1],9] usock_peer_send_blocking: send() to socket 12 failed: Transport endpoint is not connected (107)": (
        "mpi-local-socket"
    ),
    "ls: cannot access '/cvmfs/flux': Transport endpoint is not connected": "fuse-mount-gone",
    "/usr/bin/python3: No module named flurble": "python-m-without-module",
    "ModuleNotFoundError: No module named 'flurble'": "module-not-installed",
    "    99% |######| 360.3MB 32.1MB/s eta 0:00:01Killed": "killed",
    "n1 spank-epilog[3]: error: pyxis:     mkdir: cannot create directory '/run/enroot': Read-only file system": (
        "read-only-file-system"
    ),
    "slurmstepd: error: pyxis: couldn't mount the squashfs file": "pyxis",
    "E tensorflow/core/common_runtime/bfc_allocator.cc:246] tried to allocate 0 bytes": "allocates-nothing",
    "E tensorflow/stream_executor/cuda/cuda_driver.cc:903] failed to allocate 6.69M (7012352 bytes) from device: CUDA_ERROR": (
        "gpu-allocation-refused"
    ),
    "RuntimeError: Distributed package doesn't have NCCL built in": "torch-backend-missing",
    "parsl.executors.high_throughput.errors.WorkerLost: Task failure due to loss of worker 0 on host n1": "worker-process-died",
    "Command not found: flurble": "command-not-found",
    "n1:26923:27059 [2] NCCL INFO misc/socket.cc:505 -> 2 (Operation now in progress)": "nccl-connect-retries",
    "n1:123:456 [0] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'": "nccl-nvls",
    "  /modules/flux.lua: /usr/share/lmod/lmod/libexec/ModuleA.lua:676: Did not find mpath in mA": "module-cache",
    "error: unpacking of archive failed on file /dev: cpio: chown failed - Operation not permitted": "image-without-root",
    "MPI_File_open(112): open failed on a remote node": "mpi-io-file-system",
    "[n1:6] PMIX ERROR: OUT-OF-RESOURCE in file ../src/mca/common/dstore/dstore_segment.c at line 208": "mpi-session-folder",
    "  ERROR: Conflicting flux is loaded": "module-family",
    "Lmod has detected the following error: flux: you are not in the group flux6; ask the help desk": "module-message",
    "job.sh: line 3: setenv: command not found": "script-of-other-shell",
    "train.py: line 1: import: command not found": "script-of-python",
    "a.sh: line 3: cd: $'/tmp\\r': No such file or directory": "core-file-crlf",
    "job.sh: line 1:     6 File size limit exceededdd if=/dev/zero of=out.dat": "file-size-limit",
    "tar: a: Wrote only 512 of 10240 bytes": "disk-full",
    "fatal: refusing to merge unrelated histories": "git-reports",
    "fatal: the case is for 2 processes": "reported-error",
    'mpirun: Error: unknown option "-np"': "mpi-own-program-missing",
    "/usr/share/lmod/lmod/init/bash: line 109: /apps/lmod/8.7/libexec/lmod: No such file or directory": "module-command-missing",
    "Failed to create a completion queue (CQ):": "ib-completion-queue",
    "mpirun has exited due to process rank 1 on\nnode node01 exiting improperly. There are three reasons this could occur:\n\n"
    '1. this process did not call "init" before exiting': "mpi-exit-without-finalize",
    "mpirun ended with 124": "ended-by-timeout",
    "  Failed to pull singularity image\n  message:\n    ERROR: You must install squashfs-tools to build images": (
        "squashfs-tools-missing"
    ),
    "flux-broker: init: The directory '/g/.flux' does not exist.  Have you run \"flux keygen\"?": "reported-error",
    "slurmctld[25]: error: chdir(/cluster/var/slurm): No such file or directory\nslurmctld is stopped": "reported-error",
    "  ERROR: Conflicting 'mpi' is loading\n\nLoading mpi/2021\n  ERROR: Load of requirement '/opt/mpi' failed": (
        "module-conflict-loading"
    ),
    "symbol cublasLtCreate version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference": (
        "undefined-symbol"
    ),
    "ERROR    failed (exitcode: -7) local_rank: 0 (pid:      api.py:672": "bus-error",
    "NvmlException: NVML_ERROR_LIB_RM_VERSION_MISMATCH": "driver-parts-differ",
    "0.022s: job.exception type=alloc-check severity=0 resources already allocated\n0.024s: job.finish": "reported-error",
    "  Function:    ibv_create_cq()\n  Error:       Device or resource busy (errno=16)": "ib-completion-queue",
    "mlx5_core 0000:61:00.0: mlx5_cmd_check:795:(pid 5): ALLOC_UAR(0x802) op_mod(0x0) failed, status limits exceeded(0x8)": (
        "ib-completion-queue"
    ),
    "[2024-05-26 11:26:16,798 E 177479 178526] gcs_rpc_client.h:554: Failed to connect to GCS within 60 s": "reported-error",
    "EXITING: because of fatal EXECUTION error: something went wrong with forking readFilesCommand": "reported-error",
    'Fehler in sprintf("%05i: %s", inds, msgs) : \n  Argumente passen nicht zueinander': "reported-error",
    "FATAL ERROR: Unable to open extended system file.\n[Partition 0][Node 0] End of program": "reported-error",
    'proot error: execve("/opt/apptainer/bin/mksquashfs"): Operation not permitted': "container-proot-denied",
    "FATAL:   while creating squashfs: /opt/bin/mksquashfs command failed: exit status 1: x": "squashfs-not-packed",
    "FATAL:   while creating squashfs: /opt/bin/mksquashfs command failed: exit status 1: No space left on device": (
        "container-build-space"
    ),
    "FORCE-TERMINATE AT Data unpack would read past end of buffer:-26 - error grpcomm_direct.c(359)": "mpi-releases-differ",
    "Waiting in store based barrier to initialize process group for rank: 0 (world_size=4, worker_count=16, timeout=0:01:00)": (
        "torch-store-of-other-run"
    ),
    "ib_iface.c:1138 UCX  ERROR ibv_create_cq(cqe=256) failed: Connection timed out": "ucx-adapter",
    "  165028 [F0D43740] 0x01 -> osm_vendor_bind: ERR 5426: Unable to register class 129 version 1": "reported-error",
    "Jan 26 13:14:57.552748 job-ingest.err[16639]: fluid_init failed": "reported-error",
    "launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9": "killed",
}
HARMLESS = (
    "1/1 flux EXPECTEDFAIL    0.02s   exit status 1",
    "[n18:821321] PMIX ERROR: OUT-OF-RESOURCE in file base/bfrop_base_unpack.c at line 750",
    LOST,
    "[n1:00272] [[8707,0],1] orted_cmd: received tree_spawn",
    "[2018-01-08T07:25:06.072] error: Could not open node state file /var/spool/slurm/node_state: No such file or directory",
    "34e6de8 fix error: segfault in solver",
    "error: gres_device_major: stat(/dev/nvidia2): No such file or directory\n[2020-10-08] Running as primary controller",
    "Could NOT find PkgConfig (missing:  PKG_CONFIG_EXECUTABLE)\nWill not provide a pkg-config file.\nConfiguring done",
    "L_2 Error: [0.0523783, < 1.0e-11]",
    'openat(AT_FDCWD, "/lib/libz.so", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)',
)
NO_FOLDER = "slurmstepd: error: couldn't chdir to `/home/ada/run': No such file or directory: going to /tmp instead"
POTENTIAL = "ERROR on proc 0: cannot open eam potential file Cu.eam: No such file or directory (src/potential_file_reader.cpp:59)"


@for_each("line", LINES)
def test_the_words_of_a_line_decide_between_look_alikes(line: str) -> None:
    known = explain([f"{line}\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == LINES[line]


@for_each("line", HARMLESS)
def test_a_line_that_only_looks_like_a_failure_accuses_no_one(line: str) -> None:
    assert explain([f"step 1\n{line}\nstep 2\n".encode()], known_failures()).verdict == "healthy"


def test_a_help_text_that_mpirun_lost_does_not_hide_the_error_of_the_program() -> None:
    known = explain([f"{POTENTIAL}\n{LOST}\n".encode()], known_failures()).known
    assert known is not None and "Cu.eam" in known.cause


def test_memory_that_tensorflow_asked_for_in_vain_is_harmless_if_the_training_goes_on() -> None:
    line = next(line for line in LINES if "failed to allocate" in line)
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
