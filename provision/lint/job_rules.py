"""Checks a job script and its training scripts by all rules: each finding names the line, what is wrong there, and the fix.

Every rule comes from an error on a site page, or from a problem of its readers; docs/dev/requirements.md says which.
"""

from __future__ import annotations

from provision.lint import Finding, sort_findings
from provision.lint.arch_choice import archs_for, on_other_nodes
from provision.lint.job_script import JobScript, Start
from provision.lint.rule import Subject, find
from provision.lint.rules import RULES
from provision.lint.training_script import Training
from provision.profile.arch import Arch
from provision.profile.site import Site


def lint_job(
    script: JobScript,
    training: Training | None,
    site: Site | None,
    arch: Arch | None,
    start: Start | None = None,
) -> tuple[Finding, ...]:
    """What is wrong in a job script, and between it and its training script, sorted by line.

    Without a site only the rules that hold at every site apply. `start` is the command that starts the training script.
    """
    archs = () if site is None else (arch,) if arch else archs_for(script, site)
    fits = site is not None and script.scheduler in ("none", site.scheduler.name)
    described = arch is not None or (site is not None and not on_other_nodes(script, site))
    given = {
        "job": script,
        "program": training,
        "training": training,
        "start": start,
        "profile": site,
        "site": site if fits else None,
        "foreign": None if fits else site,
        "archs": archs,
        "named": arch,
    }
    return sort_findings(find(given, "job", archs if fits and described else ()))


def lint_program(training: Training, site: Site | None, script: JobScript | None = None) -> tuple[Finding, ...]:
    """What is wrong in a training script, whatever job starts it."""
    return sort_findings(find({"program": training, "site": site, "script": script}, "program"))


def count_rules(*, job: bool, site: bool, program: bool) -> int:
    """How many rules apply to these scripts."""
    subjects: dict[Subject, bool] = {
        "job": job,
        "job and site": job and site,
        "program": program,
        "program and site": program and site,
        "job and program": job and program,
    }
    return sum(subjects[rule.subject] for rule in RULES.values())
