"""Messages of jobs, launchers and services of a cluster: the entry that explains each, and healthy lines that look alike."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

POOL = """\
Traceback (most recent call last):
  File "/home/ada/sampling.py", line 317, in main
    pool.map(replicate, replicates)
  File "/apps/lib/python3.7/multiprocessing/pool.py", line 657, in get
    raise self._value
RuntimeError: 'RAxML_info.tts.QS1.3' does not exist
"""
# A log, and the entry that explains it.
LOGS = {
    "02/23/2020 00:01:32  S    unable to run job, MOM rejected/timeout": "pbs-mom-not-reached",
    "qsub: cannot connect to server cluster (errno=15008) trqauthd unable to authenticate. User or PID": "torque-authorization",
    "qsub: cannot connect to server cluster (errno=111) Connection refused": "scheduler-down",
    "[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 4021": "slurm-output-not-opened",
    "   JobState=FAILED Reason=JobLaunchFailure Dependency=(null)\n   Requeue=1 ExitCode=0:53": "slurm-output-not-opened",
    "298.ba+      batch              flux          1  CANCELLED      0:9": "job-cancelled",
    "157490                         1          node19    TIMEOUT      0:0             0:0": "time-limit",
    "salloc: Prolog failure on node k003\nsalloc: error: Job allocation 23 has been revoked": "slurm-node-setup",
    'sinfo: error: Unable to resolve "login": Host name lookup failure\n'
    "sinfo: error: Unable to establish control machine address": "slurm-address-unresolved",
    "sinfo: error: get_addr_info: getaddrinfo() failed: Name or service not known: No error, attempt number 5\n"
    'sinfo: error: slurm_set_addr: Unable to resolve "n1"\nsinfo: error: Unable to establish control machine address': (
        "slurm-address-unresolved"
    ),
    "Error message: Slurm accounting storage is disabled": "slurm-no-accounting",
    "Attempting to use an MPI routine (internal_Comm_size) before initializing or after finalizing MPICH": "mpi-before-init",
    " orte_ess_set_name failed\n --> Returned value A system-required executable either could not be found\n"
    "or was not executable by this user (-127) instead of ORTE_SUCCESS\n"
    "It looks like MPI_INIT failed for some reason; your parallel process is": "mpi-own-program-missing",
    "mmautoload...\n mmremote: GPFS is not ready to handle commands yet.": "gpfs-not-ready",
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server": "connection-refused",
    "fi_getinfo: -61\nfi_info rc=61": "libfabric-no-provider",
    "ada@n2: Permission denied (publickey,password).": "ssh-login",
    'error: commlib error: got read error (closing "n1/shepherd_ijs/1")\nORTE has lost communication with its daemon\n'
    "located on node n1": "mpi-daemon-lost",
    "Lmod Warning: MODULEPATH is undefined.\nLmod has detected the following error: The following module(s) are unknown: "
    '"frameworks/2026.1.0"\npython: command not found': "modulepath-undefined",
    "make: *** No rule to make target `../reduce.cpp', needed by `a.o'.  Stop.\n"
    "+/home/ada/submit.zsh:61> grep 'salloc: error: Failed to allocate resources: More processors requested than permitted' x": (
        "make-no-rule"
    ),
    "main.f90:(.text+0x10): undefined reference to `openrb_'\n"
    "main.f90:(.text+0x20): relocation truncated to fit: R_X86_64_PC32 against symbol `grid_' defined in COMMON section": (
        "undefined-reference"
    ),
    "/var/spool/slurmd/job42/slurm_script: line 13: activate: No such file or directory\n"
    "ModuleNotFoundError: No module named 'torch'": "conda-not-initialised",
    POOL: "error-in-program",
    "Exhausted 1048576 MQ irecv request descriptors, which usually indicates a user program error or insufficient "
    "request descriptors (PSM2_MQ_RECVREQS_MAX=1048576)": "psm2-requests",
    " 0 0x00000000000217b3 ucs_debug_print_backtrace()  /build/ucx-1.8.0/src/ucs/debug/debug.c:653\n"
    " 1 0x000000000149a085 dtrsm_iunucopy()  ???:0": "ucx-backtrace",
    f'{"-" * 74}\nAs of version 3.0.0, the "sm" BTL is no longer available in Open MPI.\n\nEfficient, high-speed same-node': (
        "ompi-btl-sm"
    ),
    f"{'*' * 58}\n\nmpirun does not support recursive calls\n\n{'*' * 58}\n"
    "[n1:05140] [[44144,1],0] ORTE_ERROR_LOG: File open failure in file util/hnp_contact.c at line 91": "mpi-recursive",
    "srun: First task exited 60s ago\nsrun: StepId=1.0 tasks 0-24: running\n"
    "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2024-05-23T16:52:18 ***": "srun-others-ran-on",
    "Indexing.cu:1308: f: block: [106,0,0], thread: [15,0,0] Assertion `srcIndex < srcSelectDimSize` failed.": (
        "gpu-index-out-of-range"
    ),
    "OSError: Unable to open file (file signature not found)": "saved-file-damaged",
    "unshare: unshare failed: No space left on device": "container-user-namespaces",
    "bwrap: Creating new namespace failed: No space left on device": "container-user-namespaces",
    "write /scratch/a.sif: No space left on device": "disk-full",
    "ERROR  : 'newgidmap' execution failed. Check that 'newgidmap' is setuid root, or has required capabilities.": (
        "container-map-helper"
    ),
    "newgidmap: gid range [0-1) -> [1000-1001) not allowed": "container-subuid",
    "RuntimeError: ran out of device memory": "gpu-out-of-memory",
    "std::bad_alloc: out_of_memory: RMM failure at: cuda_memory_resource.hpp": "gpu-out-of-memory",
    "what():  std::bad_alloc": "out-of-memory",
}
HEALTHY = (
    "#       error handling: buffer (zcopy), remote access, peer failure",
    "libfabric:2833295:verbs:core:ofi_check_ep_type():629<info> unsupported endpoint type",
    "[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 0",
    "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0",
    "298.ba+      batch              flux          1  COMPLETED      0:0",
    "mmremote: GPFS is not ready to handle commands yet.",
    "starting daemons                                                   [ OK ]",
    (
        "==> Installing libsigsegv\n==> Trying to fetch from file:///mirror/libsigsegv-2.10.tar.gz\n"
        "curl: (37) Couldn't open file /mirror/libsigsegv-2.10.tar.gz\n"
        "==> Fetching from file:///mirror/libsigsegv-2.10.tar.gz failed.\n==> Trying to fetch from ftp://ftp.gnu.org/libsigsegv"
    ),
    "[n1:25837] pml_ucx.c:285  Error: UCP worker does not support MPI_THREAD_MULTIPLE\nHello, World! I am process 4 of 5 on n1.",
    "slurmd: debug3: Couldn't find sym 'slurm_spank_slurmd_init' in the plugin\nslurmd: started",
    "attempt 0: [Errno 5] Input/output error: 'shared.lock'; retry in 0.1 s\nchecksum 3 expected 3 -> OK\nall steps completed",
    'rsync: [sender] change_dir "/archive" failed: No such file or directory (2)\nusing the copy in $SCRATCH\nfinished ok',
    (
        'Lmod has detected the following error: The following module(s) are unknown:\n"craype-network-ofi"\n\n'
        "check passed: no NaN found\nEnd: Mon Nov 23 22:17:21 UTC 2026, status 0"
    ),
    "which: no flux in (/usr/bin:/bin)\n" + "".join(f"copied file {n}\n" for n in range(60)),
    "   NOTICE\n   All jobs are recorded.",
    "mount.nfs: timeout set for Mon Nov 23 22:34:23 2026\nmount.nfs: trying text-based options 'vers=4.2,addr=10.0.0.1'",
)


@for_each("log", LOGS)
def test_a_message_is_explained(log: str) -> None:
    known = explain([f"starting on n1\n{log}\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == LOGS[log], known


@for_each("log", HEALTHY)
def test_a_line_that_only_looks_like_a_failure_accuses_no_one(log: str) -> None:
    assert explain([f"step 1\n{log}\nstep 2\n".encode()], known_failures()).verdict == "healthy"


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
