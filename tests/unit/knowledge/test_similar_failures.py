"""Lines that look alike and mean different things, tool by tool; and healthy logs with the words of a failure."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([f"{text}\n".encode()], known_failures())


OWN_ERROR = """
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise ValueError("bad flux")
ValueError: bad flux"""
HEALTHY = "no failure"
DENIED = (
    'audit: type=1400 audit(1772288942.112:254): apparmor="DENIED" operation="open" class="file" profile="{}" name="/a"'
)
AVC = 'type=AVC msg=audit(13.53:184): avc:  denied  { read } for  pid=2029 comm="flux" name="a" dev="dm-0" tclass=file'

SLURM_AND_NODES = {
    DENIED.format("/usr/sbin/cups-browsed") + OWN_ERROR: "error-in-program",
    DENIED.format("snap.firefox.firefox") + "\nrun.sh: line 3: 4711 Segmentation fault  ./flux": "segmentation-fault",
    DENIED.format("/opt/flux/bin/flux") + OWN_ERROR: "error-in-program",
    DENIED.format("/usr/sbin/rsyslogd"): HEALTHY,
    f"{AVC} permissive=1": HEALTHY,
    "slurmstepd: error: '/sys/fs/cgroup/cpuset/slurm/tasks' failed: No space left on device": "cgroups-used-up",
    "runc: failed to write 3: write /sys/fs/cgroup/cpuset/a/cgroup.procs: no space left on device": "cgroups-used-up",
    "slurmstepd: error: unable to create cgroup '/sys/fs/cgroup/memory/slurm/uid_1' : No space left on device": "cgroups-used-up",
    "mkdir /sys/fs/cgroup/memory/docker/1f: no space left on device": "cgroups-used-up",
    "inotify_add_watch /sys/fs/cgroup/system.slice: no space left on device": "file-watches-used-up",
    "OSError: [Errno 28] inotify watch limit reached": "file-watches-used-up",
    "OSError: [Errno 28] No space left on device: '/scratch/u/a'": "disk-full",
    "srun: error: Unable to allocate resources: Zero Bytes were transmitted or received": "scheduler-down",
    "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received": "scheduler-down",
    "srun: error: slurm_send_node_msg: Zero Bytes were transmitted or received": "scheduler-down",
    "slurm_load_partitions: Zero Bytes were transmitted or received": "scheduler-down",
    "srun: error: Unable to allocate resources: Requested GPUs not available": "gpu-count-of-job",
    "srun: error: Application launch failed: Socket timed out on send/recv operation": "launch-not-answered",
    "srun: error: Task launch for 8.0 failed on node n4: Socket timed out on send/recv operation\n"
    "srun: error: Application launch failed: Socket timed out on send/recv operation": "node-does-not-answer",
    "Resources unavailable: GPU: avail 2 requested 4, the job waits in the queue\nstep 1": HEALTHY,
    "slurmstepd: error: execve(): module: No such file or directory": "srun-shell-word",
    "slurmstepd: error: execve(): conda: No such file or directory": "script-missing-on-node",
    "slurmstepd: error: Could not open stdout file: Permission denied": "slurm-output-not-opened",
    "slurmstepd: error: Could not open stdout file /home/u/my logs/a: No such file or directory": "slurm-output-not-opened",
}

BORDER = "-" * 74
EXECUTABLE = f"""{BORDER}
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 0; it may have occurred for other processes as well.

