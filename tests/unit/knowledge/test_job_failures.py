"""Failures of jobs: schedulers, launchers, MPI, NCCL and file systems, in logs written after those that users posted."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.machine.tables import known_failures


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], known_failures())


FAILED = {
    # Slurm
    "mpi-pml-differs": """\
[n2:42] [[7,1],1] selected pml ob1, but peer [[7,1],0] on node1 selected pml ucx
--------------------------------------------------------------------------
MPI_INIT has failed because at least one MPI process is unreachable
from another.  This *usually* means that an underlying communication
plugin -- such as a BTL or an MTL -- has either not loaded or not
allowed itself to be used.  Your MPI job will now abort.
--------------------------------------------------------------------------
*** An error occurred in MPI_Init
*** on a NULL communicator
*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
***    and potentially your MPI job)
""",
    "cuda-library-missing": """\
I tensorflow/stream_executor/dso_loader.cc:116] Couldn't open CUDA library libcudnn.so.5. LD_LIBRARY_PATH: /usr/local/cuda/lib64
I tensorflow/stream_executor/cuda/cuda_dnn.cc:3448] Unable to load cuDNN DSO
I tensorflow/core/common_runtime/gpu/gpu_init.cc:102] Found device 0 with properties:
name: Tesla K40m
F tensorflow/stream_executor/cuda/cuda_dnn.cc:221] Check failed: s.ok() could not find cudnnCreate in cudnn DSO; \
dlerror: /env/_pywrap_tensorflow.so: undefined symbol: cudnnCreate
Aborted (core dumped)
""",
    "cxi-queues": """\
 7: libfabric:42:1700000000:cxi:core:cxip_ux_onload_cb():2444<warn> RXC (0x1:2:0): Flow control triggered due to failure \
to append LE. Software endpoint mode required.
 7: Program received signal SIGABRT: Process abort signal.
""",
    "shared-memory-full": """\
n1:42:71 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-aBcDeF to 4096 bytes, \
error: No space left on device (28)
""",
    "nccl-ib-protection": """\
n1:42:71 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4000> with error 4, opcode 1, len 1
n1:42:71 [1] NCCL INFO transport/net.cc:890 -> 6
""",
    "pyxis": """\
pyxis: importing docker image ...
slurmstepd: error: pyxis: container start failed with error code: 1
slurmstepd: error: pyxis: printing contents of log file ...
slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/sh: No such file or directory
slurmstepd: error: pyxis: couldn't start container
slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
srun: error: n1: task 1: Exited with exit code 1
""",
    # Grid Engine, LSF, PBS, Flux
    # MPI
    "ucx-assertion": """\
