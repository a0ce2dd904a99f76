"""Reads a training script with the modules beside it, and checks it before its job is written: downloads, and the linter."""

from __future__ import annotations

from provision.errors import ConfigError, LintError
from provision.lint import count_findings
from provision.lint.data_rules import fetch_command
from provision.lint.imports import files_beside
from provision.lint.job_script import read_script
from provision.lint.rules import count_rules, lint_job, lint_program, read_training
from provision.lint.training_script import TrainingProgram
from provision.machine.files.disk import is_file, read_given
from provision.machine.files.tables import read_keras_files
from provision.machine.network.data_files import is_fetched, place_of
from provision.machine.terminal.console import say
from provision.profile.arch import Arch
from provision.profile.site import Site

# `check_downloads` decides this one: it also knows what is there already.
DECIDED_ELSEWHERE = ("downloads",)
MOST_MODULES = 300


def read_program(path: str, text: str | None = None) -> TrainingProgram:
    """The training script at this path, or of this text, with what it imports from its folder, and what that imports.

    Raises:
        ConfigError: the script cannot be read.
    """
    text = read_given(path, "training script", errors="replace") if text is None else text
    beside: dict[str, str] = {}
    unread = [(path, text)]
    while unread:
        file, of_file = unread.pop()
        for other in files_beside(of_file, file, path):
            if other in beside or other == path or len(beside) == MOST_MODULES or not is_file(other):
                continue
            try:
                beside[other] = read_given(other, "module", errors="replace")
            except ConfigError:
                continue  # the linter reports it as a module that was not read
            unread.append((other, beside[other]))
    return read_training(text, path, beside)


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


def check_downloads(site: Site, script: str | None, kind: str) -> None:
    """Raise a `ConfigError` if the training script downloads what is not here, and its job has no network.

    A machine that does not see the site's scratch cannot know what was fetched there: it only prints a note.
    """
    # Workers of a `multiworker` job connect by gRPC, so it unsets the proxy.
    without = site.network.compute == "no" or (site.network.compute == "proxy" and kind == "multiworker")
    if not without or script is None:
        return
    why = f"compute nodes of site `{site.name}` have no network"
    if site.network.compute == "proxy":
        why = f"a `{kind}` job unsets the proxy through which nodes of site `{site.name}` reach the network"
    wanted = [download for download in read_program(script).downloads if download.name is not None]
    if not wanted:
        return
    files = read_keras_files()
    commands = [fetch_command(download, site) for download in wanted]
    try:
        place = place_of(site)
    except ConfigError:
        say(f"note: {why}; first run there: `{'`, `'.join(commands)}`")
        return
    missing = [
        (one, command)
        for one, command in zip(wanted, commands, strict=True)
        if not is_fetched(one.name or "", files.get(one.name or "", ()), place)
    ]
    if missing:
        raise ConfigError(
            f"`{script}` downloads `{missing[0][0].name}`, but {why}",
            evidence=[f"line {one.line}: {one.name} is not here yet" for one, _ in missing],
            hint=" and ".join(dict.fromkeys(f"`{command}`" for _, command in missing)),
        )