Node:       n1
Executable: {{}}
{BORDER}"""
REFUSED = """[n1:42] *** An error occurred in {}
[n1:42] *** reported by process [3517775873,0]
[n1:42] *** on communicator MPI_COMM_WORLD
[n1:42] *** {}
[n1:42] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
[n1:42] ***    and potentially your MPI job)"""
MPI = {
    "Fatal error in PMPI_Comm_size: Invalid communicator, error stack:\n"
    "PMPI_Comm_size(124): MPI_Comm_size(comm=0x0, size=0x7ffc4c1) failed": "mpi-communicator-unset",
    "PMPI_Allreduce(110): MPI_Allreduce(sbuf=0x1, count=1, MPI_INT, MPI_SUM, comm=0x0, x) failed": "mpi-communicator-unset",
    REFUSED.format("MPI_File_write", "MPI_ERR_NO_SPACE: no space left on device"): "disk-full",
    REFUSED.format("MPI_File_open", "MPI_ERR_NO_SUCH_FILE: no such file or directory"): "ompio-file",
    REFUSED.format("MPI_File_open", "MPI_ERR_ACCESS: invalid access to file"): "ompio-file",
    REFUSED.format("MPI_File_write_all", "MPI_ERR_IO: input/output error"): "ompio-file",
    REFUSED.format("MPI_Comm_spawn", "MPI_ERR_SPAWN: could not spawn processes"): "mpi-programs-not-connected",
    REFUSED.format("MPI_Comm_connect", "MPI_ERR_PORT: invalid port"): "mpi-programs-not-connected",
    REFUSED.format("MPI_Info_set", "MPI_ERR_INFO: invalid info object"): "mpi-message-truncated",
    REFUSED.format("MPI_Win_fence", "MPI_ERR_WIN: invalid window"): "mpi-message-truncated",
    f"{BORDER}\nThe system has exhausted its available ranks - terminating\n{BORDER}": "mpi-mapping-refused",
    f"{BORDER}\nYour job failed to map. Either no mapper was available, or none\nof the available mappers was able to perform "
    f"the requested\nmapping operation.\n{BORDER}": "mpi-mapping-refused",
    "Executable: LD_LIBRARY_PATH": "mpi-program-is-option",
    EXECUTABLE.format("-genv"): "mpi-program-is-option",
    EXECUTABLE.format("4"): "mpi-executable-missing",
    "Executable: HPGMG_FV\nRanks: 4": HEALTHY,
    "Executable: 4\nRanks: 4": HEALTHY,
    "[n1:6] btl: tcp: Match incoming connection from [[2,1],1] 44.1.0.4 with locally known IP 2.2.2.77 failed (iface 0/4)!"
    + "\ncell is computed" * 60: HEALTHY,
}

NO_LIBRARY = (
    "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library '{0}'; dlerror: {0}: x"
)
CUDA_AND_NCCL = {
    "Last error:\nCuda failure 'unspecified launch failure'\ntorch.OutOfMemoryError: CUDA out of memory.": "gpu-out-of-memory",
    "Cuda failure 'an illegal memory access was encountered'": "cuda-illegal-access",
    "Cuda failure 1 'invalid argument'": "nccl-cuda-error",
    "Cuda failure 'initialization error'": "nccl-cuda-says",
    "n1:71:92 [0] enqueue.cc:100 NCCL WARN Cuda failure 3 'initialization error'": "nccl-cuda-says",
    "Cuda failure 2 'out of memory'": "nccl-gpu-memory",
    "n1: Test CUDA failure common.cu:941 'out of memory'": "gpu-out-of-memory",
    "Cuda failure 802 'system not yet initialized'": "gpu-fabric-manager",
}

MOVED = "https://ftp.x.org/a-1.tar.gz: DetailedHTTPError: GET https://ftp.x.org/a-1.tar.gz returned 404: Not Found"
NO_FILE = "No such file or directory"
BUILDS = {
    f"==> Error: All fetchers failed for spack-stage-a-1\n    {MOVED}": "source-moved",
    f"==> Warning: {MOVED}\n==> Fetching https://y.org/a-1.tar.gz\na.c:3:1: error: unknown type name 'flux'": "compile-error",
    "GET https://example.org/images/1234.jpg returned 404\n5999 of 6000 images": HEALTHY,
    f"/usr/include/c++/12/cstdlib:75:15: fatal error: stdlib.h: {NO_FILE}": "cxx-headers-in-wrong-order",
    f"/usr/include/c++/12/cmath:41:10: fatal error: bits/c++config.h: {NO_FILE}": "compiler-headers-missing",
    f"flux.cpp:3:10: fatal error: features.h: {NO_FILE}": "header-missing",
    f"flux.cpp:3:10: fatal error: fluxmath.h: {NO_FILE}": "header-missing",
    "flux.cpp:1:10: fatal error: 'cmath' file not found": "compiler-headers-missing",
    f"flux.cpp:1:10: fatal error: vector: {NO_FILE}": "compiler-headers-missing",
    f"flux.c:1:10: fatal error: math.h: {NO_FILE}": "compiler-headers-missing",
}

MOUNT = "FATAL:   container creation failed: mount hook function failure: mount "
OVERLAY = f"{MOUNT}overlay->/a/final error: while mounting overlay: can't mount overlay filesystem to /a/final: "
CONTAINERS = {
    f"{OVERLAY}operation not permitted": "container-overlay-refused",
    f"{OVERLAY}invalid argument": "container-overlay-refused",
    f"{OVERLAY}stale file handle": "stale-file-handle",
    f"{MOUNT}/proc/self/fd/8->/a/session/overlay-images/0 error: while mounting overlay image: "
    "can't mount ext3 filesystem: invalid argument": "overlay-image-not-mounted",
    f"{MOUNT}/proc/self/fd/8->/a/session/overlay-images/0 error: while mounting image /proc/self/fd/8: "
    "failed to mount ext3 filesystem: read-only file system": "overlay-image-not-mounted",
    "flurble: 12 files, 0 errors, 3 warnings": HEALTHY,
    "error summary: 0 failures": HEALTHY,
}

STARTED = """Traceback (most recent call last):
  File "a.py", line 3, in <module>
    subprocess.run(['sbatch', 'a.sh'])
  File "/usr/lib/python3.11/subprocess.py", line 548, in run
    with Popen(*popenargs, **kwargs) as process:
