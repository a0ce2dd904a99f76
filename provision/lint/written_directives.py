"""Directives as the owner of a script writes them: what a finding proposes to add."""

from __future__ import annotations

from provision.profile.arch import Arch
from provision.profile.scheduler import SchedulerName
from provision.profile.site import Site

# The directive for each key of `[archs.<arch>.job]`, and for `nodes`; `*` is that of all other keys.
FORMS: dict[SchedulerName, dict[str, str]] = {
    "pbs": {
        "account": "#PBS -A {1}",
        "partition": "#PBS -q {1}",
        "time": "#PBS -l walltime={1}",
        "nodes": "#PBS -l select={1}",
        "constraint": "#PBS -l select=NODES:{1}",
        "memory": "#PBS -l select=NODES:mem={1}B",
        "*": "#PBS -l {0}={1}",
    },
    "cobalt": {
        "account": "#COBALT -A {1}",
        "partition": "#COBALT -q {1}",
        "time": "#COBALT -t {1}",
        "nodes": "#COBALT -n {1}",
        "filesystems": "#COBALT --attrs filesystems={1}",
        "*": "#COBALT --attrs {1}",
    },
    "slurm": {"filesystems": "#SBATCH --licenses={1}", "*": "#SBATCH --{0}={1}"},
}


def write_directive(site: Site, arch: Arch, key: str, value: str | None = None) -> str:
    """The directive for a key, with the value of the profile, or the key in capitals if it has none."""
    job, scheduler = arch.job, site.scheduler
    if key == "memory" and job.memory and scheduler.memory == "per-node":
        value = value or f"{int(job.memory[:-1]) * max(1, job.cpus_per_task)}{job.memory[-1]}"
    given = value or getattr(job, key, None) or key.upper()
    text = given if isinstance(given, str) else (":" if scheduler.name == "pbs" else ",").join(given)
    forms = FORMS.get(scheduler.name, FORMS["slurm"])
    word = {"memory": "mem-per-cpu" if scheduler.memory == "per-cpu" else "mem"}.get(key, key)
    return forms.get(key, forms["*"]).format(word, text)
