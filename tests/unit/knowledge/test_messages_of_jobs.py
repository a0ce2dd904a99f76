"""Messages of jobs and services on clusters: what each is named, and what looks like one and is none."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

NAMED = {
    "ERROR (unhandled task failure): Version read failed. Connection closed by peer.\n in process_hdr(::TCPSocket)": (
        "reported-error",
        "Version read failed",
    ),
    "ERROR: LoadError: TaskFailedException\n\n    nested task error: IOError: connect: connection refused (ECONNREFUSED)\n"
    "    Stacktrace:": ("reported-error", "IOError: connect"),
    'error: commlib error: got read error (closing "n1/shepherd_ijs/1")\nORTE has lost communication with its daemon\n'
    "located on node n1": ("mpi-daemon-lost", ""),
    'Traceback (most recent call last):\n  File "train_mnist.py", line 132, in <module>\n    fit(args)\n'
    '  File "/home/ada/mxnet/python/mxnet/base.py", line 77, in check_call\n    raise MXNetError(text)\n'
    "mxnet.base.MXNetError: src/kvstore/kvstore.cc:63: unknown type of the store: dist_flux": (
        "library-stopped",
        "dist_flux",
    ),
    "Lmod Warning: MODULEPATH is undefined.\nLmod has detected the following error: The following module(s) are unknown: "
    '"frameworks/2026.1.0"\npython: command not found': ("modulepath-undefined", ""),
    "Charmrun> error attaching to node '127.0.0.1':\nTimeout waiting for node-program to connect": (
        "reported-error",
        "Timeout",
    ),
    "ERROR: Not enough resources available to schedule job.\nThe resource file >>rs.txt<< could not be opened.": (
        "reported-error",
        "could not be opened",
    ),
    "qmgr obj=workq svr=default: Unauthorized Request\ncreate queue workq\nCouldn't run 'post_install' script": (
        "reported-error",
        "Unauthorized Request",
    ),
    '11/10/2015 12:48:30.595;64;PBS_Server.10715;Req;setup_nodes;token "np" in error on line 1 of file nodes\n'
    "11/10/2015 12:48:30.595;01;PBS_Server.10715;Svr;PBS_Server;LOG_ERROR::PBS_Server, pbsd_init failed": (
        "reported-error",
        'token "np"',
    ),
    "2015-11-12T04:43:01Z [job-submit ret_code] 1\n2015-11-12T04:43:01Z [job-submit err] n1: initialisation did not complete": (
        "reported-error",
        "initialisation did not complete",
    ),
    "{Error using parallel.Cluster/parpool (line 89)\nFailed to start a parallel pool.\n\nError in sim_job1 (line 40)": (
        "reported-error",
        "Failed to start a parallel pool",
    ),
    "Fatal server error:\n(EE) PAM authentication failed, cannot start X server.\n(EE) Please consult the support": (
        "reported-error",
        "PAM authentication failed",
    ),
    "ERROR: Failed to connect to local queue manager\nAUTHENTICATE:1003:Failed to authenticate with any method": (
        "reported-error",
        "authenticate with any method",
    ),
    "ERROR \"Cannot open log file '/var/log/condor/SchedLog'\" at line 173 in file dprintf_setup.cpp": (
        "reported-error",
        "Cannot open log file",
    ),
    "*** GASNET WARNING: AMUDP_SPMDStartup returning an error code: AM_ERR_RESOURCE (Problem with requested resource)\n"
    "  from function AMUDP_SPMDStartup\n  reason: slave failed DNSLookup on master host name": (
        "reported-error",
        "DNSLookup",
    ),
    "Jul 31 12:35:21.088992 CDT broker.err[0]: rc1.0: flux: Error committing start event: Protocol error\n"
    "Jul 31 12:35:21.089193 CDT broker.err[0]: rc1.0: /flux/etc/flux/rc1 Exited (rc=1) 0.1s\n"
    + "Jul 31 12:35:21.145339 CDT broker.err[1]: rc3.0: remove resource: Upstream Flux broker is offline. Try again later.\n"
    * 5: ("reported-error", "committing start event"),
    "03/31/23 10:54:15 EDT :: w.xml :: WARNING: job submission failed: sbatch: error: Batch job submission failed: "
    "Node count specification invalid": ("node-count", ""),
    "make: *** No rule to make target `../reduce.cpp', needed by `a.o'.  Stop.\n"
    "+/home/ada/submit.zsh:61> grep 'salloc: error: Failed to allocate resources: More processors requested than permitted' x": (
        "make-no-rule",
        "",
    ),
    'Traceback (most recent call last):\n  File "h.py", line 8, in <module>\nImportError:     from mpi4py import MPI\n'
    'Traceback (most recent call last):\n  File "h.py", line 8, in <module>\n    from mpi4py import MPI\n'
    "ImportError: No module named mpi4py": ("module-not-installed", "mpi4py"),
    "Fatal socket error: code 93610-- Timeout on socket recv!\nCharmrun> error on request socket to node 0 'n1'--\n"
    "Socket closed before recv.": ("reported-error", "Socket closed"),
    'FAILED to create volume "to": /var/udiMount//srv/repos, cannot create mount points in that location\n'
    "FAILED to setup user-requested mounts.\nFAILED to setup image.": ("reported-error", "FAILED to create volume"),
    "git requires pcre variant +jit, but spec asked for ~jit": (
        "reported-error",
        "git requires pcre",
    ),
    "Caused by:\n  process didn't exit successfully: `target/release/build/hdf5-sys-0c/build-script-build` (exit code: 101)\n"
    "thread 'main' panicked at 'Unable to locate HDF5 root directory and/or headers.', build.rs:523:13": (
        "application-reports",
        "Unable to locate HDF5",
    ),
    "main.f90:(.text+0x10): undefined reference to `openrb_'\n"
    "main.f90:(.text+0x20): relocation truncated to fit: R_X86_64_PC32 against symbol `grid_' defined in COMMON section": (
        "undefined-reference",
        "",
    ),
    "/var/spool/slurmd/job42/slurm_script: line 13: activate: No such file or directory\n"
    "ModuleNotFoundError: No module named 'torch'": (
        "conda-not-initialised",
        "",
    ),
    "! Timed out (> 60s). Use --verbose to retry.\nConfiguring ExtUtils-MakeMaker-7.04 ... FAIL": (
        "reported-error",
        "Timed out",
    ),
    "checking for mpi.h... no\nlibmpi not found. exiting...\nERROR: configuration failed for package 'Rmpi'": (
        "reported-error",
        "libmpi not found",
    ),
    "/home/ada/anaconda/bin/activate:10: parse error near `]]'": ("reported-error", "parse error near"),
    "awk: cannot open nvidia_peer_memory.spec (No such file or directory)\n-E- Cannot locate nvidia modules!": (
        "reported-error",
        "Cannot locate nvidia modules",
    ),
    "RPM build errors:\n    File not found: /home/ada/rpmbuild/BUILDROOT/munge/usr/lib64/libmunge.la": (
        "reported-error",
        "libmunge.la",
    ),
    "while: Expression Syntax.": ("reported-error", "Expression Syntax"),
    "<PSP:r0000115:ucp:psucp_con_connect() : the endpoint is gone>\nsend failed": (
        "reported-error",
        "endpoint is gone",
    ),
    "worker-1: rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason]": (
        "reported-error",
        "task timeout",
    ),
    "touch: cannot touch `/u/ada/x': Permission denied\nklist: No ticket file: /tmp/krb5cc_14287": (
        "kerberos-no-ticket",
        "",
    ),
    "gfal-copy error: 70 (Communication error on send) - DESTINATION MAKE_PARENT could not open connection to dp15:8443": (
        "reported-error",
        "could not open connection to dp15:8443",
    ),
    "Error launching Slurm job:\nERROR: LoadError: TaskFailedException:\n"
    "MethodError: no method matching replace(::String, ::String, ::String)\nClosest candidates are:": (
        "reported-error",
        "no method matching replace",
    ),
}
HEALTHY = (
    (
        "==> Installing libsigsegv\n==> Trying to fetch from file:///mirror/libsigsegv-2.10.tar.gz\n"
        "curl: (37) Couldn't open file /mirror/libsigsegv-2.10.tar.gz\n"
        "==> Fetching from file:///mirror/libsigsegv-2.10.tar.gz failed.\n==> Trying to fetch from ftp://ftp.gnu.org/libsigsegv"
    ),
    (
        "configure:4555: $? = 0\nconfigure:4544: mpicc -V >&5\ngcc: error: unrecognized command line option '-V'\n"
        "configure:4555: $? = 4\nconfigure:4544: mpicc -qversion >&5\ngcc: error: unrecognized command line option '-qversion'"
    ),
    "[n1:25837] pml_ucx.c:285  Error: UCP worker does not support MPI_THREAD_MULTIPLE\nHello, World! I am process 4 of 5 on n1.",
    "[2016-01-21T12:48:37.805] debug:  _rpc_signal_tasks: sending signal 995 to step 103.0 flag 0",
    "slurmd: debug3: Couldn't find sym 'slurm_spank_slurmd_init' in the plugin\nslurmd: started",
    "Jul 31 12:35:21 CDT broker.info[0]: rc1.0: /etc/flux/rc1 Exited (rc=0) 0.1s\nflux: ready",
    "  reason: Completed\n  exitCode: 0\n  finishedAt: 2024-01-01",
    "node/n1 1/1 Running 0 13m\npod/slurmd-0 1/1 Running 2 13m\npod/job-1 0/1 Completed 0 1m",
    "attempt 0: [Errno 5] Input/output error: 'shared.lock'; retry in 0.1 s\nchecksum 3 expected 3 -> OK\nall steps completed",
    'rsync: [sender] change_dir "/archive" failed: No such file or directory (2)\nusing the copy in $SCRATCH\nfinished ok',
    (
        'Lmod has detected the following error: The following module(s) are unknown:\n"craype-network-ofi"\n\n'
        "check passed: no NaN found\nEnd: Mon Nov 23 22:17:21 UTC 2026, status 0"
    ),
)


@for_each("text", list(NAMED))
def test_a_message_of_a_job_is_named(text: str) -> None:
    found = explain([f"starting on n1\n{text}\n".encode()], known_failures())
    name, says = NAMED[text]
    assert found.verdict == "known" and found.known
    assert found.known.failure.id == name, found.known.cause
    assert says in found.known.cause


@for_each("text", HEALTHY)
def test_a_job_that_ended_well_is_not_accused(text: str) -> None:
    assert explain([f"starting on n1\n{text}\n".encode()], known_failures()).verdict == "healthy"