FileNotFoundError: [Errno 2] No such file or directory: b'sbatch'"""
LISTED = """Traceback (most recent call last):
  File "a.py", line 3, in <module>
    os.listdir('conda')
FileNotFoundError: [Errno 2] No such file or directory: 'conda'"""
MODULES_AND_FILES = {
    "/opt/libexec/modulefiles/foo.lua:3: attempt to call global 'prepnd_path' (a nil value)": "modulefile-broken",
    "/opt/lmod/lmod/libexec/SitePackage.lua:12: attempt to index a nil value (global 'x')": "modulefile-broken",
    "/opt/lmod/8.7/libexec/../tools/json.lua:12: attempt to index a nil value (local 'x')": "lmod-internal",
    "/usr/share/lmod/lmod/libexec/FrameStk.lua:127: attempt to index local 'mname' (a boolean value)": "lmod-internal",
    "OSError: cannot write /scratch/PROFILES/a: Input/output error": "io-error",
    "tar: /home/rdmaier/a: Cannot read: Input/output error": "io-error",
    "libibverbs: ibv_create_qp failed: Input/output error": "nccl-infiniband",
    STARTED: "command-not-found",
    LISTED: "program-or-file-not-found",
    "torch.save: write error: wrote 39776036 blocks instead of 41251350": "short-write",
    "flurble: fwrite: short write": "short-write",
    "short write: 100 of 200 bytes": "short-write",
    "wrote 100 items of 6000\nwrote 200 items of 6000": HEALTHY,
    "benchmark: short write latency 12.4 us": HEALTHY,
    "short write: (groupid=0, jobs=1): err= 0: pid=1": HEALTHY,
    "urllib3.exceptions.LocationParseError: Failed to parse: https://data.example.org:abc/x": "address-malformed",
    "requests.exceptions.InvalidProxyURL: Please check proxy URL. It is malformed": "address-malformed",
}

NO_OPTIMIZER = "ValueError: Could not interpret optimizer identifier: "
NO_LAYER = "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: "
NOT_HERMITIAN = " WARNING: Sub-Space-Matrix is not hermitian in DAV           16   1.5817296032709554\n"
MXNET = "Available Frameworks:\n    [ ] TensorFlow\n    [ ] PyTorch\n    [{}] MXNet\n\nAvailable Controllers:\n    [X] MPI\n"
JOINING = "nitializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4"
TRAINING_AND_APPLICATIONS = {
    f"{NO_OPTIMIZER}<keras.src.optimizers.adam.Adam object at 0x7f>": "keras-mixed",
    f"{NO_OPTIMIZER}<keras.optimizers.Adam object at 0x7f>": "keras-mixed",
    f"{NO_OPTIMIZER}adam_v2": "keras-3",
    f"{NO_LAYER}<tf_keras.src.layers.core.dense.Dense object at 0x1>": "keras-mixed",
    f"{NO_LAYER}<tensorflow_hub.keras_layer.KerasLayer object at 0x7f>": "keras-mixed",
    "train.py: error: unrecognized arguments: --local-rank 1": "torch-local-rank",
    "train.py: error: unrecognized arguments: --local_rank=1": "torch-local-rank",
    MXNET.format(" "): "horovod-nothing-built",
    MXNET.format("X"): HEALTHY,
    f"{NOT_HERMITIAN} reached required accuracy - stopping structural energy minimisation\n writing wavefunctions": HEALTHY,
}

SIMILAR = {
    **SLURM_AND_NODES,
    **MPI,
    **CUDA_AND_NCCL,
    **BUILDS,
    **CONTAINERS,
    **MODULES_AND_FILES,
    **TRAINING_AND_APPLICATIONS,
}


@for_each("log", SIMILAR)
def test_a_line_is_explained_by_its_own_entry_although_others_look_alike(log: str) -> None:
    explanation = shown(log)
    if SIMILAR[log] == HEALTHY:
        assert explanation.verdict == "healthy", explanation.findings
    else:
        assert explanation.known and explanation.known.failure.id == SIMILAR[log], explanation.findings
        assert "…" not in explanation.known.cause


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
