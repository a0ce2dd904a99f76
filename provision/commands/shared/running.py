"""Running one verb: its words to arguments, its errors to an exit code, its outcome to stdout. Never a bare traceback."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from provision import __version__
from provision.errors import EXIT_OK, Interruption, ProvisionError

if TYPE_CHECKING:
    import argparse
    from types import FrameType


class Terminated(KeyboardInterrupt):
    """The scheduler or somebody else asked us to end (SIGTERM), or the terminal is gone (SIGHUP)."""


def columns() -> int:
    """The width of the terminal, as shutil has it: by COLUMNS, else asked, else 80."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


def verb_parser(verb: str, purpose: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    import argparse

    one = argparse.ArgumentParser(prog=f"provision {verb}", allow_abbrev=False, description=purpose)
    one.add_argument("--json", action="store_true", help="one JSON object on stdout, also on failure")
    return one


def run_verb(verb: str, purpose: str, words: Sequence[str]) -> int:
    """Run a verb with these words behind it and return the exit code."""
    from provision.machine.streams import replace_unknown_characters

    replace_unknown_characters(sys.stdout, sys.stderr)
    command = importlib.import_module(f"provision.commands.{verb}")
    one = verb_parser(verb, purpose)
    command.add_arguments(one)
    # What we make is for others to read, whatever the caller's umask (PBS starts jobs with 0077); a group's stays.
    os.umask(os.umask(0o022) & 0o022)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _terminated)
    as_json = "--json" in words

    def wrong(message: str) -> NoReturn:
        from provision.errors import ConfigError

        raise ConfigError(message, hint=f"`provision {verb} --help`", kind="usage")

    one.error = wrong  # type: ignore[method-assign]
    try:
        args = one.parse_args(words)
    except ProvisionError as error:
        return _tell(verb, error, as_json)
    return _run(verb, command.run, args)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _run(verb: str, run: object, args: argparse.Namespace) -> int:
    from provision.commands.shared.outcome import Outcome, envelope

    assert callable(run)
    try:
        outcome = run(args)
    except ProvisionError as error:
        return _tell(verb, error, args.json)
    except KeyboardInterrupt as stop:
        word = "ended by a signal" if isinstance(stop, Terminated) else "interrupted"
        told = Interruption(
            f"{word}; what was done is kept", hint="run the same command again: it goes on where it stopped"
        )
        return _tell(verb, told, args.json)
    except BrokenPipeError:
        discard_stdout()
        return EXIT_OK
    except Exception as error:
        return _bug(verb, error, args.json)
    assert isinstance(outcome, Outcome)
    try:
        if args.json:
            envelope(verb, result=outcome.result)
        elif outcome.text:
            print(outcome.text, end="" if outcome.text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        return _tell(verb, ProvisionError(f"stdout cannot be written: {error.strerror}"), False)
    return outcome.exit_code


def _tell(verb: str, error: ProvisionError, as_json: bool) -> int:
    """Tell an error where it is looked for: in the envelope on stdout, or on stderr."""
    from provision.commands.shared.outcome import envelope
    from provision.machine.console import show_error

    try:
        if as_json:
            envelope(verb, error=error)
        else:
            show_error(error)
    except BrokenPipeError:
        discard_stdout()
    return error.exit_code


def discard_stdout() -> None:
    """Whoever read our output has seen enough (`provision list | head -1`): what is left in the buffer goes nowhere.

    Without this the interpreter tries again at its end, and turns our exit code into 120.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(verb: str, error: Exception, as_json: bool) -> int:
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
    return _tell(verb, told, as_json)
