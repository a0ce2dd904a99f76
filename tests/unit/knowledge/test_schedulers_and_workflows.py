"""What schedulers, their services and workflow managers print: the entry or the words that explain it, and look-alikes."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

LINES = {
    # Lines, and the entry that explains them.
    "systemd[9]: slurmdbd.service: Failed at step EXEC spawning /usr/sbin/slurmdbd: No such file or directory\n"
    "systemd[1]: slurmdbd.service: Control process exited, code=exited, status=203/EXEC": "service-program-missing",
    "systemd[9]: flux.service: Failed at step EXEC spawning /usr/bin/flux: Permission denied": "service-program-not-started",
    "  Process: 27 ExecStart=/usr/local/sbin/munged (code=exited, status=217/USER)\n"
    "systemd[1]: munge.service: control process exited, code=exited status=217": "service-user-missing",
    "systemd[1]: flux.service: Main process exited, code=exited, status=200/CHDIR": "service-folder-missing",
    "systemd[1]: flux.service: Main process exited, code=exited, status=226/NAMESPACE": "service-step-failed",
    "    Process: 3 ExecStart=/usr/sbin/slurmctld --systemd (code=exited, status=1/FAILURE)\n"
    "slurmctld[3]: error: Configured MailProg is invalid\n"
    "slurmctld[3]: error: State 1 specified more than once, latest value used": "service-state-failed",
    "pbs_server is not running\npbs_sched is pid 62901": "service-not-running",
    'Starting MUNGE: mungedmunged: Error: Logfile is insecure: "/var/log/munge/munged.log" should be owned by UID 496': (
        "munge-file-rights"
    ),
    "[  164.012147] Oops: invalid opcode: 0000 [#1] SMP KASAN NOPTI": "kernel-oops",
    "02/23/2020 00:01:32  S    unable to run job, MOM rejected/timeout": "pbs-mom-not-reached",
    "qsub: cannot connect to server cluster (errno=15008) trqauthd unable to authenticate. User or PID": "torque-authorization",
    "qsub: cannot connect to server cluster (errno=111) Connection refused": "scheduler-down",
    "Please run as root\nError starting PBS Data Service": "needs-root",
    "Error executing the LSF script command 'lsid'. The reason given is \n lsid: ls_x() failed: LIM is down; try later": (
        "scheduler-down"
    ),
    "[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 4021": "slurm-output-not-opened",
    "   JobState=FAILED Reason=JobLaunchFailure Dependency=(null)\n   Requeue=1 ExitCode=0:53": "slurm-output-not-opened",
    "298.ba+      batch              flux          1  CANCELLED      0:9": "job-cancelled",
    "Feb-17 DEBUG nextflow.executor.GridTaskHandler - Failed to get exit status for process TaskHandler[jobId: 1; id: 2]\n"
    "157490                         1          node19    TIMEOUT      0:0             0:0": "time-limit",
    "REASON                NODELIST\nLow RealMemory        compute[001-003]": "slurm-node-differs",
    "debug:  Node n2 has low real_memory size (435161 < 443596)\n"
    "error: _slurm_rpc_node_registration node=n2: Invalid argument": "slurm-node-differs",
    "salloc: Prolog failure on node k003\nsalloc: error: Job allocation 23 has been revoked": "slurm-node-setup",
    'sinfo: error: Unable to resolve "login": Host name lookup failure\n'
    "sinfo: error: Unable to establish control machine address": "slurm-host-unresolved",
    "error: Couldn't find the specified plugin name for job_submit/lua looking at all files\n"
    "fatal: failed to initialize job_submit plugin": "slurm-plugin-missing",
    " This account 'flux' doesn't exist on cluster hpc\n No associations or wckeys created.": "slurm-account-unknown",
    "Error message: Slurm accounting storage is disabled": "slurm-no-accounting",
    'error: commlib error: local host name error (IP based host name resolving "n28")': "sge-host-name",
    "error: commlib error: got select error (Connection refused)": "scheduler-down",
    "Error submitting jobscript (exit code 127):\n\nJob failed, going on with independent jobs.": "submit-command-missing",
    "Error submitting jobscript (exit code 1):": "submission-by-program-failed",
    "code 1: slurm_submit_batch_job: Resource temporarily unavailable": "drmaa-submission-failed",
    "Command 'sbatch /home/ada/a.submit' timed out after 10 seconds\n"
    "ERROR:parsl:Scaling out failed: 'NoneType' object has no attribute 'strip'": "submit-command-timed-out",
    "parsl.errors.BadStateException: Executor HTEX failed due to: Error 1:\n"
    "\tJob is marked as MISSING since the workers failed to register": "parsl-workers-missing",
    "Feb-26 INFO  nextflow.processor.TaskProcessor - NOTE: Process `QC` terminated for an unknown reason -- "
    "Likely it has been terminated by the external system": "nextflow-job-gone",
    "DEBUG nextflow.Session - Session aborted -- Cause: Process `flux (1)` terminated with an error exit status (null)": (
        "nextflow-job-gone"
    ),
    "DEBUG nextflow.Session - Session aborted -- Cause: No such variable: flux": "nextflow-session-aborted",
    "DEBUG n.processor.TaskPollingMonitor - Task completed > TaskHandler[id: 3; name: FLUX (x); status: COMPLETED; exit: 1; e": (
        "nextflow-task-failed"
    ),
    '"message": "Job chip.tsv:NA:1 exited with return code -1 which has not been declared as a valid return code. See x"': (
        "cromwell-job-failed"
    ),
    "INFO  - WorkflowManagerActor: Workflow 2cd failed (during ExecutingWorkflowState): java.lang.Exception: The compute backend "
    "terminated the job. If this": "cromwell-backend-ended-job",
    "INFO  - WorkflowManagerActor: Workflow 2cd failed (during MaterializingWorkflowDescriptorState): the flux is inverted": (
        "cromwell-workflow-failed"
    ),
    "[2023-10-26T13:46:31+0200] [MainThread] [W] [toil.leader] Job failed with exit value 1: 'flux' v2\n"
    "[2023-10-26T13:46:31Z] [MainThread] [W] [toil.leader] No log file is present, despite job failing: 'flux' v2": "toil-no-log",
    "+-> ERROR at 2018-11-21 09:32:21.720250+00:00\n | iteration 1 of do_submit excepted, retrying after 20 seconds\n"
    "+-> WARNING at 2018-11-21 09:37:47.107576+00:00\n | maximum attempts 5 of calling do_submit, exceeded": "aiida-gave-up",
    "[ERROR] Submission failed, this can be due a failure on the platform [eCode=6015]\n"
    " [CRITICAL] Autosubmit Encounter too much errors during running time, limit of 4hours reached [eCode=7051]": (
        "autosubmit-submission-failed"
    ),
    "2016-05-29 23:54:05 Job a06q_SIM seemed to be completed but there is no COMPLETED file": "autosubmit-no-completed-file",
    "08/15/24 10:42:14 EDT :: w.xml :: Submission status of Task1 for cycle 202108271200 could not be retrieved because the "
    "server process at druby://10.0.0.1:46157 died": "rocoto-server-died",
    "08/15/24 10:42:14 EDT :: w.xml :: Submission of Task1 failed!  the flux is inverted": "rocoto-submission-failed",
    "[error    [] Server indicated the task shouldn't be running anymore [supervisor] detail={'detail': {'message': "
    "'TI is no longer in the running state and task should terminate'}}": "airflow-task-not-running",
    "submitit.core.utils.FailedJobError: Job (task=0) failed during processing with trace:\n----------------------\n"
    'Traceback (most recent call last):\n  File "/e/lib/python3.9/site-packages/submitit/core/job.py", line 226, in x\n'
    "    raise utils.UncompletedJobError(message)\n"
    "submitit.core.utils.UncompletedJobError: Job not requeued because: timed-out and not checkpointable.": "submitit-time-over",
    "Attempting to use an MPI routine (internal_Comm_size) before initializing or after finalizing MPICH": "mpi-before-init",
    " orte_ess_set_name failed\n --> Returned value A system-required executable either could not be found\n"
    "or was not executable by this user (-127) instead of ORTE_SUCCESS\n"
    "It looks like MPI_INIT failed for some reason; your parallel process is": "mpi-own-program-missing",
    "ibwarn: [298726] mad_rpc_open_port: client_register for mgmt 1 failed\n"
    "ibnetdiscover: iberror: failed: discover failed": "ib-mad-port",
    "mmautoload...\n mmremote: GPFS is not ready to handle commands yet.": "gpfs-not-ready",
}
QUOTED = {
    # Lines, and the words of theirs that the answer quotes.
    "bootstrap : Tue Oct  4 10:38:21 UTC 2016 : Error: CVMFS is not present": "CVMFS is not present",
    "ERROR:asyncio:Task exception was never retrieved\n"
    "future: <Task finished coro=<spawn() done, defined at /a.py:697> exception=AssertionError()>\n"
    'Traceback (most recent call last):\n  File "/e/lib/python3.6/site-packages/jupyterhub/handlers/base.py", line 889, in x': (
        "AssertionError()"
    ),
    '1660667516.910088 exception type="exec" severity=0 userid=5 note="task 1 (n4): start failed: ./flux: No such file"': (
        "start failed: ./flux"
    ),
    "Result message | Failed; timeout expired (00:02 DD:HH:MM:SS) )\nStdout |\n"
    "This test should abort. ERRORS ARE EXPECTED AND NORMAL IN THIS PROGRAM!!\n"
    "*** The MPI_Barrier() function was called after MPI_FINALIZE was invoked.": "timeout expired",
    "CRASH: Please panic, this is abnormal.\nCRASH:\nCRASH:   Failed to submit compute jobs.\nCRASH:\n"
    "CRASH: Failed at /e/site_perl/canu/Execution.pm line 1228.": "Failed to submit compute jobs.",
    '\tcanu::Execution::caFailure("Failed to submit batch jobs", undef) called at Execution.pm line 1000\n': "submit batch jobs",
    "canu failed with 'failed to create the flux'.": "failed to create the flux",
    "n2 : Trigger target node reboot failed                           [FAIL]": "n2 : Trigger target node reboot failed",
    "F #2af1 [     0.77]  * the flux is inverted": "the flux is inverted",
    "perfquery: iberror: failed: Failed to open 'x' port '0'": "Failed to open 'x' port '0'",
    "2025-11-18T18:09:01.229556Z [error    ] the flux is inverted   [flux.solver] step=3": "error: the flux is inverted",
    "+-> ERROR at 2018-11-21 09:32:21.720250+00:00\n | the flux is inverted": "the flux is inverted",
    "Error Report: Cannot flux. The reason given is \n the field is inverted": "The reason given is the field is inverted",
    "mount: /mnt/beegfs: mount(2) system call failed: Operation canceled.\n"
    "systemd[1]: beegfs-client.service: Main process exited, code=exited, status=32/n/a": "Operation canceled",
    "Error executing process > 'krona'\n\nCaused by:\n  Not a valid path value type: flux": "Not a valid path value type",
    "[n1:7:a]  wireup.c:1237 UCX  ERROR   old: lane[4]:  3:ud_mlx5/mlx5_bond_0:1.0 md[0]\n"
    "[n1:7:a:8]      wireup.c:1734 Fatal: endpoint reconfiguration not supported yet": "endpoint reconfiguration",
}
HARMLESS = (
    "[2016-08-03T21:09:34.264] error: Configured MailProg is invalid",
    "error: State 1 specified more than once, latest value used",
    "#       error handling: buffer (zcopy), remote access, peer failure",
    "#      error handling: none",
    "libfabric:2833295:verbs:core:ofi_check_ep_type():629<info> unsupported endpoint type",
    "[2023-10-26T13:46:29+0200] [MainThread] [I] [toil.leader] Issued job 'flux' v2 with job batch system ID: 2",
    "firewalld: ERROR: ALREADY_ENABLED: '988:tcp' already in 'public'",
    "pbs_server is pid 62901",
    "  Process: 3 ExecStart=/usr/sbin/slurmctld (code=exited, status=0/SUCCESS)",
    "[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 0",
    "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0",
    "298.ba+      batch              flux          1  COMPLETED      0:0",
    "mmremote: GPFS is not ready to handle commands yet.",
    "starting daemons                                                   [ OK ]",
    '1660667516.910088 exception type="note" severity=7 userid=5588 note="the flux is low"',
    "DEBUG n.processor.TaskPollingMonitor - Task completed > TaskHandler[id: 3; name: A; status: COMPLETED; exit: 0; error: -]",
)


@for_each("lines", LINES)
def test_what_a_scheduler_or_a_workflow_manager_prints_is_explained(lines: str) -> None:
    known = explain([f"{lines}\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == LINES[lines]


@for_each("lines", QUOTED)
def test_the_words_of_the_program_are_quoted(lines: str) -> None:
    known = explain([f"{lines}\n".encode()], known_failures()).known
    assert known is not None and QUOTED[lines] in known.cause


@for_each("line", HARMLESS)
def test_a_line_that_looks_like_one_of_these_accuses_no_one(line: str) -> None:
    assert explain([f"step 1\n{line}\nstep 2\n".encode()], known_failures()).verdict == "healthy"
