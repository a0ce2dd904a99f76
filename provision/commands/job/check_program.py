"""Lints the training script of a job before the job is written: errors refuse it, the rest is printed."""

from __future__ import annotations

from provision.commands.job.program import read_program
from provision.errors import LintError
from provision.lint import count_findings
from provision.lint.job_script import read_script
from provision.lint.rules import count_rules, lint_job, lint_program
from provision.machine.terminal.console import say
from provision.profile.arch import Arch
from provision.profile.site import Site

# `downloads.check_downloads` decides this one: it also knows what is there already.
DECIDED_ELSEWHERE = ("downloads",)


def check_program(path: str, job: str, site: Site, arch: Arch) -> None:
    """Print what the linter finds in the training script of this job, and in the job (`job.sh`) together with it.

    Raises:
        LintError: an error is in the training script.
    """
    training = read_program(path)
    script = read_script(job, "job.sh")
    everything = (*lint_job(script, training, site, arch), *lint_program(training, site, script))
    findings = [one for one in everything if one.rule not in DECIDED_ELSEWHERE]
    lines = [line for finding in findings for line in (str(finding), f"  fix: {finding.fix}")]
    if any(finding.weight == "error" and finding.file == path for finding in findings):
        raise LintError(
            f"{count_findings(findings)} in `{path}`, so the job was not written",
            findings=[finding.to_dict() for finding in findings],
            evidence=lines,
            hint="fix the errors, or add `--no-lint` if the linter is wrong",
            checked={
                "script": None,
                "training": path,
                "read": [path],
                "unread": [],
                "rules": count_rules(job=True, site=True, program=True),
            },
        )
    for line in lines:
        say(line)
