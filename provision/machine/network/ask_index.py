"""Ask the package index for one small file, as a build would: with the installer of the build and the settings of the user."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from provision.errors import CommandError
from provision.machine.programs.failed_program import diagnose
from provision.machine.programs.installer_environ import installer_environ
from provision.machine.programs.run import capture
from provision.model.check import Check, observed
from provision.model.facts import Facts
from provision.model.lock import Lock

TIME_LIMIT_S = 30
# One question, and the answer at once: a build tries again, the doctor does not.
ONCE = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "15", "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "15"}
NOT_FOUND = re.compile(
    "No matching distribution found|was not found in the package registry|there (is|are) no versions? of"
)
# What pip prints of an index that refuses only if it is asked to print all (`Could not fetch URL …: 403 Client Error`), and uv
# only if it takes each package from the first index that has it.
REFUSED = re.compile(
    r"Could not fetch URL .*?: ((?:[45]\d\d (?:Client|Server) Error): .*?)(?: - skipping)?$"
    r"|^(hint: An index .*?\b[45]\d\d\b.*)$",
    re.MULTILINE,
)


def ask_index(facts: Facts, lock: Lock, proxies: Mapping[str, str]) -> Check | None:
    """What the index answered; None if there is no Python to install for. `proxies` are those of the profile."""
    if facts.python is None:
        return None
    pin = lock.pins[0]
    with tempfile.TemporaryDirectory(prefix="provision-ask-") as scratch:
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(pin.text, encoding="utf-8")
        argv: tuple[str, ...] = (facts.tool_python, "-m", "pip", "download", "--no-cache-dir", "--no-input")
        argv += ("--dest", f"{scratch}/files", "--python-version", facts.python.minor)
        if facts.uv:
            argv = (facts.uv, "pip", "install", "--no-cache", "--target", f"{scratch}/files")
            argv += ("--python", facts.python.executable)
        argv += ("--require-hashes", "--no-deps", "-r", str(requirements))
        environ = {**installer_environ({**proxies, **facts.environ}), **ONCE}
        try:
            done = capture(argv, environ, TIME_LIMIT_S, needs="index")
        except CommandError as error:
            return _bad(pin.name, error.message, error.evidence, None)
        if done.returncode == 0:
            return observed("index", "good", f"the package index answers: it has {pin.name} {pin.version}")
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        diagnosis = diagnose([*lines, *hidden_answers(argv, environ, lines)])
    return _bad(pin.name, diagnosis.cause or "it ended with an error", diagnosis.evidence, diagnosis.hint)


def _bad(name: str, cause: str, evidence: Sequence[str], hint: str | None) -> Check:
    return observed(
        "index",
        "bad",
        f"the package index does not give `{name}`: {cause}",
        *evidence,
        hint=hint
        or "`provision fetch` shows the same; index, proxy and certificate come from `pip.conf`, `uv.toml` or variables",
    )


def hidden_answers(argv: Sequence[str], environ: Mapping[str, str], lines: Sequence[str]) -> list[str]:
    """What an index answered to an installer that printed no more than that it found nothing; nothing for another failure."""
    if not any(NOT_FOUND.search(line) for line in lines):
        return []
    louder = ("-vv",) if "-m" in argv else ("--dry-run", "--index-strategy", "first-index")
    with contextlib.suppress(CommandError):
        again = capture((*argv, *louder), environ, TIME_LIMIT_S, needs="index")
        answers = (of_pip or of_uv for of_pip, of_uv in REFUSED.findall(again.stdout + again.stderr))
        return list(dict.fromkeys(f"ERROR: {answer}" for answer in answers))
    return []
