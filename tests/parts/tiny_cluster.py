"""The light stack of `parts/tiny.py` at a site with Slurm: two archs, each a partition of an emulated cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from parts.slurm import NodeGroup, Partition, SlurmCluster
from parts.tiny import ARCH, SITE, TinySite

NAME = "cluster"
ARCHS = ("a", "b")
NODES = tuple(NodeGroup(name=name, count=1) for name in ARCHS)
# Jobs of `urgent` take the node of `a`, and the one that runs there is put back into the queue.
PARTITIONS = (
    *(Partition(name=name, groups=(name,)) for name in ARCHS),
    Partition(name="urgent", groups=("a",), priority=2),
)
SETTINGS = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}

LOGIN = """
[scheduler]
system = "slurm"
[network]
login = "no"
compute = "no"
"""
# What an arch has besides.
JOBS = """
environ.TINY_VALUE = "{value}"
node = {{ sockets = 1, cores = 2, threads = 2 }}
job = {{ partition = "{name}", time = "00:05:00", exclusive = false, options = [{options}] }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyCluster:
    """The site and its Slurm."""

    site: TinySite
    slurm: SlurmCluster

    def write_profile(self, *options: str, value: str = "") -> None:
        """Write the profile; jobs of both archs have these options. Another value gives other environments."""
        words = ", ".join(f'"{option}"' for option in options)
        text = SITE.format(name=NAME, root=self.site.root) + LOGIN
        for name in ARCHS:
            text += ARCH.format(name=name, target="x86_64", variant=name)
            text += JOBS.format(name=name, options=words, value=value)
        (self.site.folder / "config" / "sites" / f"{NAME}.toml").write_text(text)

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the tool as on a login node of the cluster."""
        return self.site.run(*words, "--site", NAME, **self.slurm.environ, **environ)

    def good(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command that succeeds."""
        done = self.run(*words, **environ)
        assert done.returncode == 0, done.stderr
        return done

    def output(self, job: str) -> str:
        """What a job printed."""
        return next((self.site.root / "jobs").glob(f"*/*-{job}.out")).read_text()

    def locks(self) -> list[Path]:
        """The locks that are held or were left."""
        return sorted((self.site.root / "locks").rglob("*.lock*"))

    def held_build(self, value: str) -> tuple[str, int]:
        """A job that builds another environment on `a`, until its proof, which waits; its ID, and the process of the proof."""
        (self.site.folder / "held").unlink(missing_ok=True)
        (self.site.folder / "hold").touch()
        self.write_profile("--requeue", value=value)
        done = self.run("build", "--arch", "a", "--submit", "--no-wait")
        assert done.returncode == 4, done.stderr
        wait_for("the proof", lambda: (self.site.folder / "held").exists())
        return done.stdout.strip(), int((self.site.folder / "held").read_text())

    def start_now(self, job: str) -> None:
        """Start a job that was put back into the queue."""
        (self.site.folder / "hold").unlink(missing_ok=True)
        self.slurm.start_again(job)


def wait_for(what: str, happened: Callable[[], object], timeout_s: float = 60) -> float:
    """Wait until something has happened; how many seconds that took."""
    began = time.monotonic()
    while not happened():
        assert time.monotonic() < began + timeout_s, f"waited {timeout_s:.0f} s for {what}"
        time.sleep(0.05)
    return time.monotonic() - began
