"""What `provision job` writes has no findings, for every profile, arch, kind, runtime and stack, with its training script."""

from __future__ import annotations

from typing import Any

import pytest

from parts.examples import PROGRAMS
from parts.loops import for_each
from parts.paths import REPOSITORY
from parts.profiles import PROFILES, profile
from provision.errors import ConfigError
from provision.jobs.user_job import UserJob
from provision.knowledge.examples import EXAMPLES
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.lint.training import Training, read_training
from provision.machine.rendering.render_jobs import render_user_job
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.strategy import PLUGINS, STRATEGIES, StrategyName

STACKS = sorted(path.stem for path in (REPOSITORY / "stacks").glob("*.toml"))
# The kinds that each stack is for: the name of a stack for one strategy says it.
OF_STACK = {"mirrored": ("mirrored",), "multiworker": ("multiworker",)}
PROGRAM_OF: dict[str, Training] = {
    example.job: read_training(PROGRAMS[f"{example.name}/train.py"], "train.py") for example in reversed(EXAMPLES)
}


def written(
    site: Site,
    arch: Arch,
    kind: StrategyName,
    runtime: str | None,
    module: str,
    *,
    use_gpu: bool = True,
    **options: Any,
) -> str | None:
    """The job script; None if the site does not have such a job."""
    job = UserJob(
        kind=kind,
        site=site,
        arch=arch,
        command=f"provision job {kind} --site {site.name} --arch {arch.name}",
        module=module,
        modulepath="/site/modules",
        account="tests",
        use_gpu=use_gpu,
        runtime=runtime,  # type: ignore[arg-type]
        **options,
    )
    try:
        return render_user_job(job)
    except ConfigError:
        return None


@pytest.mark.parametrize("name", [name for name in PROFILES if profile(name).scheduler.name != "none"])
def test_the_jobs_of_every_profile_arch_kind_and_runtime_have_no_findings(name: str) -> None:
    site, count = profile(name), 0
    for arch in site.archs:
        for kind in (*STRATEGIES, *PLUGINS):
            for runtime in site.runtimes:
                for use_gpu in (True, False) if arch.gpu else (True,):
                    text = written(site, arch, kind, runtime, "tensorflow/2.15.1", use_gpu=use_gpu)
                    if text is None:
                        continue
                    count += use_gpu
                    script, training = read_script(text, "job.sh"), PROGRAM_OF.get(kind)
                    # Without `--arch` it is checked for the nodes that it asks for; with `--no-gpu` these may be of another arch.
                    for given in (arch, None) if use_gpu else (None,):
                        found = lint_job(script, training, site, given, script.main())
                        assert found == (), f"{arch.name} {kind} {runtime} {use_gpu}: {found[0]}"
    assert count >= len(site.archs)


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
    count = 0
    for name in ("sigma2-saga", "nersc-perlmutter", "nyu-greene", "alcf-theta", "alcf-polaris"):
        site = profile(name)
        for arch in site.archs:
            for kind in ("single", "horovod"):
                text = written(site, arch, kind, None, "tensorflow/2.15.1", **options)
                if text is None:
                    continue
                count += 1
                script = read_script(text, "job.sh")
                found = lint_job(script, PROGRAM_OF[kind], site, arch, script.main())
                assert found == (), f"{name} {arch.name} {kind}: {found[0]}"
    assert count


@for_each("stack", STACKS)
def test_the_jobs_of_every_stack_have_no_findings(stack: str) -> None:
    site = profile("nersc-perlmutter")
    arch = site.arch("gpu" if stack.endswith("-gpu") else "cpu")
    kinds = next((kinds for word, kinds in OF_STACK.items() if f"-{word}" in stack), ("single", "horovod"))
    for kind in kinds:
        text = written(site, arch, kind, "venv", stack.replace("tensorflow-", "tensorflow/", 1))  # type: ignore[arg-type]
        assert text is not None
        script = read_script(text, "job.sh")
        found = lint_job(script, PROGRAM_OF[kind], site, arch, script.main())
        assert [finding for finding in found if finding.rule not in ("tf1-names",)] == []
