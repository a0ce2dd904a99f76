"""Users' jobs of the shipped profiles, as tests ask for them, and what is said of those that are refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from parts.profiles import profile
from provision.errors import EXIT_USAGE, ConfigError
from provision.jobs.user_job import UserJob
from provision.jobs.user_script import make_script
from provision.machine.submission.render_jobs import render_user_script
from provision.profile.strategy import StrategyName

# A stand-in for `module` in a job script: it prints what it is asked for, and loads every name.
BODY = '() { echo "module $*"; if [ "$1" = load ]; then export LOADEDMODULES="${LOADEDMODULES:-}:$2"; fi; }'
MODULE = f"module{BODY}\n"
EXPORTED_MODULE = {"BASH_FUNC_module%%": BODY}


# The overlays of these sites have no Horovod: a job takes an image that has it.
WITHOUT_HOROVOD = ("nyu-greene", "nyu-torch")
OWN_IMAGE = {"image": "docker://horovod/horovod:0.28.1", "use_overlay": False}
OWN_IMAGE_WORDS = ("--image", "docker://horovod/horovod:0.28.1", "--no-overlay")


def render_user_job(job: UserJob) -> str:
    """The whole script of a user's job."""
    return render_user_script(make_script(job))


def job(name: str, arch: str, kind: StrategyName, /, **changes: Any) -> UserJob:
    """What `provision job KIND --site NAME --arch ARCH --account tests` asks for, with an image that has Horovod if it must."""
    site = profile(name)
    found = site.arch(arch)
    tree = "lua" if site.modules.name == "lmod" else "tcl"
    asked = UserJob(
        kind=kind,
        site=site,
        arch=found,
        command=f"provision job {kind} --site {name} --arch {arch} --account tests",
        module="tensorflow/2.15.1",
        modulepath=f"/site/root/modules/{arch}/{tree}",
        account="tests",
    )
    if kind == "horovod" and name in WITHOUT_HOROVOD:
        asked = dataclasses.replace(asked, **OWN_IMAGE, command=" ".join((asked.command, *OWN_IMAGE_WORDS)))
    return dataclasses.replace(asked, **changes)


def refusal(asked: UserJob) -> ConfigError:
    """The one error of a job that is not written."""
    with pytest.raises(ConfigError) as caught:
        render_user_job(asked)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint
    return caught.value


def launched(text: str) -> list[str]:
    """The lines of a script that start the training."""
    lines = text.splitlines()
    (last,) = [index for index, line in enumerate(lines) if '"$script"' in line and "python" in line]
    first = last
    while lines[first - 1].endswith("\\"):
        first -= 1
    return lines[first : last + 1]
