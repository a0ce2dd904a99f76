"""The arguments and the result of a verb, and the one JSON object of `--json`."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import Any

from provision.errors import EXIT_OK, ProvisionError
from provision.machine.programs.secrets_here import secrets_here

# The arguments of a verb, each named by the `to` of its option.
Args = argparse.Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a verb: text for people, data for `--json`, and the exit code."""

    text: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    exit_code: int = EXIT_OK


def envelope(
    verb: str, *, ok: bool = False, result: dict[str, Any] | None = None, error: ProvisionError | None = None
) -> None:
    """Print the one JSON object of `--json`: the same shape for every verb, and on failure; without the secrets of this run."""
    body: dict[str, Any] = {"schema": 1, "verb": verb, "ok": ok}
    secrets = secrets_here()
    # A result is ours, and may have an address that must stay whole; an error may have the output of a program.
    body |= (
        {"result": secrets.hide_in(result, known=True)}
        if error is None
        else {"error": secrets.hide_in(error.to_dict())}
    )
    print(json.dumps(body, indent=1), flush=True)
