"""The short options of the schedulers' directives (sbatch(1), qsub(1B), Cobalt's qsub(1)), with the long names of Slurm."""

from __future__ import annotations

from provision.profile.scheduler import SchedulerName

SHORT: dict[SchedulerName, dict[str, str]] = {
    "slurm": {
        "-N": "nodes",
        "-n": "ntasks",
        "-A": "account",
        "-p": "partition",
        "-q": "qos",
        "-C": "constraint",
        "-t": "time",
        "-c": "cpus-per-task",
        "-G": "gpus",
        "-L": "licenses",
        "-J": "job-name",
        "-o": "output",
        "-a": "array",
        "-m": "distribution",
    },
    "pbs": {"-A": "account", "-q": "partition", "-N": "job-name", "-o": "output", "-W": "attributes"},
    "cobalt": {"-n": "nodes", "-t": "time", "-q": "partition", "-A": "account", "-O": "output"},
    "none": {},
}
