"""The command line: words to a command, errors to exit codes. Nothing heavy is imported before a verb is known.

Exit codes: 0 done or nothing to do; 1 failed; 2 the request or a file is wrong, nothing was tried; 4 a job was left
running (`--no-wait`); 130 interrupted. stdout is data, stderr is talk.
"""

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

# verb, what it is for; each is `provision/commands/<verb>.py` with `add_arguments(parser)` and `run(args) -> Outcome`.
VERBS = (
    ("doctor", "what is here, what would stop a build, each with its fix"),
    ("lock", "compile requirements/*.in to locks with hashes (needs the network)"),
    ("fetch", "download all that a build installs, for nodes without network"),
    ("plan", "every step of a build, why, and what it would reuse; touches nothing"),
    ("build", "build an environment, prove it, publish its module"),
    ("test", "prove a published environment again"),
    ("verify", "whether what this shell has loaded is what was proved"),
    ("job", "write the script of a build's or a user's job, check one, or follow a job"),
    ("data", "a script that copies a data set to the site's scratch"),
    ("scaling", "runs on more and more GPUs, as a table of speed-up and efficiency"),
    ("site", "a profile of your own site, from one with blanks"),
    ("list", "the environments of a site"),
    ("show", "the story of one environment"),
    ("activate", "print the modulefile's effect, for shells without a module system"),
    ("explain", "what a log means"),
)


class Terminated(KeyboardInterrupt):
    """The scheduler or somebody else asked us to end (SIGTERM), or the terminal is gone (SIGHUP)."""


def parser() -> argparse.ArgumentParser:
    """The parser of all verbs; a verb's own arguments are added by `verb_parser`."""
    import argparse

    top = argparse.ArgumentParser(
        prog="provision",
        allow_abbrev=False,
        # Told the width, argparse does not import shutil to ask for it, which would be a third of our start-up.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=_columns() - 2),
        usage="provision <verb> [options]",
        description="TensorFlow + Horovod environments for HPC sites, proved before anybody can load them.\n\nverbs:\n"
        + "\n".join(f"  {verb:<10} {purpose}" for verb, purpose in VERBS),
        epilog="`provision <verb> --help` tells a verb's options. Exit codes: 0 done, 1 failed, 2 wrong request,\n"
        "4 job left running, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"provision {__version__}")
    return top


def _columns() -> int:
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    verbs = dict(VERBS)
    if not words or words[0].startswith("-"):
        top = parser()
        if not words:
            top.print_help(sys.stderr)
            return 2
        top.parse_args(words)  # prints help or the version and ends, or finds fault
        top.error("a verb comes first")
    verb = words[0]
    if verb not in verbs:
        from provision.profile.reader import nearest

        print(
            f"error: there is no verb `{verb}`{nearest(verb, list(verbs))}\n\nhint: `provision --help`", file=sys.stderr
        )
        return 2
    command = importlib.import_module(f"provision.commands.{verb}")
    one = verb_parser(verb, verbs[verb])
    command.add_arguments(one)
    # What we make is for others to read, whatever the caller's umask (PBS starts jobs with 0077); a group's stays.
    os.umask(os.umask(0o022) & 0o022)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _terminated)
    as_json = "--json" in words

    def wrong(message: str) -> NoReturn:
        from provision.errors import ConfigError

        raise ConfigError(message, hint=f"`provision {verb} --help`")

    one.error = wrong  # type: ignore[method-assign]
    try:
        args = one.parse_args(words[1:])
    except ProvisionError as error:
        return _tell(verb, error, as_json)
    return _run(verb, command.run, args)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _run(verb: str, run: object, args: argparse.Namespace) -> int:
    from provision.commands import Outcome, envelope

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
    from provision.commands import envelope
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
        log=file.name,
    )
    return _tell(verb, told, as_json)
