"""`provision explain LOG`: explain a log, or those of a job, a folder or an environment."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.commands.shared.options import add_site
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import find_environment, read_store
from provision.errors import EXIT_FAILED, EXIT_OK, EXIT_UNKNOWN, ConfigError

if TYPE_CHECKING:
    from provision.knowledge.failures.findings import Explanation, Finding

EXITS = {"healthy": EXIT_OK, "known": EXIT_FAILED, "unknown": EXIT_UNKNOWN}
# How many causes are shown beside the likeliest.
MOST_OTHERS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the log."""
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a file (also .gz, .xz or .bz2), a folder with logs, the ID of a job, an environment, or `-` for stdin",
    )
    add_site(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Explain the log; exit 0 if it shows no failure, 1 if the failure is known, 3 if it is not."""
    from provision.machine.programs.failed_program import explain_log
    from provision.machine.programs.log_file import given_blocks

    explained = [(log, explain_log(given_blocks(log))) for log in _logs(args.log, args.site)]
    # Of several logs, the newest with a known failure tells most.
    log, explanation = min(explained, key=lambda pair: ("known", "unknown", "healthy").index(pair[1].verdict))
    if not explanation.is_text and explanation.verdict != "known":
        raise ConfigError(f"`{log}` is not a text", hint=f"`file {shlex.quote(log)}`")
    lines = [f"log: {log}"] if log != args.log else []
    after = _next_command(args.log, args.site) if explanation.verdict == "healthy" else []
    return Outcome(
        text="\n".join((*lines, *_describe(explanation), *after)),
        result={"log": log, **_result(explanation)},
        exit_code=EXITS[explanation.verdict],
    )


def _next_command(name: str, site: str) -> list[str]:
    """What to run next if the logs of an environment show no failure: something may have changed it since."""
    from provision.machine.disk import exists
    from provision.machine.programs.shell import default_site

    if not _means_environment(name) or exists(name):
        return []
    words = ["provision", "verify", name, *(["--site", site] if site != default_site() else [])]
    return [f"`{shlex.join(words)}` shows whether it has changed since it was proved"]


def _means_environment(name: str) -> bool:
    """Whether a text has the form of an environment: `arch/module/version`, or two of them."""
    return name.count("/") in (1, 2) and not name.endswith((".log", ".out", ".err", ".txt"))


def _logs(name: str, site: str) -> list[str]:
    """The paths of the logs that a user means.

    Raises:
        ConfigError: there is no such log.
    """
    from provision.machine.disk import exists, is_file
    from provision.machine.programs.log_search import logs_in

    if name == "-" or is_file(name):
        return [name]
    if exists(name):
        found = logs_in(Path(name))
    elif re.fullmatch(r"\d+(?:[_.[][\w.\]-]*)?", name):
        found = _logs_of_job(name, site)
    elif _means_environment(name):
        found = _logs_of_environment(name, site)
    else:
        return [name]
    if not found:
        raise ConfigError(f"no log of `{name}` was found", hint="name the file: `provision explain FILE`")
    return [str(path) for path in found]


def _logs_of_job(job: str, site: str) -> list[Path]:
    """The logs of a job: below the root, in this folder, or where the scheduler says."""
    from provision.machine.configuration import shipped
    from provision.machine.disk import exists
    from provision.machine.programs.log_search import logs_in
    from provision.machine.submission import status

    number = re.split(r"[.\[]", job)[0]
    profile = shipped.load_site(site)
    jobs = Path(read_store(profile).layout.jobs)
    found = [*(logs_in(jobs, number) if exists(str(jobs)) else []), *logs_in(Path(), number)]
    if not found and profile.scheduler.name != "none":
        now = status(job, profile.scheduler.name)
        found = [Path(now.output)] if now and now.output and exists(now.output) else []
    return found


def _logs_of_environment(name: str, site: str) -> list[Path]:
    """The logs of the steps of an environment."""
    from provision.machine.configuration import shipped
    from provision.machine.disk import exists
    from provision.machine.programs.log_search import logs_in

    store = read_store(shipped.load_site(site))
    folder = Path(store.layout.log(find_environment(store, name), "x")).parent
    return logs_in(folder) if exists(str(folder)) else []


def _describe(explanation: Explanation) -> list[str]:
    """The explanation in words."""
    known, others = explanation.known, explanation.findings[1 : MOST_OTHERS + 1]
    if known:
        lines = [f"{known.cause} ({known.failure.id}, {known.sureness})"]
        lines += [
            f"  line {known.hit.number}: {known.hit.text}",
            f"hint: {known.hint}",
            f"source: {known.failure.source}",
        ]
        if explanation.begins > 1:
            lines.append(
                f"several runs wrote to this log: this is the last one that failed, from line {explanation.begins} on"
            )
        if others:
            lines.append("also in this log:")
            lines += [
                f"  line {other.hit.number}: {other.cause} ({other.failure.id}, {other.sureness})" for other in others
            ]
        named = {known.hit.number, *(other.hit.number for other in others)}
        rest = [(number, text) for number, text in explanation.lines if number not in named]
        return lines + (["other lines that look like errors:", *_numbered(rest)] if rest else [])
    if explanation.verdict == "unknown":
        return _describe_unknown(explanation)
    ended = "" if explanation.ended else ", but no end either: it may be cut, or the program may still run"
    means = None if explanation.ended else next((note for note in explanation.findings if _may_matter(note)), None)
    if means:
        when = f"unless {means.failure.unless}" if means.failure.unless else "but a warning"
        ended = f", {when}: {means.cause} ({means.failure.id}); it shows no end either"
    lines = [f"the log shows no failure{ended}"]
    for note in explanation.findings[:MOST_OTHERS]:
        lines += [
            f"  line {note.hit.number}: {note.hit.text}",
            f"    harmless, unless you expect otherwise: {note.cause}; {note.hint}",
        ]
    return lines


def _may_matter(note: Finding) -> bool:
    """Whether a line that is no failure may matter: a warning of a known failure, or a notice that says so."""
    return bool(note.failure.unless) or note.failure.weight > 0


def _describe_unknown(explanation: Explanation) -> list[str]:
    """An explanation without a cause: what followed from it, and the lines that look like errors."""
    if not explanation.length:
        return ["the log is empty"]
    if not explanation.findings:
        return [f"no known failure; {_heading(explanation)}:", *_numbered(explanation.lines)]
    followed = explanation.findings[0]
    rest = [(number, text) for number, text in explanation.lines if number != followed.hit.number]
    return [
        f"no known failure; the log shows what followed from it: {followed.cause} ({followed.failure.id})",
        f"  line {followed.hit.number}: {followed.hit.text}",
        f"hint: {followed.hint}",
        *([f"{_heading(explanation)}:", *_numbered(rest)] if rest else []),
    ]


def _heading(explanation: Explanation) -> str:
    """What the lines of an unknown failure are."""
    if not explanation.last_only:
        return "lines that look like errors"
    return f"no {'other ' if explanation.findings else ''}line looks like an error; the last lines"


def _numbered(lines: tuple[tuple[int, str], ...] | list[tuple[int, str]]) -> list[str]:
    return [f"  line {number}: {text}" for number, text in lines]


def _result(explanation: Explanation) -> dict[str, Any]:
    """The explanation for `--json`."""
    known = explanation.known
    return {
        "verdict": explanation.verdict,
        "failure": known.failure.id if known else None,
        "cause": known.cause if known else None,
        "hint": known.hint if known else None,
        "source": known.failure.source if known else None,
        "sureness": known.sureness if known else None,
        "line": {"number": known.hit.number, "text": known.hit.text} if known else None,
        "program": known.failure.program if known else False,
        "others": [_finding(other) for other in explanation.findings[1 if known else 0 :]],
        "begins": explanation.begins,
        "ended": explanation.ended,
        "lines": [text for _, text in explanation.lines],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """One cause that is not the likeliest, or one harmless line."""
    return {
        "failure": finding.failure.id,
        "cause": finding.cause,
        "hint": finding.hint,
        "source": finding.failure.source,
        "sureness": finding.sureness,
        "line": {"number": finding.hit.number, "text": finding.hit.text},
    }
