"""What `provision job` writes has no findings, for every profile, arch, kind, runtime and stack, with its training script."""

from __future__ import annotations

from typing import Any

import pytest

from parts.examples import PROGRAMS
from parts.jobs import render_user_job
from parts.loops import for_each
from parts.paths import REPOSITORY
from parts.profiles import PROFILES, profile
from provision.errors import ConfigError
from provision.jobs.user_job import UserJob
from provision.knowledge.examples import EXAMPLES
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, read_training
from provision.lint.training_script import TrainingProgram
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.strategy import PLUGINS, STRATEGIES, StrategyName

STACKS = sorted(path.stem for path in (REPOSITORY / "stacks").glob("*.toml"))
# The kinds that each stack is for: the name of a stack for one strategy says it.
OF_STACK: dict[str, tuple[StrategyName, ...]] = {
    "-mirrored": ("mirrored",),
    "-multiworker": ("multiworker",),
    "pytorch-": ("single", "ddp"),
}
PROGRAM_OF: dict[str, TrainingProgram] = {
    example.job: read_training(PROGRAMS[f"{example.name}/train.py"], "train.py") for example in reversed(EXAMPLES)
}


def findings(
    site: Site, arch: Arch, kind: StrategyName, given: tuple[Arch | None, ...] | None = None, **options: Any
) -> list[str] | None:
    """What is found in a job and its training script, for these archs; None if the site does not have such a job."""
    job = UserJob(
        kind=kind,
        site=site,
        arch=arch,
        command=f"provision job {kind} --site {site.name} --arch {arch.name}",
        modulepath="/site/modules",
        account="tests",
        **{"module": "tensorflow/2.15.1", **options},
    )
    try:
        script = read_script(render_user_job(job), "job.sh")
    except ConfigError:
        return None
    training = PROGRAM_OF.get(kind)
    found = [one for at in given or (arch,) for one in lint_job(script, training, site, at)]
    return [f"{arch.name} {kind} {options}: {one}" for one in found if one.rule not in ("tf1-names", "tf2-names")]


@pytest.mark.parametrize("name", [name for name in PROFILES if profile(name).scheduler.name != "none"])
def test_the_jobs_of_every_profile_arch_kind_and_runtime_have_no_findings(name: str) -> None:
    """Without `--arch` a job is checked for the nodes that it asks for; with `--no-gpu` these may be of another arch."""
    site = profile(name)
    found = [
        findings(site, arch, kind, (arch, None) if use_gpu else (None,), runtime=runtime, use_gpu=use_gpu)
        for arch in site.archs
        for kind in (*STRATEGIES, *PLUGINS)
        for runtime in site.runtimes
        for use_gpu in ((True, False) if arch.gpu else (True,))
    ]
    assert [one for one in found if one] == []
    assert sum(one is not None for one in found) >= len(site.archs)


@pytest.mark.parametrize(
    "options",
    [
        {"watch_gpus": True, "record": True},
        {"inter": 0, "intra": 0},
        {"array": "1-3", "requeue": True, "name": "mine", "mail": "me@site.example"},
        {"venv": "$HOME/my", "data": "$SCRATCH/data", "resume": "4711"},
        {"nodes": 1, "memory": "2G", "time": "00:10:00"},
    ],
    ids=lambda options: "-".join(options),
)
def test_a_job_with_options_has_no_findings(options: dict[str, Any]) -> None:
    found = [
        findings(profile(name), arch, kind, **options)
        for name in ("sigma2-saga", "nersc-perlmutter", "nyu-greene", "alcf-theta", "alcf-polaris")
        for arch in profile(name).archs
        for kind in ("single", "horovod")
    ]
    assert [one for one in found if one] == []
    assert any(one is not None for one in found)


@for_each("stack", STACKS)
def test_the_jobs_of_every_stack_have_no_findings(stack: str) -> None:
    site = profile("nersc-perlmutter")
    arch = site.arch("gpu" if stack.endswith("-gpu") else "cpu")
    module = stack.replace("-", "/", 1)
    for kind in next((kinds for word, kinds in OF_STACK.items() if word in stack), ("single", "horovod")):
        assert findings(site, arch, kind, runtime="venv", module=module) == []
