"""`provision venv check DIR`: is the environment under it the same, and does a package hide one of the stack."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from provision.commands.shared.environments import read_store
from provision.commands.shared.outcome import Outcome
from provision.errors import EXIT_FAILED, EXIT_OK
from provision.machine.configuration import shipped
from provision.machine.install import make_own_venv
from provision.machine.install.make_own_venv import read_venv
from provision.machine.probes.provided import provided_python
from provision.machine.programs.shell import absolute, environ
from provision.model.check import Check
from provision.model.own_venv import Contents, judge_venv


def check_venv(folder: Path) -> tuple[Contents, tuple[Check, ...]]:
    """What a venv was made on and has, and the checks.

    Raises:
        ConfigError: `provision venv create` did not make it.
    """
    beneath = read_venv(folder)
    site = dataclasses.replace(shipped.load_site(beneath.site), root=beneath.root)
    if beneath.environment is None:
        arch = site.arch(beneath.arch)
        arch = dataclasses.replace(arch, provided=beneath.modules)
        python = provided_python(site, arch)
        contents = make_own_venv.look_into(folder, python.environ, installed=python.packages, family=arch.mpi.family)
        published: str | None = beneath.module
    else:
        contents = make_own_venv.look_into(folder, environ())
        published = read_store(site).pointers().get(f"{beneath.environment.split('/')[0]}/{beneath.module}")
    return contents, judge_venv(contents, published)


def run(args: argparse.Namespace) -> Outcome:
    """Check; exit 1 if something is wrong."""
    folder = Path(absolute(args.folder))
    contents, checks = check_venv(folder)
    beneath = contents.beneath
    lines = [f"folder       {folder}", f"environment  {beneath.title}"]
    lines += [line for check in checks for line in check.to_lines(named=True)]
    own = ", ".join(f"{name} {version}" for name, version in contents.own.items())
    lines.append(f"your packages: {own or 'none'}")
    return Outcome(
        text="\n".join(lines),
        result={
            "folder": str(folder),
            "environment": beneath.environment,
            "checks": [check.to_dict() for check in checks],
            "packages": dict(contents.own),
        },
        exit_code=EXIT_OK if all(check.passed for check in checks) else EXIT_FAILED,
    )
