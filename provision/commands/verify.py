"""`provision verify --loaded`: compare this shell with the proof of the loaded environment. For users and job scripts."""

from __future__ import annotations

import argparse
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from provision.commands.shared.outcome import Outcome
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError
from provision.machine.programs.shell import environ, which

if TYPE_CHECKING:
    from provision.model.record import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option that names what to verify."""
    parser.add_argument(
        "--loaded",
        action="store_true",
        required=True,
        help="compare the module that this shell has loaded with the record of its build and proof",
    )


def run(args: argparse.Namespace) -> Outcome:
    """Compare; exit 1 if something differs."""
    from provision.proof.loaded import judge_loaded

    name, prefix = environ().get("PROVISION_ENVIRONMENT"), environ().get("VIRTUAL_ENV")
    if not name or not prefix:
        raise ConfigError(
            "no module of `provision` is loaded in this shell",
            evidence=[f"LOADEDMODULES: {environ().get('LOADEDMODULES') or 'nothing'}"],
            hint="`module load tensorflow/VERSION`, then this command; `provision list` lists the modules",
        )
    path = Path(prefix) / ".provision" / "record.json"
    record = _record(path, name)
    checks = judge_loaded(record, environ(), which("python"))
    wrong = [check for check in checks if not check.passed]
    lines = [f"environment  {name}"]
    for check in checks:
        lines.append(f"{'✓' if check.passed else '✗'} {check.name}: {check.message}")
        if check.hint and not check.passed:
            lines.append(f"    hint: {check.hint}")
    return Outcome(
        text="\n".join(lines),
        result={"environment": name, "checks": [check.to_dict() for check in checks]},
        exit_code=EXIT_FAILED if wrong else EXIT_OK,
    )


def _record(path: Path, name: str) -> Record:
    """The record of the environment that is loaded.

    Raises:
        ConfigError: it is missing, damaged, or of another environment.
        StoreError: another user than the owner of the environment wrote it.
    """
    from provision.machine.root.shared_root import SharedRoot
    from provision.model.layout import Layout
    from provision.model.record import Record

    try:
        prefix = PurePosixPath(path.parent.parent)
        record = Record.from_dict(SharedRoot(Layout(prefix)).read_json(path) or {})
        if record.environment != name:
            raise ValueError(f"it is the record of {record.environment}")
    except ValueError as error:
        raise ConfigError(
            f"`{path}` is not the record of `{name}`",
            evidence=[str(error), "the environment was removed or damaged, or another one was activated after it"],
            hint="load the module in a new shell",
            kind="damaged-record",
        ) from error
    return record
