"""`provision explain LOG`: explain a log, or those of a job, a folder or an environment."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.commands.shared.environments import find_environment, read_store
from provision.commands.shared.outcome import Outcome
from provision.errors import EXIT_FAILED, EXIT_OK, EXIT_UNKNOWN, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.explain.conclude import Explanation, Finding

EXITS = {"healthy": EXIT_OK, "known": EXIT_FAILED, "unknown": EXIT_UNKNOWN}
# How many causes are shown beside the likeliest, how many lines that look like errors, and how wide a line is by default.
MOST_OTHERS, MOST_LINES, WIDTH = 3, 5, 100
# The entries of errors in the user's own program.
OF_PROGRAM = ("error-in-program", "name-missing-in-program")
# A long log shows on a terminal how much of it was read, each so many bytes.
PROGRESS = 8 << 20
JOB = re.compile(r"\d+(?:[_.[][\w.\]-]*)?")
# A command in a text is not broken over two lines.
COMMAND, BLANK = re.compile(r"`[^`]*`"), "\x1f"


def run(args: argparse.Namespace) -> Outcome:
    """Explain the log; exit 0 if it shows no failure, 1 if the failure is known, 3 if it is not."""
    from provision.machine.programs.failed_program import explain_log
    from provision.machine.programs.log_file import given_blocks

    if args.list:
        return _list(args.log)
    explained = [(log, explain_log(_shown(given_blocks(log), log))) for log in _logs(args.log, args.site)]
    # Of several logs, the newest with a known failure tells most.
    log, explanation = min(explained, key=lambda pair: ("known", "unknown", "healthy").index(pair[1].verdict))
    if not explanation.is_text and explanation.verdict != "known":
        raise ConfigError(f"`{log}` is not a text", hint=f"`file {shlex.quote(log)}`")
    lines = [f"log: {log}"] if log != args.log else []
    after = _next_command(args.log, args.site) if explanation.verdict == "healthy" else []
    return Outcome(
        text="\n".join((*_describe(explanation), *lines, *after)),
        result={"log": log, **_result(explanation)},
        exit_code=EXITS[explanation.verdict],
    )


def _shown(blocks: Iterable[bytes], log: str) -> Iterator[bytes]:
    """The blocks of a log; if it is long, a terminal shows how much was read."""
    from provision.machine.terminal.console import is_terminal

    size = shown = 0
    for block in blocks:
        yield block
        size += len(block)
        if size - shown >= PROGRESS and is_terminal(sys.stderr):
            shown = size
            print(f"\rreading {log}: {size >> 20} MiB", end="", file=sys.stderr, flush=True)
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _list(words: str) -> Outcome:
    """The known failures that have all these words in what a log shows, in the cause or in the hint."""
    from provision.machine.programs.failed_program import known_failures

    wanted = words.lower().split()
    found = [
        entry
        for entry in known_failures().entries
        if entry.example and all(word in f"{entry.example} {entry.cause} {entry.hint}".lower() for word in wanted)
    ]
    lines = [line for entry in found for line in (entry.example, f"  {entry.cause}", f"  hint: {entry.hint}")]
    listed = [
        {"failure": entry.id, "example": entry.example, "cause": entry.cause, "hint": entry.hint} for entry in found
    ]
    return Outcome(text="\n".join(lines) or f"no known failure has the words `{words}`", result={"failures": listed})


def _next_command(name: str, site: str) -> list[str]:
    """What to run next if the logs of an environment show no failure: something may have changed it since."""
    from provision.machine.files.disk import exists
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
    from provision.machine.files.disk import exists, is_file
    from provision.machine.programs.log_file import logs_in

    if name == "-" or is_file(name):
        return [name]
    if exists(name):
        found = logs_in(Path(name))
        # The folder of a job's output is named like the job.
        found = found or (_logs_of_job(Path(name).name, site) if JOB.fullmatch(Path(name).name) else [])
    elif JOB.fullmatch(name):
        found = _logs_of_job(name, site)
    elif _means_environment(name):
        found = _logs_of_environment(name, site)
    else:
        raise _missing(name)
    if not found:
        raise ConfigError(f"no log of `{name}` was found", hint="name the file: `provision explain FILE`")
    return [str(path) for path in found]


def _missing(name: str, evidence: Iterable[str] = ()) -> ConfigError:
    """The error for a name that is neither a file nor a job nor an environment."""
    return ConfigError(
        f"there is no file `{name}`, and no job or environment of that name",
        evidence=tuple(evidence),
        hint=f"`ls -l {shlex.quote(os.path.dirname(name) or '.')}` lists the files there, `provision list` the environments",
    )


def _logs_of_job(job: str, site: str) -> list[Path]:
    """The logs of a job: below the root, in this folder, or where the scheduler says."""
    from provision.machine.configuration import shipped
    from provision.machine.files.disk import exists
    from provision.machine.probes.ask_scheduler import status
    from provision.machine.programs.log_file import logs_in

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
    from provision.machine.files.disk import exists
    from provision.machine.programs.log_file import logs_in

    store = read_store(shipped.load_site(site))
    try:
        environment = find_environment(store, name)
    except ConfigError as error:
        raise error if error.kind == "ambiguous-environment" else _missing(name, error.evidence) from error
    folder = Path(store.layout.log(environment, "x")).parent
    return logs_in(folder) if exists(str(folder)) else []


def _describe(explanation: Explanation) -> list[str]:
    """The explanation in words."""
    known, others = explanation.known, explanation.findings[1:]
    if known:
        lines = [*_sentences(f"{known.sureness}: ", known.cause), f"  line {known.number}: {known.text}"]
        lines += [f"  in your program: {known.place}"] if known.place and known.place not in known.cause else []
        lines += _sentences("hint: ", known.hint)
        if explanation.begins > 1:
            lines.append(
                f"several runs wrote to this log; this is the last one that failed, from line {explanation.begins} on"
            )
        named = {known.number}
        causes: list[str] = []
        for other in others:
            if len(causes) < MOST_OTHERS and other.number not in named and other.level != "consequence":
                named.add(other.number)
                causes.append(f"  line {other.number}: {other.cause.partition('; ')[0]}")
        lines += ["also in this log:", *causes] if causes else []
        rest = [(number, text) for number, text in explanation.lines if number not in named][:MOST_LINES]
        return lines + (["other lines that look like errors:", *_numbered(rest)] if rest else [])
    if explanation.verdict == "unknown":
        return _describe_unknown(explanation)
    end = "" if explanation.ended else ", but the log has no end: it is cut off, or the program is still running"
    notes = explanation.findings[:MOST_OTHERS]
    may_matter = (
        [] if explanation.ended else [note for note in notes if note.entry.level != "notice" or "matters" in note.cause]
    )
    if may_matter:
        end = ", but a warning may matter: " + may_matter[0].cause.partition("; it matters")[0]
    lines = _sentences("", f"no failure found{end}")
    for note in notes:
        lines += [f"  line {note.number}: {note.text}", *_sentences("  a warning only: ", f"{note.cause}; {note.hint}")]
    return lines


def _describe_unknown(explanation: Explanation) -> list[str]:
    """An explanation without a cause: what followed from it, and the lines that look like errors."""
    if not explanation.length:
        return ["the log is empty"]
    followed = explanation.findings[0] if explanation.findings else None
    rest = [(number, text) for number, text in explanation.lines if not followed or number != followed.number]
    heading = "no line looks like an error; the last lines" if explanation.last_only else "lines that look like errors"
    if not followed:
        return [f"unknown: no known failure; {heading}:", *_numbered(rest)]
    return [
        *_sentences("unknown: ", followed.cause),
        f"  line {followed.number}: {followed.text}",
        *_sentences("hint: ", followed.hint),
        *([f"{heading}:", *_numbered(rest)] if rest else []),
    ]


def _sentences(prefix: str, text: str) -> list[str]:
    """A text whose first clauses are in one line that fits the terminal, behind a prefix; the others are below, indented."""
    from provision.machine.terminal.console import width_of_output

    width = width_of_output() or WIDTH
    lines = [prefix]
    for clause in COMMAND.sub(lambda command: command[0].replace(" ", BLANK), text).split("; "):
        if lines[-1] != prefix and len(lines[-1]) + len(clause) + 2 <= width:
            lines[-1] += f"; {clause}"
        else:
            start = lines.pop() if lines[-1] == prefix else "  "
            lines[-1:] = [f"{lines[-1]};"] if lines else []
            wrapped = textwrap.TextWrapper(width, start, "  ", break_long_words=False, break_on_hyphens=False)
            lines += wrapped.wrap(clause)
    return [line.replace(BLANK, " ") for line in lines]


def _numbered(lines: tuple[tuple[int, str], ...] | list[tuple[int, str]]) -> list[str]:
    return [f"  line {number}: {text}" for number, text in lines]


def _result(explanation: Explanation) -> dict[str, Any]:
    """The explanation for `--json`."""
    known = explanation.known
    empty = dict.fromkeys(("failure", "cause", "hint", "source", "sureness", "line", "place"))
    return {
        "verdict": explanation.verdict,
        **(_finding(known) if known else empty),
        "program": bool(known and known.entry.id in OF_PROGRAM),
        "others": [_finding(other) for other in explanation.findings[1 if known else 0 :]],
        "begins": explanation.begins,
        "ended": explanation.ended,
        "lines": [text for _, text in explanation.lines],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """One failure, or one harmless line."""
    return {
        "failure": finding.entry.id,
        "cause": finding.cause,
        "hint": finding.hint,
        "source": finding.entry.source,
        "sureness": finding.sureness,
        "line": {"number": finding.number, "text": finding.text},
        "place": finding.place,
    }
