"""`provision explain LOG`: explain a log, or those of a job, a folder or an environment."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import EXIT_FAILED, EXIT_OK, EXIT_UNKNOWN, ConfigError
from provision.explain.conclude import Explanation, FoundFailure
from provision.machine.files.disk import is_file
from provision.machine.programs.failed_program import explain_log, known_failures
from provision.machine.programs.log_file import given_blocks
from provision.machine.terminal.console import is_terminal, width_of_output

EXITS = {"healthy": EXIT_OK, "known": EXIT_FAILED, "unknown": EXIT_UNKNOWN}
# How many causes are shown beside the likeliest, how many lines that look like errors, and how wide a line is by default.
MOST_OTHERS, MOST_LINES, WIDTH = 3, 5, 100
# The entries of errors in the user's own program.
OF_PROGRAM = ("error-in-program", "name-missing-in-program")
# A long log shows on a terminal how much of it was read, each so many bytes.
PROGRESS = 8 << 20
# A command in a text is not broken over two lines.
COMMAND, BLANK = re.compile(r"`[^`]*`"), "\x1f"


def run(args: Args) -> Outcome:
    """Explain the log; exit 0 if it shows no failure, 1 if the failure is known, 3 if it is not."""
    if args.list:
        return _list(args.log)
    logs, after = [args.log], list[str]()
    if args.log != "-" and not is_file(args.log):
        # A log that is a file is explained without the rooms that know jobs and environments: they take longer to load.
        from provision.commands.shared.log_names import logs_named

        logs, after = logs_named(args.log, args.site)
    explained = [(log, explain_log(_shown(given_blocks(log), log))) for log in logs]
    # Of several logs, the newest with a known failure tells most.
    log, explanation = min(explained, key=lambda pair: ("known", "unknown", "healthy").index(pair[1].verdict))
    if not explanation.is_text and explanation.verdict != "known":
        raise ConfigError(f"`{log}` is not a text", hint=f"`file {shlex.quote(log)}`")
    lines = [f"log: {log}"] if log != args.log else []
    after = after if explanation.verdict == "healthy" else []
    return Outcome(
        text="\n".join((*_describe(explanation), *lines, *after)),
        result={"log": log, **_result(explanation)},
        exit_code=EXITS[explanation.verdict],
    )


def _shown(blocks: Iterable[bytes], log: str) -> Iterator[bytes]:
    """The blocks of a log; if it is long, a terminal shows how much was read."""
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
    end, notes = "", explanation.findings[:MOST_OTHERS]
    if not (explanation.ended or explanation.whole):
        end = ", but the log has no end: it is cut off, or the program is still running"
    matter = [note for note in notes if note.entry.level != "notice" or "matters" in note.cause]
    if matter and not explanation.ended:
        end = ", but a warning may matter: " + matter[0].cause.partition("; it matters")[0]
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
        "ended": explanation.ended or explanation.whole,
        "lines": [text for _, text in explanation.lines],
    }


def _finding(finding: FoundFailure) -> dict[str, Any]:
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
