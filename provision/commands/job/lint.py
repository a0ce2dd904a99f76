"""`provision job lint FILE`: check a job script and the training scripts that it starts, or a training script alone."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import PurePosixPath

from provision.commands.job.check_program import read_program
from provision.commands.shared.hints import complete
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError, LintError
from provision.lint import Finding, count_findings, sort_findings
from provision.lint.arch_choice import archs_for, on_other_nodes
from provision.lint.job_script import JobScript, is_program, read_script
from provision.lint.rules import count_rules, lint_job, lint_program
from provision.lint.training_script import TrainingProgram
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file, read_given
from provision.machine.probes.ask_scheduler import cluster_of
from provision.profile.arch import Arch
from provision.profile.site import Site


def run(args: Args) -> Outcome:
    """Check the scripts against the rules of the scheduler, of the site and of TensorFlow."""
    site = shipped.load_site(args.site)
    known = None if site.scheduler.name == "none" else site
    if known is None and args.arch:
        raise ConfigError(
            f"`--arch` is not used: site `{site.name}` has no scheduler",
            hint="leave `--arch` out, or add `--site SITE`",
        )
    arch = known.arch(args.arch) if known is not None and args.arch else None
    name = "stdin" if args.file == "-" else args.file
    what = "training script" if args.file.endswith(".py") else "job script"
    # A comment in another encoding does not change what a script does.
    text = read_given(args.file, what, stdin=True, errors="replace", exact=True)
    findings: list[Finding] = []
    script = None
    trainings: list[TrainingProgram] = []
    unread: list[tuple[str, str]] = []
    if is_program(text, args.file):
        if args.script is not None:
            raise ConfigError(
                f"`--script` is for a job script, but `{name}` is a training script",
                hint=f"`provision job lint {shlex.quote(args.script)}`",
            )
        trainings = [read_program(name, text)]
    else:
        script = read_script(text, name)
        script.beside = frozenset(path for path in script.module_files() if _find(path, args.file)[0])
        training, others, unread = _programs(script, args)
        if script.is_python:
            training = read_program(name, text)
        trainings = [training, *others] if training else others
        there = cluster_of(known, *((arch,) if arch else known.archs)) if known else None
        findings += lint_job(script, training, known, arch, there)
    for training in trainings:
        findings += lint_program(training, known, script, arch)
    typed = ("job", "lint", "--site", args.site) if known else ()
    findings = [
        replace(finding, fix=complete(finding.fix, typed))
        for file in dict.fromkeys(f.file for f in findings)
        for finding in sort_findings(findings)
        if finding.file == file
    ]
    rules = count_rules(job=script is not None, site=known is not None, program=bool(trainings))
    shown = [line for finding in findings for line in (str(finding), f"  fix: {finding.fix}")]
    result = {
        "script": None if script is None else name,
        "training": trainings[0].file if trainings else None,
        "read": [training.file for training in trainings],
        "unread": [{"path": path, "reason": reason} for path, reason in unread],
        "rules": rules,
    }
    errors = sum(finding.weight == "error" for finding in findings)
    notes = _notes(script, trainings, unread, known, arch, rules)
    if errors:
        raise LintError(
            f"{count_findings(findings)} in {_listed(script, trainings)}",
            findings=[finding.to_dict() for finding in findings],
            evidence=[*shown, *notes],
            hint=f"fix the errors, then `{_again(args)}`" if name != "stdin" else "fix the errors, then check it again",
            checked=result,
        )
    head = f"no errors in {_listed(script, trainings)}"
    if findings:
        head += f", but {count_findings(findings)}"
    return Outcome(
        text="\n".join([head, *(f"  {line}" for line in shown), *notes]),
        result={"findings": [finding.to_dict() for finding in findings], **result},
    )


def _again(args: Args) -> str:
    """The command that checks the same scripts again."""
    words = ["provision", "job", "lint", args.file]
    for option in ("arch", "script"):  # a site that was typed is added to every hint
        if getattr(args, option, None):
            words += [f"--{option}", getattr(args, option)]
    return shlex.join(words)


def _listed(script: JobScript | None, trainings: list[TrainingProgram]) -> str:
    """The files that were read, in words."""
    files = [f"`{script.name}`"] if script is not None else []
    files += [f"`{training.file}`" for training in trainings if script is None or training.file != script.name]
    return " and ".join([", ".join(files[:-1]), files[-1]] if len(files) > 1 else files)


def _notes(
    script: JobScript | None,
    trainings: list[TrainingProgram],
    unread: list[tuple[str, str]],
    site: Site | None,
    arch: Arch | None,
    rules: int,
) -> list[str]:
    """What was read and what was not, and against what it was checked."""
    notes = [f"training script `{path}` was not read: {reason}; add `--script PROGRAM`" for path, reason in unread]
    if script is not None and not trainings and not unread:
        notes.append("no training script was read: the job starts no Python file; add `--script PROGRAM` to check one")
    if site is None:
        against = "the limits of a site were not checked: add `--site SITE`"
    elif script is None:
        against = f"site `{site.name}`"
    elif arch is None and on_other_nodes(script, site):
        against = f"site `{site.name}`; the profile does not describe the nodes of this job, so sizes were not checked"
    else:
        archs = (arch,) if arch else archs_for(script, site)
        names = ", ".join(f"`{one.name}`" for one in archs)
        of_several = f"what holds for all of {names}; add `--arch ARCH` to check more"
        against = f"site `{site.name}`, {f'arch {names}' if len(archs) == 1 else of_several}"
    return [*notes, f"checked with {rules} rules; {against}"]


def _programs(
    script: JobScript, args: Args
) -> tuple[TrainingProgram | None, list[TrainingProgram], list[tuple[str, str]]]:
    """The main training script, the others, and those that cannot be read, each with the reason."""
    if args.script is not None:
        return read_program(args.script), [], []
    main, first, others, unread = script.main(), None, [], []
    seen: dict[str, None] = {}
    for start in script.starts():
        if start.path in seen:
            continue
        seen[start.path] = None
        path, reason = _find(start.path, args.file)
        if path is None:
            unread.append((start.path, reason))
        elif main is not None and start.path == main.path:
            first = read_program(path)
        else:
            others.append(read_program(path))
    return first, others, unread


def _find(program: str, script: str) -> tuple[str | None, str]:
    """The path of a program that a job script names, from the folder of the script or from here; or why it is not found."""
    if "$" in program or "`" in program:
        return None, "the values of its variables are known only in the job"
    if program.startswith(("~", "/")):
        return (program, "") if is_file(program) else (None, "there is no such file on this machine")
    folder = PurePosixPath(".") if script == "-" else PurePosixPath(script).parent
    for path in (str(folder / program), program):
        if is_file(path):
            return path, ""
    return None, f"there is no such file below `{folder}`"
