"""The options of directives, with the long names that the rules use for every scheduler: as scripts have them, and as a finding
proposes to add them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from provision.knowledge.whole_numbers import whole_number
from provision.profile.arch import Arch
from provision.profile.scheduler import SchedulerName
from provision.profile.site import Site
from provision.schedulers.short_options import SHORT

# How PBS spells what has no option of its own.
RESOURCES = {
    "time": "walltime={}",
    "nodes": "select={}",
    "constraint": "select=NODES:{}",
    "memory": "select=NODES:mem={}B",
}


def read_options(text: str, scheduler: SchedulerName) -> Iterator[tuple[str, str]]:
    """The options in a directive, with their long names."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        following = words[index] if index < len(words) and not words[index].startswith("-") else ""
        if word.startswith("--"):
            key, separator, value = word[2:].partition("=")
            if not separator and following:
                value, index = following, index + 1
            yield key, value
            if key == "attrs":
                yield from _attributes(value)
        elif scheduler == "pbs" and word == "-l":
            index += 1
            yield from _resources(following)
        elif word[:2] in SHORT[scheduler]:
            value = word[2:] or following
            index += 0 if word[2:] else 1
            yield SHORT[scheduler][word[:2]], value


def _resources(text: str) -> Iterator[tuple[str, str]]:
    """The options in `-l` of PBS: `select=2:system=x:ngpus=4`, `nodes=2:ppn=4`, `walltime=…`, `filesystems=home:eagle`."""
    for resource in text.split(","):
        key, _, value = resource.partition("=")
        if key not in ("select", "nodes"):
            yield {"walltime": "time"}.get(key, key), value
            continue
        chunks = [chunk.split(":") for chunk in value.split("+")]
        counts = [whole_number(chunk[0]) for chunk in chunks]
        yield "nodes", value if None in counts else str(sum(filter(None, counts)))
        for part in chunks[0][1:]:
            name, _, amount = part.partition("=")
            yield {"ngpus": "gpus-per-node", "gpus": "gpus-per-node", "ppn": "mpiprocs"}.get(name, name), amount


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """The options in `--attrs` of Cobalt: `mcdram=cache:filesystems=home,theta-fs0`."""
    for part in text.split(":"):
        name, _, value = part.partition("=")
        if name == "filesystems":
            yield name, value


def write_directive(site: Site, arch: Arch, key: str, value: str | None = None) -> str:
    """The directive for a key of `[archs.<arch>.job]`, or for `nodes`, with this value, that of the profile, or none."""
    job, scheduler = arch.job, site.scheduler
    if key == "memory" and job.memory and scheduler.memory == "per-node":
        value = value or f"{int(job.memory[:-1]) * max(1, job.cpus_per_task)}{job.memory[-1]}"
    given = value or getattr(job, key, None) or key.upper()
    text = given if isinstance(given, str) else (":" if scheduler.name == "pbs" else ",").join(given)
    short = next((option for option, name in SHORT[scheduler.name].items() if name == key), None)
    if scheduler.name == "pbs":
        return f"#PBS {short} {text}" if short else f"#PBS -l {RESOURCES.get(key, f'{key}={{}}').format(text)}"
    if scheduler.name == "cobalt":
        return (
            f"#COBALT {short} {text}" if short else f"#COBALT --attrs {'filesystems=' * (key == 'filesystems')}{text}"
        )
    memory = "mem-per-cpu" if scheduler.memory == "per-cpu" else "mem"
    return f"#SBATCH --{({'filesystems': 'licenses', 'memory': memory}).get(key, key)}={text}"
