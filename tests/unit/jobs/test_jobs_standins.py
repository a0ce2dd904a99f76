"""Users' and build jobs under stand-ins of PBS, Cobalt, aprun and PALS, which cannot be had: see `parts/standins.py`."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words, stack
from parts.jobs import MODULE, job, render_user_job
from parts.profiles import profile
from parts.standins import stand_ins
from provision import cli
from provision.errors import JobError
from provision.jobs.build_job import BuildScript, profile_script
from provision.machine.root.store import Store
from provision.machine.submission.follow import follow
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import submit, submitter
from provision.model.layout import Layout
from provision.profile.strategy import StrategyName
from provision.schedulers.node_kind import QueueLimits
from provision.schedulers.pbs import scheduler as pbs

TRAIN = """\
import json, os, sys
rank = os.environ.get("ALPS_APP_PE") or os.environ.get("PALS_RANKID") or "0"
with open(os.path.join(os.environ["PROVISION_OUTPUT"], "rank-%s.json" % rank), "w") as file:
    json.dump({"environ": dict(os.environ), "words": sys.argv[1:]}, file)
"""
# What a login shell of the site has, for want of its modules.
VARIABLES = "export CUDA_HOME=/site/cuda VIRTUAL_ENV=/site/env\n"


class SubmitFolder:
    """A folder to submit from, a home, and the stand-ins on PATH."""

    def __init__(self, folder: Path, scheduler: str) -> None:
        self.folder, self.home = folder / "work", folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        path = stand_ins(scheduler, folder)
        self.environ = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(self.home), "USER": "ada", "SECRET": "x"}
        (self.folder / "train.py").write_text(TRAIN)

    def write(self, name: str, arch: str, kind: StrategyName, **more: Any) -> Path:
        """The job of a site on disk, with the stand-in for `module` behind its directives."""
        text = render_user_job(job(name, arch, kind, **more))
        text = text.replace("set -euo pipefail\n", f"set -euo pipefail\n{MODULE}{VARIABLES}", 1)
        path = self.folder / "job.sh"
        path.write_text(text)
        return path

    def submit(self, path: Path) -> subprocess.CompletedProcess[str]:
        """Submit it, which runs it."""
        return subprocess.run(
            ["qsub", path.name], cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False
        )

    def ranks(self, number: str) -> list[dict[str, Any]]:
        """What the ranks wrote down."""
        found = sorted((self.folder / "runs" / number).glob("rank-*.json"), key=lambda path: int(path.stem[5:]))
        return [json.loads(path.read_text()) for path in found]


def test_a_polaris_job_runs_with_stand_ins_of_pbs_and_mpiexec(tmp_path: Path) -> None:
    place = SubmitFolder(tmp_path, "pbs")
    path = place.write("alcf-polaris", "gpu", "horovod", arguments=("--say", "it's"))
    done = place.submit(path)
    assert (done.returncode, done.stdout) == (0, "123.server\n"), done.stderr
    said = (place.folder / "123.server.OU").read_text()
    ranks = place.ranks("123.server")
    assert len(ranks) == 8, said
    assert [one["environ"]["CUDA_VISIBLE_DEVICES"] for one in ranks] == ["3", "2", "1", "0"] * 2
    for one in ranks:
        environ = one["environ"]
        assert (environ["OMP_NUM_THREADS"], environ["TMPDIR"]) == ("8", "/tmp")
        assert environ["XLA_FLAGS"] == "--xla_gpu_cuda_data_dir=/soft/compilers/cudatoolkit/cuda-12.9.1"
        assert environ["VIRTUAL_ENV"] == "/site/env"
        assert "SECRET" not in environ
        assert one["words"] == ["--say", "it's"]
    out = place.folder / "runs" / "123.server"
    assert stat.S_IMODE(out.stat().st_mode) == 0o755, "PBS gives 0077"
    assert stat.S_IMODE((out / "rank-0.json").stat().st_mode) == 0o644
    assert not list(place.home.iterdir())


def test_a_theta_job_exports_its_variables_and_aprun_forwards_them(tmp_path: Path) -> None:
    place = SubmitFolder(tmp_path, "cobalt")
    path = place.write("alcf-theta", "knl", "horovod")
    assert " -e " not in path.read_text()
    refused = place.submit(path)
    assert refused.returncode != 0
    assert "not executable" in refused.stderr
    assert "chmod +x" in path.read_text(), "the script says what to do"
    path.chmod(0o755)
    done = place.submit(path)
    assert (done.returncode, done.stdout) == (0, "77\n"), done.stderr
    said = (place.folder / "horovod-knl-77.output").read_text()
    ranks = place.ranks("77")
    assert len(ranks) == 2, said
    for one in ranks:
        environ = one["environ"]
        assert (environ["OMP_NUM_THREADS"], environ["NUM_INTRA_THREADS"], environ["KMP_BLOCKTIME"]) == ("62", "62", "0")
        assert environ["KMP_AFFINITY"] == "granularity=fine,compact,1,0"
        assert "SECRET" not in environ, "Cobalt starts the script without the variables of the shell"
        assert environ["HOME"] == str(place.home), "aprun forwards all of the script's variables"


# Builds


def build(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[BuildScript, Store]:
    """The build's job of a site, with a program in place of provision that ends with the given code."""
    site = profile(name)
    place = SubmitFolder(tmp_path, site.scheduler.name)
    for key, value in place.environ.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(place.folder)
    tool = tmp_path / "tool"
    tool.write_text(
        '#!/bin/sh\necho "$PWD" >"$(dirname "$0")/said"; umask >>"$(dirname "$0")/said"; exit "${CODE:-0}"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tool))
    origin = tmp_path / "site.toml"
    origin.write_text("")
    site = dataclasses.replace(site, origin=str(origin), root=str(tmp_path / "root"))
    store = Store(Layout(PurePosixPath(site.root)))
    script = profile_script(site, site.archs[0], stack(), submitter(store), account="tests")
    return render_build_job(script), store


def test_a_build_is_submitted_to_pbs_and_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    job, store = build("alcf-polaris", tmp_path, monkeypatch)
    number = submit(job, store)
    assert number == "123.server"
    assert (tmp_path / "said").read_text().split() == [str(tmp_path / "work"), "0022"]
    status = follow(number, "pbs", store, lambda event: None, pause=lambda seconds: None)
    assert status.state == "COMPLETED"
    with pytest.raises(JobError, match=r"PBS .*9") as caught:
        follow("9", "pbs", store, lambda event: None, pause=lambda seconds: None)
    words("job", caught.value.message)


def test_a_build_that_fails_under_pbs_is_reported_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, store = build("alcf-polaris", tmp_path, monkeypatch)
    text = job.text.replace("\nexec ", "\nexport CODE=3\nexec ")
    number = submit(dataclasses.replace(job, text=text), store)
    with pytest.raises(JobError, match=r"123\.server .*3") as caught:
        follow(number, "pbs", store, lambda event: None, pause=lambda seconds: None)
    assert "exit code 3" in caught.value.message


def test_a_build_is_submitted_to_cobalt_as_an_executable_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, store = build("alcf-theta", tmp_path, monkeypatch)
    assert submit(job, store) == "77"
    script = store.jobs / f"{job.name}.sh"
    assert os.access(script, os.X_OK)
    assert (tmp_path / "said").read_text().split() == [str(tmp_path / "work"), "0022"]


@pytest.mark.parametrize("name", ["alcf-polaris", "alcf-theta"])
def test_a_rejected_job_is_reported_with_the_message_of_the_scheduler(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, store = build(name, tmp_path, monkeypatch)
    text = "\n".join(line for line in job.text.splitlines() if "filesystems" not in line)
    with pytest.raises(JobError, match="refused the job") as caught:
        submit(dataclasses.replace(job, text=text), store)
    assert "filesystems" in caught.value.evidence[0]


# The doctor


def doctor(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the doctor says of the scheduler of a site."""
    place = SubmitFolder(folder, "pbs" if name == "alcf-polaris" else "cobalt")
    monkeypatch.setenv("PATH", place.environ["PATH"])
    cli.main(["doctor", "--site", name])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"), [("alcf-polaris", "PBS answers; queues: debug, prod"), ("alcf-theta", "Cobalt answers\n")]
)
def test_the_doctor_asks_the_scheduler_of_the_site(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in doctor(tmp_path, name, monkeypatch, capsys)


def test_the_doctor_reports_a_queue_that_pbs_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    monkeypatch.setattr(pbs, "parse_queues", lambda text: (QueueLimits(name="prod"), QueueLimits(name="preemptable")))
    said = doctor(tmp_path, "alcf-polaris", monkeypatch, capsys)
    (line,) = [line for line in said.splitlines() if "`debug`" in line and "PBS" in line]
    words("doctor", line)
