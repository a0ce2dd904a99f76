"""Records what the real Slurm prints, as raw material for parser tests: `python tests/parts/record_slurm.py`.

Writes `tests/recorded/slurm-<version>/<name>.txt`: stdout as it came (for `*.err.txt`, stderr and then a last line
`exit code N`), with the recording machine's host name, folders and user replaced by a site's. About 30 s, nearly all
of it the wait for a job to reach its time limit.
"""

from __future__ import annotations

import getpass
import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from parts.slurm import SlurmCluster

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


def main() -> None:
    with SlurmCluster() as cluster:
        work = cluster.root / "work"
        work.mkdir()
        version = cluster.run("sinfo", "--version").stdout.split()[1]
        folder = RECORDED / f"slurm-{'.'.join(version.split('.')[:2])}"
        folder.mkdir(parents=True, exist_ok=True)
        Recorder(cluster, work, folder).record_all()


class Recorder:
    def __init__(self, cluster: SlurmCluster, work: Path, folder: Path) -> None:
        self.cluster, self.work, self.folder = cluster, work, folder
        self.jobs: dict[str, str] = {}

    def record_all(self) -> None:
        self.submit("timeout", "sleep 600", "--partition=short", "--constraint=haswell")
        self.wait_for(lambda: "JobState=RUNNING" in self.cluster.show_job(self.jobs["timeout"]))
        self.show("running", "timeout")
        self.cluster.expire(self.jobs["timeout"])

        self.submit("completed", "true", "--nodes=2", "--ntasks-per-node=1", "--comment=provision build")
        # Early, while there are two jobs: `--json` lists all of them whatever `--jobs` says, the ended ones too.
        self.capture("squeue-json", "squeue", "--json", f"--jobs={self.jobs['timeout']}")
        self.submit("failed", "exit 3")
        self.submit("failed-by-signal", "kill -SEGV $$")
        self.submit("cancelled", "sleep 600")
        self.submit("afterok-of-failed", "true", f"--dependency=afterok:{self.jobs['failed']}")
        self.submit(
            "cancelled-by-dependency",
            "true",
            f"--dependency=afterok:{self.jobs['failed']}",
            "--kill-on-invalid-dep=yes",
        )
        self.submit("pending-resources", "sleep 600", "--nodes=2", "--exclusive", "--time=5")
        self.submit("pending-held", "true", "--hold")
        self.submit("pending-time-limit", "true", "--partition=short", "--time=2:00:00")
        self.submit("pending-too-many-nodes", "true", "--nodes=9")
        self.submit("cancelled-while-pending", "true", "--hold")
        self.submit("array", "sleep $SLURM_ARRAY_TASK_ID", "--array=1-3%1")
        self.cluster.run("scancel", self.jobs["cancelled-while-pending"])
        self.wait_for(lambda: "JobState=RUNNING" in self.cluster.show_job(self.jobs["cancelled"]))
        self.capture("squeue-all", "squeue", "--all")
        self.capture("squeue-noheader-format", "squeue", "--noheader", "--format=%i|%T|%r|%P|%N|%V|%S|%e")
        self.capture("sinfo", "sinfo")
        self.capture("sinfo-noheader-format", "sinfo", "--noheader", "--format=%P|%a|%l|%D|%c|%m|%f|%G")
        self.capture("sinfo-nodes", "sinfo", "--Node", "--long")
        for reason in ("held", "time-limit", "resources", "too-many-nodes"):
            self.show(f"pending-{reason}", f"pending-{reason}")
        self.cluster.run("scancel", self.jobs["cancelled"])
        for name in ("completed", "failed", "failed-by-signal", "cancelled", "cancelled-by-dependency"):
            self.cluster.wait(self.jobs[name])
            self.show(name, name)
        self.show("cancelled-while-pending", "cancelled-while-pending")
        self.show("pending-dependency-never-satisfied", "afterok-of-failed")
        self.capture("scontrol-show-job-array", "scontrol", "show", "job", "-o", self.jobs["array"])

        self.capture("scontrol-show-node", "scontrol", "show", "node", "-o")
        self.capture("scontrol-show-partition", "scontrol", "show", "partition", "-o")
        self.capture("sbatch", "sbatch", "--output=sbatch.log", "--wrap=true")
        self.capture("sbatch-parsable", "sbatch", "--output=sbatch.log", "--parsable", "--wrap=true")
        self.capture("version", "sbatch", "--version")
        self.refuse("sbatch-invalid-partition", "sbatch", "--partition=nosuch", "--wrap=true")
        self.refuse("sbatch-invalid-feature", "sbatch", "--constraint=milan", "--wrap=true")
        self.refuse("sbatch-invalid-gres", "sbatch", "--gres=gpu:1", "--wrap=true")
        self.refuse("sbatch-no-shebang", "sbatch", stdin="true\n")
        self.refuse("sbatch-missing-script", "sbatch", "nosuch.sh")
        self.refuse("scontrol-unknown-job", "scontrol", "show", "job", "-o", "999999")
        self.refuse("squeue-unknown-job", "squeue", "--jobs=999999")
        self.refuse("scancel-unknown-job", "scancel", "999999")
        self.refuse("sacct-disabled", "sacct", "--parsable2")
        self.refuse("no-controller", "squeue", environ={"SLURM_CONF": str(self.dead_controller())})

        self.cluster.wait(self.jobs["timeout"])
        self.show("timeout", "timeout")
        log = (self.work / "timeout.log").read_text()
        (self.folder / "job-log-timeout.txt").write_text(self.neutral(log))

    def submit(self, name: str, body: str, *options: str) -> None:
        script = f"#!/bin/bash\n{body}\n"
        self.jobs[name] = self.cluster.submit(
            script, f"--job-name={name}", f"--output={self.work / name}.log", *options, cwd=self.work
        )

    def show(self, name: str, job: str) -> None:
        self.capture(f"scontrol-show-job-{name}", "scontrol", "show", "job", "-o", self.jobs[job])

    def capture(self, name: str, *argv: str) -> None:
        result = self.cluster.run(*argv, cwd=self.work)
        (self.folder / f"{name}.txt").write_text(self.neutral(result.stdout))

    def refuse(self, name: str, *argv: str, stdin: str = "", environ: dict[str, str] | None = None) -> None:
        result = self.cluster.run(*argv, check=False, cwd=self.work, stdin=stdin, environ=environ)
        text = f"{result.stdout}{result.stderr}exit code {result.returncode}\n"
        (self.folder / f"{name}.err.txt").write_text(self.neutral(text))

    def dead_controller(self) -> Path:
        """A configuration whose controller does not run (port 9 is reserved for discarding)."""
        path = self.work / "dead.conf"
        text = re.sub(r"^SlurmctldPort=.*$", "SlurmctldPort=9", self.cluster.conf.read_text(), flags=re.MULTILINE)
        path.write_text(text + "MessageTimeout=2\nSlurmctldTimeout=2\n")
        return path

    def neutral(self, text: str) -> str:
        host = socket.gethostname().split(".")[0]
        for here, there in ((self.work, "/scratch/ops"), (self.cluster.root, "/var/spool/slurm")):
            text = text.replace(str(here), there).replace(str(here).replace("/", r"\/"), there.replace("/", r"\/"))
        text = re.sub(rf"\b{re.escape(host)}\b", "login1", text)
        text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", "ops", text)
        text = re.sub(r"(UserId|GroupId)=ops\(\d+\)", r"\1=ops(1000)", text)
        text = re.sub(r"OS=Linux \S+ .*?(?= RealMemory)", "OS=Linux 6.1.0 #1 SMP", text)
        text = re.sub(r'("(?:user|group)_id": )\d+', r"\g<1>1000", text)
        return re.sub(r"AllocNode:Sid=\S+?:\d+", "AllocNode:Sid=login1:4711", text)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not condition():
            if time.monotonic() > end:
                raise SystemExit("waited 30 s for a job to start")
            time.sleep(0.1)


if __name__ == "__main__":
    main()
