"""Lines that look alike and mean different things, tool by tool; and healthy logs with the words of a failure."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.log_reader import explain
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
    DENIED.format("/opt/flux/bin/flux"): "access-policy",
    DENIED.format("/usr/sbin/rsyslogd"): HEALTHY,
    f"{AVC} permissive=0": "access-policy",
    f"{AVC} permissive=1": HEALTHY,
    "slurmstepd: error: '/sys/fs/cgroup/cpuset/slurm/tasks' failed: No space left on device": "cgroup-cpuset-empty",
    "runc: failed to write 3: write /sys/fs/cgroup/cpuset/a/cgroup.procs: no space left on device": "cgroup-cpuset-empty",
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
    "Resources unavailable:  CPU: avail 42 requested 56 [ slots 8 x cpus_per_rs 7 ]": "jsrun-resources",
    "Error: Resources unavailable": "jsrun",
    "Resources unavailable: GPU: avail 2 requested 4, the job waits in the queue\nstep 1": HEALTHY,
    "slurmstepd: error: execve(): module: No such file or directory": "srun-shell-word",
    "slurmstepd: error: execve(): conda: No such file or directory": "script-missing-on-node",
    "slurmstepd: error: Could not open stdout file: Permission denied": "scheduler-output-file",
    "slurmstepd: error: Could not open stdout file /home/u/my logs/a: No such file or directory": "scheduler-output-file",
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
    "PMPI_Comm_size(124): MPI_Comm_size(comm=0x0, size=0x7ffc4c1) failed": "mpi-two-versions",
    "PMPI_Allreduce(110): MPI_Allreduce(sbuf=0x1, count=1, MPI_INT, MPI_SUM, comm=0x0, x) failed": "mpi-communicator-unset",
    REFUSED.format("MPI_File_write", "MPI_ERR_NO_SPACE: no space left on device"): "disk-full",
    REFUSED.format("MPI_File_open", "MPI_ERR_NO_SUCH_FILE: no such file or directory"): "mpi-file-refused",
    REFUSED.format("MPI_File_open", "MPI_ERR_ACCESS: invalid access to file"): "mpi-file-refused",
    REFUSED.format("MPI_File_write_all", "MPI_ERR_IO: input/output error"): "mpi-file-refused",
    REFUSED.format("MPI_Comm_spawn", "MPI_ERR_SPAWN: could not spawn processes"): "mpi-programs-not-connected",
    REFUSED.format("MPI_Comm_connect", "MPI_ERR_PORT: invalid port"): "mpi-programs-not-connected",
    REFUSED.format("MPI_Info_set", "MPI_ERR_INFO: invalid info object"): "mpi-argument-refused",
    REFUSED.format("MPI_Win_fence", "MPI_ERR_WIN: invalid window"): "mpi-argument-refused",
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

SIMILAR = {**SLURM_AND_NODES, **MPI}


@pytest.mark.parametrize("log", SIMILAR)
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
