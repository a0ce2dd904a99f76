"""Containers that hide the launcher's variables: refused in profiles, unset in our jobs, found in the jobs of users."""

from __future__ import annotations

import itertools

import pytest

from parts.jobs import job
from parts.texts import replace_once
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.machine.submission.render_jobs import render_user_job
from provision.profile.site import find_faults
from provision.profile.strategy import StrategyName

JOB = """\
#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=00:30:00
set -e
module reset
module list
srun apptainer exec tf.sif python train.py
"""
HIDE = ["--cleanenv", "-e", "--containall", "-C", "--compat", "--cleanenv=true", "-ce", "-eC", "-ueB/data", "-pC"]
SHOW = ["--contain", "-c", "--no-home", "--nv", "--cleanenv=false", "-B/exec", "-cBe", "--env=A=e", "-H/Ce"]
VARIABLES = [
    f"{program}_{name}" for program in ("APPTAINER", "SINGULARITY") for name in ("CLEANENV", "CONTAINALL", "COMPAT")
]


def is_found(text: str) -> bool:
    return "container-env" in {finding.rule for finding in lint_job(read_script(text, "job.sh"), None, None, None)}


@pytest.mark.parametrize("command", ["apptainer", "singularity"])
def test_a_profile_that_hides_the_environment_is_refused(command: str) -> None:
    """By an option of its containers, or by a variable."""
    for option in HIDE + SHOW:
        container = {"command": command, "image": "/x.sif", "options": ["--nv", option]}
        faults = find_faults({"container": container}, "x.toml", {}).lines
        assert any(fault.startswith("container.options[1]: ") for fault in faults) is (option in HIDE), option
    for table, name in itertools.product(("environ", "build_environ"), VARIABLES):
        for value, refused in (("1", True), ("true", True), (1, True), ("0", False), ("no", False)):
            faults = find_faults({"archs": {"x": {table: {name: value}}}}, "x.toml", {}).lines
            assert any(fault.startswith(f"archs.x.{table}.{name}: hides") for fault in faults) is refused, value


@pytest.mark.parametrize("kind", ["horovod", "mirrored", "multiworker", "single"])
def test_a_job_in_a_container_unsets_the_variables_that_hide_the_environment(kind: StrategyName) -> None:
    text = render_user_job(job("nyu-greene", "gpu", kind, runtime="container", use_overlay=False))
    unset = next(line for line in text.splitlines() if line.startswith("unset APPTAINER"))
    assert set(VARIABLES) <= set(unset.split())
    assert text.index(unset) < text.index("apptainer exec" if "apptainer exec" in text else "singularity exec")
    assert not is_found(text)


@pytest.mark.parametrize("option", HIDE)
def test_ranks_in_containers_that_hide_the_environment_are_found(option: str) -> None:
    for start in (
        f"srun apptainer exec {option} tf.sif python",
        "srun env -i apptainer exec tf.sif python",
        f"srun /usr/bin/singularity --quiet run --nv --bind /data {option} tf.sif",
        f"mpirun -np 4 singularity exec {option} tf.sif python",
        f'srun bash -c "apptainer exec {option} tf.sif python"',
        f"options='--nv {option}'\nsrun apptainer exec $options tf.sif python",
        f'options=(--nv {option})\nsrun apptainer exec "${{options[@]}}" tf.sif python',
    ):
        assert is_found(replace_once(JOB, "srun apptainer exec tf.sif python", start)), start


@pytest.mark.parametrize("name", VARIABLES)
def test_ranks_in_containers_under_such_a_variable_are_found(name: str) -> None:
    assert is_found(replace_once(JOB, "set -e\n", f"set -e\nexport {name}=1\n"))
    assert is_found(replace_once(JOB, "srun", f"{name}=true srun"))
    assert is_found(replace_once(JOB, "srun", f"srun --export=ALL,{name}=1"))
    assert not is_found(replace_once(JOB, "set -e\n", f"set -e\nexport {name}=0\n"))
    assert not is_found(replace_once(JOB, "set -e\n", f"set -e\n# {name}=1\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *[("exec", f"exec {option}") for option in SHOW],
        ("srun apptainer exec", "apptainer exec -e"),
        ("srun apptainer exec", "srun -n 1 apptainer exec --cleanenv"),
        ("exec tf.sif", "exec --cleanenv --env-file ranks.env tf.sif"),
        ("srun apptainer exec", "export APPTAINERENV_PMI_RANK=$PMI_RANK\nsrun apptainer exec -e"),
        ("python train.py", "bash -e train.sh"),
        ("exec tf.sif", "exec --bind -e tf.sif"),
        ("srun apptainer exec tf.sif", "apptainer exec -e tf.sif mpirun -np 4"),
        ("srun apptainer exec tf.sif python", "srun python -e --cleanenv"),
    ],
)
def test_containers_that_show_the_launchers_variables_are_not_reported(old: str, new: str) -> None:
    assert not is_found(replace_once(JOB, old, new))
