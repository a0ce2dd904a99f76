"""The script of a build's job: it carries the plan, the site's variables and its directives."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

from golden_files import SUBMITTER, Golden, facts_of, local_site, request_for, slurm_site
from parts.scripts import checked, run
from provision.errors import ConfigError
from provision.jobs.build_job import BuildScript, build_script
from provision.machine.submission.render_jobs import render_build_job
from provision.model.facts import Existing
from provision.planning.planner import make_plan
from provision.profile.arch import Job


def job_script(job: Job | None = None) -> BuildScript:
    """A build job of a site whose file names a variable of the caller's."""
    site = dataclasses.replace(slurm_site(), variables=("PROVISION_ROOT", "EXAMPLE_SITE"))
    request = request_for(site)
    if job:
        request = dataclasses.replace(request, arch=dataclasses.replace(request.arch, job=job))
    plan = make_plan(request, facts_of(site), Existing())
    environ = {"PROVISION_ROOT": "/site/root", "EXAMPLE_SITE": "/site/it's", "OTHER": "stays here"}
    submitter = dataclasses.replace(SUBMITTER, environ=environ)
    return render_build_job(build_script(request, plan, submitter))


def test_the_job_script_of_a_cluster_is_the_golden_one(golden: Golden) -> None:
    golden("slurm/job.sh", job_script().text)


def test_a_build_is_started_again_at_its_time_limit_only_if_the_profile_allows_it() -> None:
    job = slurm_site().archs[0].job
    again = ("--requeue", "--signal=B:USR1@120", "--open-mode=append")
    script = job_script(dataclasses.replace(job, options=("--requeue",))).text
    directives = [line.split("#")[1].split()[1] for line in script.splitlines() if line.startswith("#SBATCH ")]
    assert set(again) <= set(directives)
    assert " --requeue --no-wait " in script
    script = job_script().text
    assert not any(word in script for word in again)


def test_bash_passes_the_plan_and_the_arguments_on_unchanged(tmp_path: Path) -> None:
    script = job_script().text
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; echo "root=$PROVISION_ROOT site=$EXAMPLE_SITE"; cat\n')
    tool.chmod(0o755)
    script = script.replace("/site/provision/bin/python", str(tool)).replace("cd /site/work", f"cd {tmp_path}")
    path = tmp_path / "job.sh"
    path.write_text(script)
    lines = run(["bash", str(path)], environ={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "42"}).splitlines()
    assert lines[:4] == ["-I", "-m", "provision", "build"]
    assert lines[lines.index("--plan") + 1] == "-"
    events = lines[lines.index("--events") + 1]
    assert re.fullmatch(r"/site/root/jobs/provision-haswell-tensorflow-2\.15\.1-[0-9a-f]{10}-42\.events\.jsonl", events)
    assert "root=/site/root site=/site/it's" in lines
    assert json.loads("\n".join(lines[lines.index("{") :]))["held"]


def test_a_build_job_is_refused_if_the_site_has_no_scheduler() -> None:
    request = request_for(local_site())
    plan = make_plan(request, facts_of(local_site()), Existing())
    with pytest.raises(ConfigError, match="has no scheduler") as caught:
        build_script(request, plan, SUBMITTER)
    assert "provision build --site local" in str(caught.value.hint)


def test_bash_and_shellcheck_find_no_fault_in_the_job_script(tmp_path: Path) -> None:
    job = Job(
        time="01:00:00",
        partition="p",
        constraint="a&b",
        account=None,
        qos=None,
        exclusive=True,
        cpus_per_task=4,
        options=("--comment=it's $x",),
    )
    checked(tmp_path / "job.sh", job_script(job).text, "bash")