x: pml_ucx_request.c:59: mca_pml_ucx_recv_completion: Assertion `!(((void*)1L == (req)->req_complete))' failed.
[n6:20832] *** Process received signal ***
[n6:20832] Signal: Aborted (6)
""",
    "mpi-connection-lost": """\
[proxy:0:0@n1] HYDU_sock_write (./utils/sock/sock.c:290): write error (Broken pipe)
[proxy:0:0@n1] send_cmd_downstream (./pm/pmiserv/pmip_pmi_v1.c:95): error writing PMI line
""",
    "mpi-session-folder": """\
Fatal error in MPI_Init: Other MPI error, error stack:
MPID_Init(176)........................: channel initialization failed
MPIU_SHMW_Seg_create_attach_templ(635): open failed - Permission denied
""",
    "hard-links": """\
Traceback (most recent call last):
  File "/env/lib/python3.9/site-packages/toil/jobStores/fileJobStore.py", line 546, in read_file
    os.link(jobStoreFilePath, localFilePath)
PermissionError: [Errno 1] Operation not permitted: '/scratch/files/a' -> '/scratch/tmp/a.tmp'
""",
    # Others
    "nccl-gpu-memory": """\
n1:3063025:3066048 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n1-ib<51159>
n1:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'
""",
    "ofi-run": """\
mtl_ofi.h:101: Error returned from fi_cq_readerr: Resource temporarily unavailable(-11).
*** The Open MPI OFI MTL is aborting the MPI job (via exit(3)).
--------------------------------------------------------------------------
mpirun noticed that process rank 0 with PID 77 on node n1 exited on signal 6 (Aborted).
""",
    "mpi-one-process": """\
Fatal error in MPI_Send: Invalid rank, error stack:
MPI_Send(174): MPI_Send(buf=0x7ffe, count=6, MPI_CHAR, dest=1, tag=9, MPI_COMM_WORLD) failed
MPI_Send(100): Invalid rank has value 1 but must be nonnegative and less than 1
""",
    "srun-pmix-library": """\
srun: error: spank: x11.so: Plugin file not found
srun: error: (null) [0] /mpi_pmix.c:133 [init] mpi/pmix: ERROR: pmi/pmix: can not load PMIx library
srun: error: Couldn't load specified plugin name for mpi/pmix: Plugin init() callback failed
srun: error: cannot create mpi context for mpi/pmix
srun: error: invalid MPI type 'pmix', --mpi=list for acceptable types
""",
    "module-command-missing": """\
couldn't read file "/opt/Modules/5.0.1/libexec/modulecmd.tcl": no such file or directory
[n93:37763] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot
""",
    "allocation-failed": """\
ERROR on proc 61: Failed to reallocate 1650272 bytes for array comm:buf_send (src/memory.cpp:105)
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
slurmstepd: error: *** STEP 24.1 ON n53 CANCELLED AT 2022-11-15T09:38:39 ***
srun: error: n53: tasks 0-35: Killed
""",
    "task-failed": """\
Abort(1) on node 29 (rank 29 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 29
slurmstepd: error: *** STEP 42.0 ON h36 CANCELLED AT 2023-03-13T21:37:06 ***
srun: error: h36: tasks 0-1,3-11: Killed
""",
    "mpi-tag": """\
Abort(469989892) on node 144 (rank 144 in comm 0): Fatal error in PMPI_Ibsend: Invalid tag, error stack:
PMPI_Ibsend(207): Invalid tag, value is 1320144
""",
    "mpi-daemon-missing": """\
bash: orted: command not found
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:
""",
    "enroot-registry": """\
slurmstepd: error: pyxis: child 10222 failed with error code: 1
slurmstepd: error: pyxis: failed to import docker image
slurmstepd: error: pyxis: printing enroot log file:
slurmstepd: error: pyxis:     [INFO] Querying registry for permission grant
slurmstepd: error: pyxis:     [ERROR] URL https://registry-1.docker.io/v2/nvcr.io/nvidia/pytorch/manifests/24.01 returned \
error code: 401 Unauthorized
slurmstepd: error: pyxis: couldn't start container
""",
    "job-cancelled": """\
slurmstepd: error: *** JOB 4711 ON n81 CANCELLED AT 2023-05-04T10:15:02 ***
distributed.nanny - WARNING - Worker process 70386 was killed by unknown signal
distributed.dask_worker - INFO - Exiting on signal 15
""",
    "hydra-server": """\
[proxy:0:1@n168] HYDU_sock_connect (utils/sock/sock.c:145): unable to connect from "n168" to "n100" (Connection refused)
[proxy:0:1@n168] main (pm/pmiserv/pmip.c:183): unable to connect to server n100 at port 54762 (check for firewalls!)
srun: error: n168: task 1: Exited with exit code 5
""",
    "hydra-host": """\
HYDU_sock_connect (utils/sock/sock.c:145): unable to get host address for Master (4)
[proxy:0:0@n1] main (pm/pmiserv/pmip.c:183): unable to connect to server Master at port 40677 (check for firewalls!)
""",
    "psm2": """\
MPICH ERROR [Rank 0] [job id 37.93] [n32] - Abort(1616271) (rank 0 in comm 0): Fatal error in PMPI_Init_thread: \
Other MPI error, error stack:
MPIR_Init_thread(171).......:
MPIDI_OFI_mpi_init_hook(816):
create_endpoint(1353).......: OFI EP enable failed (ofi_init.c:1353:create_endpoint:Address already in use)
""",
    # NCCL, ssh and Java
    "nccl-connect-retries": "".join(
        f"n1:7:9 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying ({n}/34) after {n}00 msec\n"
        for n in range(1, 35)
    ),
    "ssh-host-key": """\
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Offending key in /home/u/.ssh/known_hosts:27
Host key verification failed.
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
""",
    "ssh-login": """\
u@n2: Permission denied (publickey,password).
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
""",
}
HEALTHY = {
    "a warning of NCCL": """\
n1:20:20 [0] init.cc:125 NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!
n1:20:20 [0] NCCL INFO comm 0x7f rank 0 nranks 2 - Init COMPLETE
Epoch 1/2
 100/100 [==============================] - 5s - loss: 0.3
""",
    "a debugger": "(gdb) info signals\nSIGUSR2       Yes       Yes     Yes             User defined signal\n",
    "a list of hosts": "Using hostfile ./hosts\nAll hosts of the hostfile answer\n",
    "an import": "pyxis: importing docker image: ubuntu:22.04\npyxis: imported docker image: ubuntu:22.04\nLinux\n",
    "a step that waits": """\
srun: Job 94 step creation temporarily disabled, retrying (Requested nodes are busy)
srun: Step created for StepId=94.3
""",
    "PMIx without its shared memory": """\
[n1:400139] PMIX ERROR: ERROR in file ../../../src/mca/gds/ds12/gds_ds12_lock_pthread.c at line 169
step 1 loss: 0.3
""",
    "a rank that starts later": """\
n1:7:9 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (1/34) after sleep for 100 msec
n1:7:9 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (2/34) after sleep for 200 msec
n1:7:9 [0] NCCL INFO Connected all rings
""",
    "a limit that was reached once": """\
1000+0 records in
1000+0 records out
slurmstepd: error: Exceeded step memory limit at some point.
""",
    "Lightning on a CPU": "GPU available: False, used: False\nEpoch 3: 100%\n`Trainer.fit` stopped: `max_epochs=4` reached.\n",
    "a warning of CMake": """\
CMake Deprecation Warning at CMakeLists.txt:1 (cmake_minimum_required):
  Compatibility with CMake < 3.10 will be removed from a future version of CMake.

  Update the VERSION argument <min> value or use a ...<max> suffix to tell
  CMake that the project does not need compatibility with older versions.
[100%] Built target tool
""",
    "ranks in a container": """\
[0e3c9f1d2a44:31] Read -1, expected 65536, errno = 1
[0e3c9f1d2a44:30] Read -1, expected 65536, errno = 1
Epoch 1/2
 100/100 [==============================] - 5s - loss: 0.3
""",
    "an account of Grid Engine": "failed       0\nexit_status  0\nru_wallclock 12.3\n",
}


def test_ssh_that_reaches_no_host_comes_before_the_daemon_that_did_not_start() -> None:
    text = "ssh: connect to host n2 port 22: Connection refused\n\nORTE was unable to reliably start one or more daemons.\n"
    known = shown(text).known
    assert known is not None and known.cause == "ssh does not reach `n2`: Connection refused"


@for_each("name", FAILED)
def test_a_failed_job_is_explained(name: str) -> None:
    found = shown(FAILED[name])
    assert found.verdict != "healthy" and found.findings[0].failure.id == name


@for_each("name", HEALTHY)
def test_a_healthy_job_is_not_accused(name: str) -> None:
    assert shown(HEALTHY[name]).verdict == "healthy"
