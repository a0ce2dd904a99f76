"""Directives as the owner of a script writes them: what a finding proposes to add."""

from __future__ import annotations

from provision.profile.arch import Arch
from provision.profile.site import Site


def write_directive(site: Site, arch: Arch, word: str, value: str | None = None) -> str:
    """The directive for a key of `[archs.<arch>.job]`, or for `nodes`, with the value of the profile or a place for one."""
    value = value or _value(site, arch, word)
    match site.scheduler.name:
        case "pbs":
            options = {
                "account": f"-A {value}",
                "partition": f"-q {value}",
                "time": f"-l walltime={value}",
                "filesystems": f"-l filesystems={value.replace(',', ':')}",
                "nodes": f"-l select={value}",
                "constraint": f"-l select=NODES:{value}",
                "memory": f"-l select=NODES:mem={value}B",
            }
            return f"#PBS {options.get(word, f'-l {word}={value}')}"
        case "cobalt":
            options = {
                "account": f"-A {value}",
                "partition": f"-q {value}",
                "time": f"-t {value}",
                "nodes": f"-n {value}",
            }
            key = "filesystems=" if word == "filesystems" else ""
            return f"#COBALT {options.get(word, f'--attrs {key}{value}')}"
        case "slurm" | "none":
            pass
    key = {"filesystems": "licenses", "memory": "mem-per-cpu" if site.scheduler.memory == "per-cpu" else "mem"}.get(
        word, word
    )
    return f"#SBATCH --{key}={value}"


def _value(site: Site, arch: Arch, word: str) -> str:
    """The value of the profile; a word in capitals if it has none."""
    job = arch.job
    if word == "filesystems":
        return ",".join(job.filesystems) or "FILESYSTEMS"
    if word == "memory" and job.memory and site.scheduler.memory == "per-node":
        return f"{int(job.memory[:-1]) * max(1, job.cpus_per_task)}{job.memory[-1]}"
    values = {
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "constraint": job.constraint,
        "memory": job.memory,
        "time": job.time,
    }
    return values.get(word) or word.upper()
