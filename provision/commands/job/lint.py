"""`provision job lint FILE`: check a job script, and the training script that it runs."""

from __future__ import annotations

import argparse
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from provision.commands.shared.options import add_arch, add_site
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import SubVerb
from provision.errors import ConfigError
from provision.machine.terminal.console import say

if TYPE_CHECKING:
    from provision.lint.job_script import JobScript
    from provision.profile.arch import Arch
    from provision.profile.site import Site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the script and the site."""
    parser.add_argument("file", metavar="FILE", help="the job script; exit 2 if it has faults")
    add_site(parser)
    add_arch(parser, omitted="needed if the script does not show it")
    parser.add_argument("--script", metavar="PROGRAM", help="training script (default: the one that the job runs)")


def run(args: argparse.Namespace) -> Outcome:
    """Check the scripts against the rules of the scheduler, of the site and of TensorFlow."""
    from dataclasses import asdict

    from provision.errors import LintError
    from provision.lint.job_rules import lint_job
    from provision.lint.job_script import read_script
    from provision.lint.training import read_training
    from provision.machine.configuration import shipped
    from provision.machine.disk import is_file, read_given

    site = shipped.load_site(args.site)
    known = None if site.scheduler.name == "none" else site
    if known is None and args.arch:
        raise ConfigError(
            f"`--arch` is not used: site `{site.name}` has no scheduler",
            hint="leave `--arch` out, or add `--site SITE`",
        )
    script = read_script(read_given(args.file, "job script"), args.file)
    arch = _arch_of(script, known, args.arch)
    program = args.script or script.program()
    if program is not None and args.script is None:
        path = str(PurePosixPath(args.file).parent / program)
        program = path if "$" not in program and is_file(path) else None
    training = None if program is None else read_training(read_given(program, "training script"), program)
    findings = [*lint_job(script, training, known, arch), *(training.findings if training else ())]
    if findings:
        count = f"{len(findings)} fault{'s' * (len(findings) != 1)}"
        raise LintError(
            f"{count} in `{args.file}`",
            findings=[asdict(finding) for finding in findings],
            evidence=[line for finding in findings for line in (str(finding), f"  fix: {finding.fix}")],
            hint="`provision job KIND --site SITE` writes a script without faults",
        )
    read = [f"`{args.file}`", *([f"`{program}`"] if program else [])]
    against = (
        f", checked against site `{known.name}`"
        if known
        else "; add `--site SITE` to check it against the limits of a site"
    )
    text = f"no faults in {' and '.join(read)}{against}"
    return Outcome(text=text, result={"findings": [], "script": args.file, "training": program})


def _arch_of(script: JobScript, site: Site | None, name: str | None) -> Arch | None:
    """The arch that a script is for: the named one, the only one, or the one whose partition or constraint it asks for."""
    if site is None or name is not None or len(site.archs) == 1:
        return None if site is None else site.arch(name)
    for key in ("constraint", "partition"):
        option = script.options.get(key)
        for arch in site.archs:
            if option is not None and getattr(arch.job, key) == option.value:
                return arch
    known = ", ".join(f"`{arch.name}`" for arch in site.archs)
    say(f"note: the script does not name an arch of `{site.name}` ({known}); add `--arch ARCH` to check more")
    return None


SUBVERBS = (
    SubVerb(name="lint", purpose="check a job script and its training script", add_arguments=add_arguments, run=run),
)
