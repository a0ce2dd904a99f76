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


def option_name(text: str, scheduler: SchedulerName) -> str:
    """The long name of an option: `nodes` of `-N2` and of `--nodes=2`, `-l walltime` of a resource of PBS."""
    first, *rest = text.split(maxsplit=1)
    if first in ("-l", "-W"):
        return f"{first} {rest[0].partition('=')[0] if rest else ''}"
    return first[2:].partition("=")[0] if first.startswith("--") else SHORT[scheduler].get(first[:2], first[:2])
