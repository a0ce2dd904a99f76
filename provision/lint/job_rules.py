"""All rules for a job script: each finding names the line, what is wrong there, and the fix.

Every rule comes from an error on a site page, or from a problem of its readers; docs/dev/requirements.md says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from provision.lint import Finding
from provision.lint.arch_choice import archs_for, on_other_nodes
from provision.lint.container_rules import check_hidden
from provision.lint.data_rules import Download
from provision.lint.job_script import JobScript, Start, fault
from provision.lint.launch_rules import check_containers, check_launch, check_shape
from provision.lint.module_rules import check_modules
from provision.lint.pair_rules import check_pair
from provision.lint.rules import RULES, Subject
from provision.lint.shell_rules import check_text
from provision.lint.site_rules import check_site
from provision.lint.thread_rules import check_threads
from provision.lint.training import Training
from provision.lint.version_rules import check_versions
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
    findings = [*check_text(script), *check_modules(script, site, archs), *check_launch(script, site, archs)]
    findings += [*check_shape(script), *check_containers(script), *check_hidden(script)]
    if training is not None:
        findings += check_pair(script, training, start)
        findings += check_versions(script, training)
    if site is not None:
        findings += check_site(script, site, arch, training)
        if script.scheduler in ("none", site.scheduler.name):
            sized = archs if arch is not None or not on_other_nodes(script, site) else ()
            findings += _of_every(sized, [list(check_threads(script, training, site, each)) for each in sized])
            findings += _of_programs(script, training, site, archs)
    return sort_findings(findings)


def lint_program(training: Training, site: Site | None, script: JobScript | None = None) -> tuple[Finding, ...]:
    """What is wrong in a training script, whatever job starts it."""
    found = list(training.findings)
    proxied = {name.lower() for name in script.variables} & {"http_proxy", "https_proxy"} if script else set()
    if site is not None and site.network.compute == "no" and not proxied:
        where = site.network.where_to_download or "a machine with internet"
        found += (
            Finding(
                rule="downloads",
                file=training.file,
                line=download.line,
                message=f"compute nodes of `{site.name}` do not reach the internet: this fetches {download.what} unless it is "
                "already in a folder that the job reads",
                evidence=download.fetch,
                fix=f"run `{fetch_command(download, site)}` once on {where}",
            )
            for download in training.downloads
        )
    return sort_findings(found)


def fetch_command(download: Download, site: Site) -> str:
    """The command that fetches a download beforehand."""
    return f"provision data fetch {download.name} --site {site.name}" if download.name else download.fetch


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without repeats, by line."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.rule)))


def _of_every(archs: Sequence[Arch], each: list[list[Finding]]) -> Iterator[Finding]:
    """The findings of the first arch that every arch has."""
    for finding in each[0] if each else ():
        if all(any(finding.rule == other.rule for other in findings) for findings in each[1:]):
            yield finding


def _of_programs(script: JobScript, training: Training | None, site: Site, archs: Sequence[Arch]) -> Iterator[Finding]:
    """What the training script needs of the site."""
    if training is None:
        return
    provided = {name.partition("/")[0].lower() for arch in archs for name in arch.provided}
    loaded = [(line, name.partition("/")[0].lower()) for line, name in script.modules()]
    others = any(command.name in ("source", ".", "conda") or command.in_container for command in script.commands)
    tensorflow = [line for line, name in loaded if name == "tensorflow"]
    missing = "horovod" in provided and not any("horovod" in name for _, name in loaded)
    if training.horovod and missing and tensorflow and not others:
        wanted = next(name for arch in archs for name in arch.provided if name.lower().startswith("horovod"))
        yield fault(
            script,
            "horovod-module",
            tensorflow[0],
            f"`{training.file}` imports Horovod, which is a module of its own at `{site.name}`",
            f"`module load {wanted}`",
        )
    if site.files.scratch:
        for start in script.starts():
            home = re.search(r"--data[\w-]*[ =](\$\{?HOME\b|~/|/home/)", " ".join(start.command.words)[:4096])
            if home:
                yield fault(
                    script,
                    "home-data",
                    start.command.line,
                    "the home folder is small and slow for many readers",
                    f"put the data below `{site.files.scratch}`",
                )


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
