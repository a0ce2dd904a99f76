"""Checks a job script and its training scripts by all rules: each finding names the line, what is wrong there, and the fix.

Every rule comes from an error on a site page, or from a fault of its readers; docs/dev/requirements.md says which.
`docs/reference/lint-rules.md` is written from the rules.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from provision.lint import (  # noqa: F401  each registers its rules
    WEIGHTS,
    Finding,
    container_rules,
    data_rules,
    horovod_rules,
    launch_rules,
    module_rules,
    mpi_rules,
    pair_rules,
    shell_rules,
    site_rules,
    sort_findings,
    tensorflow_rules,
    thread_rules,
    torch_rules,
    version_rules,
)
from provision.lint.arch_choice import archs_for, on_other_nodes
from provision.lint.data_rules import downloads
from provision.lint.imports import parse
from provision.lint.job_script import JobScript
from provision.lint.rule import RULES, find
from provision.lint.syntax import Syntax
from provision.lint.training_script import TrainingProgram
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.schedulers.node_kind import Cluster

__all__ = ["RULES", "WEIGHTS", "count_rules", "lint_job", "lint_program", "read_training"]


def read_training(text: str, file: str, beside: Mapping[str, str] | None = None) -> TrainingProgram:
    """The training script in this text. A text that is not Python 3 is a script with one finding.

    `beside` are the texts of the modules that it imports from its folder, by their paths.
    """
    tree = parse(text)
    trees = {path: parse(other) for path, other in beside.items()} if beside and isinstance(tree, ast.Module) else {}
    script = Syntax(tree if isinstance(tree, ast.Module) else ast.Module([], []))
    modules = {path: Syntax(other) for path, other in trees.items() if isinstance(other, ast.Module)}
    error = None if isinstance(tree, ast.Module) else tree
    lines = tuple(text.splitlines())
    return TrainingProgram(
        file=file, source=lines, scripts={file: script, **modules}, error=error, downloads=downloads(script)
    )


def lint_job(
    script: JobScript,
    training: TrainingProgram | None,
    site: Site | None,
    arch: Arch | None,
    cluster: Cluster | None = None,
) -> tuple[Finding, ...]:
    """What is wrong in a job script, and between it and its training script, sorted by line.

    Without a site only the rules that hold at every site apply. `cluster` is what the scheduler of this machine says, if that
    is the scheduler of the site.
    """
    archs = () if site is None else (arch,) if arch else archs_for(script, site)
    fits = site is not None and script.scheduler in ("none", site.scheduler.name)
    described = arch is not None or (site is not None and not on_other_nodes(script, site))
    given = {
        "job": script,
        "program": training,
        "training": training,
        "start": None if training is None else script.main(),
        "profile": site,
        "site": site if fits else None,
        "foreign": None if fits else site,
        "archs": archs,
        "named": arch,
        "cluster": cluster,
    }
    return sort_findings(find(given, "job", archs if fits and described else ()))


def lint_program(
    training: TrainingProgram, site: Site | None, script: JobScript | None = None, arch: Arch | None = None
) -> tuple[Finding, ...]:
    """What is wrong in a training script, whatever job starts it."""
    given = {"program": training, "site": site, "job_script": script, "named": arch}
    return sort_findings(find(given, "program"))


def count_rules(*, job: bool, site: bool, program: bool) -> int:
    """How many rules apply to these scripts."""
    there = {"job": job, "site": site, "foreign": site, "program": program, "script": program}
    return sum(all(there.get(need, True) for need in rule.needs) for rule in RULES.values())
