"""`provision explain LOG`: explain a log, using the list of known failures."""

from __future__ import annotations

import argparse

from provision.commands.shared.outcome import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the log."""
    parser.add_argument("log", metavar="LOG", help="a file, or `-` for stdin")


def run(args: argparse.Namespace) -> Outcome:
    """Explain the log."""
    from provision.machine.programs.failed_program import diagnose_log
    from provision.machine.programs.log_file import given_blocks
    from provision.machine.programs.secrets_here import secrets_here

    diagnosis = diagnose_log(map(secrets_here().hide, given_blocks(args.log)))
    explanation = (
        [f"{diagnosis.cause} ({diagnosis.id})", f"hint: {diagnosis.hint}"]
        if diagnosis.id
        else ["no known failure; lines that look like errors:"]
    )
    result = {
        "failure": diagnosis.id,
        "cause": diagnosis.cause,
        "hint": diagnosis.hint,
        "lines": list(diagnosis.evidence),
    }
    return Outcome(text="\n".join((*explanation, *(f"  {line}" for line in diagnosis.evidence))), result=result)
