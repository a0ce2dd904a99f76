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

SIMILAR = {**SLURM_AND_NODES}


@pytest.mark.parametrize("log", SIMILAR)
def test_a_line_is_explained_by_its_own_entry_although_others_look_alike(log: str) -> None:
    explanation = shown(log)
    if SIMILAR[log] == HEALTHY:
        assert explanation.verdict == "healthy", explanation.findings
    else:
        assert explanation.known and explanation.known.failure.id == SIMILAR[log], explanation.findings
        assert "…" not in explanation.known.cause
