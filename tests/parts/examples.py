"""The example programs as a user runs them: copied by `provision example`, started by the script of `provision job`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import provision
from parts.provision import Tool, site_file
from parts.slurm import SlurmCluster
from provision.knowledge.examples import EXAMPLES

FOLDER = Path(provision.__file__).resolve().parents[1] / "examples"
PROGRAMS = {
    f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*/*.py"))
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A job that ended well: its number, what it printed, and its output folder."""

    job: str
    printed: str
    output: Path

    def epochs(self) -> int:
        """The number of epochs after which the program, which is good by then, was measured. One rank prints it."""
        ((accuracy, epochs),) = re.findall(r"test accuracy (\S+) after (\d+) epochs", self.printed)
        assert float(accuracy) > 0.8, self.printed
        return int(epochs)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where examples run: a site with an environment, and the Python of the environment, which prepares the data."""

    slurm: SlurmCluster
    tool: Tool
    folder: Path
    job_options: Sequence[str]
    python: Path

    def copied(self, name: str) -> Path:
        """The folder of the copy, with its data prepared."""
        folder = self.folder / name
        if not folder.exists():
            self.tool.good("example", name, str(folder))
            if before := next(one.before for one in EXAMPLES if one.name == name):
                subprocess.run([self.python, *before.split()[1:]], cwd=folder, check=True, capture_output=True)
        return folder

    def run(self, name: str, arguments: str, *options: str, requeue: bool = False) -> Ran:
        """Run an example by a job; with `requeue` the job is put back into the queue after its first checkpoint."""
        example = next(one for one in EXAMPLES if one.name == name)
        folder = self.copied(name)
        words = [*self.job_options, "--script", str(folder / "train.py"), "--data", str(folder / example.data)]
        script = self.tool.good("job", example.job, *words, "--record", "--arguments", arguments, *options)
        (folder / "job.sh").write_text(script)
        out = folder / "job-%j.out"
        submit = ("sbatch", "--parsable", f"--output={out}", *(["--requeue"] if requeue else []), "job.sh")
        job = self.slurm.run(*submit, cwd=folder, environ=self.tool.env()).stdout.strip()
        state = self.slurm.wait(job, timeout_s=600)
        if requeue and state == "COMPLETED":
            self.slurm.run("scontrol", "requeue", job)
            self.slurm.start_again(job)
            state = self.slurm.wait(job, timeout_s=600)
        printed = Path(str(out).replace("%j", job)).read_text()
        assert state == "COMPLETED", printed
        (output,) = {path for path in self.folder.rglob(f"runs/{job}") if path.is_dir()}
        return Ran(job=job, printed=printed, output=output)

    def check(self, name: str, *options: str, again: str = "") -> None:
        """Train an example, look at all that it must leave, and continue: `requeue` the job, or `resume` from another."""
        ran = self.run(name, "--epochs 3", *options, requeue=again == "requeue")
        assert ran.epochs() == 3
        assert ("continues " in ran.printed) is (again == "requeue")
        framework = next(one.needs for one in EXAMPLES if one.name == name).partition(" ")[0].lower()
        assert any(path.suffix in (".index", ".pt") for path in (ran.output / "checkpoints").iterdir())
        events = list(ran.output.glob("tensorboard/**/events.out.tfevents.*"))
        assert events or framework == "pytorch", "Debian's PyTorch has no TensorBoard"
        report = json.loads((ran.output / "report.json").read_text())
        assert set(report) == {"seconds", "images_per_second", "accuracy", "batch", framework, "trained"}
        assert f"{report['images_per_second']:.0f}" in self.tool.good("scaling", str(ran.output)).replace(",", "")
        if again == "resume":
            resumed = self.run(name, "--epochs 4", *options, "--resume-from", ran.job)
            assert "continues " in resumed.printed
            assert resumed.epochs() == 4


# How the example site starts ranks.
SRUN = 'launcher = { name = "srun", options = ["--mpi=pmi2"] }'


def place_of(slurm: SlurmCluster, folder: Path, site: str, prefix: Path) -> Place:
    """Where examples run with an environment, at a site that has it behind a module."""
    tool = Tool(folder / "root", slurm.environ)
    words = ("--site", site, "--arch", "knl")
    return Place(slurm=slurm, tool=tool, folder=folder, job_options=words, python=prefix / "bin" / "python")


def site_with_module(folder: Path, prefix: Path, init: Path, *changes: tuple[str, str]) -> str:
    """The example site with an environment behind a module of the site's own: `PATH` alone, as such modules have it."""
    modules = folder / "modulefiles" / "site-stack"
    modules.mkdir(parents=True)
    (modules / "1.0").write_text(f"#%Module\nprepend-path PATH {prefix}/bin\n")
    return site_file(
        folder,
        "example-slurm",
        ('path = ["${EXAMPLE_SITE}/modulefiles"]', f'path = ["{folder}/modulefiles"]'),
        ("/usr/share/lmod/lmod/init/bash", str(init)),
        ('root = "${PROVISION_ROOT}"', 'root = "${PROVISION_ROOT}"\nruntimes = ["modules"]'),
        ("[archs.knl]\n", '[archs.knl]\nprovided = ["site-stack/1.0"]\n'),
        *changes,
    )
