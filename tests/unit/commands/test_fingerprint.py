"""The fingerprint of the same command in a login shell, in cron and in a job, whatever PATH says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from parts.tiny import MINOR, make_site


@pytest.mark.real
def test_a_login_shell_cron_and_a_job_give_the_same_fingerprint(tmp_path: Path) -> None:
    """The login shell has a compiler and a Python of its own in front, as conda and pyenv put them there."""
    site, own = make_site(tmp_path), tmp_path / "conda" / "bin"
    own.mkdir(parents=True)
    (own / "g++").write_text('#!/bin/sh\ncase "$1" in -dumpf*) echo 99.1.0 ;; esac\n')
    (own / "g++").chmod(0o755)
    (own / f"python{MINOR}").symlink_to(sys.executable)
    job = {"SLURM_JOB_ID": "1", "SLURMD_NODENAME": "n1", "PATH": "/usr/bin:/bin:/opt/slurm/bin"}
    shells = {
        "login": {"PATH": f"{own}:relative:{os.environ['PATH']}"},
        "cron": {"PATH": "/usr/bin:/bin"},
        "links": {"PATH": "/bin:/usr/bin"},
        "job": job,
    }
    names = {}
    for shell, environ in shells.items():
        done = site.run("plan", "--site", "one", "--json", **environ)
        assert done.returncode == 0, done.stderr + done.stdout
        held = json.loads(done.stdout)["result"]["held"]
        names[shell] = (json.loads(done.stdout)["result"]["environment"], held["python"], held["compiler"])
    assert len(set(names.values())) == 1, names
