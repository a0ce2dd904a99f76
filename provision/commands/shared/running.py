"""Running one verb: its words to arguments, its errors to an exit code, its outcome to stdout. Never a bare traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from provision import __version__
from provision.commands import VERBS
from provision.errors import EXIT_OK, Interruption, ProvisionError

if TYPE_CHECKING:
    import argparse
    from types import FrameType


class Terminated(KeyboardInterrupt):
    """The scheduler or somebody else asked us to end (SIGTERM), or the terminal is gone (SIGHUP)."""


def run_verb(verb: str, words: Sequence[str]) -> int:
    """Run a verb with these words behind it and return the exit code."""
    from provision.commands.shared.parsers import parse
    from provision.machine.streams import replace_unknown_characters

    replace_unknown_characters(sys.stdout, sys.stderr)
    # What we make is for others to read, whatever the caller's umask (PBS starts jobs with 0077); a group's stays.
    os.umask(os.umask(0o022) & 0o022)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _terminated)
    try:
        if verb not in dict(VERBS):
            from provision.commands.shared.typos import refuse_verb

            refuse_verb(verb, words)
        args = parse(verb, words)
    except ProvisionError as error:
        return report((verb, *words), error, "--json" in words)
    return _run((verb, *words), args)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _run(words: Sequence[str], args: argparse.Namespace) -> int:
    from provision.commands.shared.outcome import Outcome, envelope

    try:
        outcome = args.run(args)
    except ProvisionError as error:
        return report(words, error, args.json)
    except KeyboardInterrupt as stop:
        word = "ended by a signal" if isinstance(stop, Terminated) else "interrupted"
        told = Interruption(
            f"{word}; what was done is kept", hint="run the same command again: it goes on where it stopped"
        )
        return report(words, told, args.json)
    except BrokenPipeError:
        discard_stdout()
        return EXIT_OK
    except Exception as error:
        return _bug(words, error, args.json)
    assert isinstance(outcome, Outcome)
    try:
        if args.json:
            envelope(words[0], result=outcome.result)
        elif outcome.text:
            print(outcome.text, end="" if outcome.text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        return report(words, ProvisionError(f"stdout cannot be written: {error.strerror}"), False)
    return outcome.exit_code


def report(words: Sequence[str], error: ProvisionError, as_json: bool) -> int:
    """Print an error: in the envelope on stdout, or for people on stderr. Returns its exit code."""
    from provision.commands.shared.outcome import envelope
    from provision.machine.console import show_error

    if error.correction:
        error.hint = corrected(words, *error.correction) or error.hint
    try:
        if as_json:
            envelope(words[0], error=error)
        else:
            show_error(error)
    except BrokenPipeError:
        discard_stdout()
    return error.exit_code


def corrected(words: Sequence[str], wrong: str, right: str) -> str | None:
    """The command with its misspelt word corrected, for a hint; None if the word was not typed (a default, a file)."""
    import shlex

    for at in reversed(range(len(words))):
        name, equals, value = words[at].partition("=")
        if words[at] == wrong:
            better = right
        elif equals and wrong in (name, value):
            better = f"{right}={value}" if wrong == name else f"{name}={right}"
        else:
            continue
        return f"`{shlex.join(['provision', *words[:at], better, *words[at + 1 :]])}`"
    return None


def discard_stdout() -> None:
    """Whoever read our output has seen enough (`provision list | head -1`): what is left in the buffer goes nowhere.

    Without this the interpreter tries again at its end, and turns our exit code into 120.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(words: Sequence[str], error: Exception, as_json: bool) -> int:
    """Tell that we are at fault, with the traceback in a file instead of on the screen."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="provision-bug-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    told = ProvisionError(
        f"a bug in provision: {type(error).__name__}: {error}",
        evidence=[f"command: {' '.join(sys.argv)}", f"version: {__version__}"],
        hint=f"report it with `{file.name}`",
        kind="bug",
        log=file.name,
    )
    return report(words, told, as_json)
