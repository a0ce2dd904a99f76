"""Running one verb: its words to arguments, its errors to an exit code, its outcome to stdout. Never a bare traceback."""

from __future__ import annotations

import argparse
import functools
import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from provision import __version__
from provision.commands import VERBS
from provision.commands.shared.hints import SUBJECTS, complete, complete_result, complete_text
from provision.commands.shared.outcome import Outcome, envelope
from provision.commands.shared.parsers import command_line, options_in, parse
from provision.commands.shared.typos import refuse_verb
from provision.errors import EXIT_OK, ConfigError, Interruption, ProvisionError
from provision.machine.configuration.search_path import named_folder
from provision.machine.files.disk import disk_error, is_folder, write_temporary
from provision.machine.programs.secrets_here import secrets_here
from provision.machine.programs.shell import default_site, environ, set_umask
from provision.machine.terminal import console
from provision.machine.terminal.console import discard_stdout, replace_unknown_characters, say, show_error

# What these verbs keep if they are interrupted, and what the same command then does. The others keep nothing.
KEPT = {
    "build": ("finished steps are kept, unless packages are half installed", "does the steps that are not done"),
    "upgrade": (
        "proved environments are kept, and users load what they loaded",
        "continues with the first unfinished step",
    ),
    "fetch": ("finished downloads are kept", "downloads the rest"),
    "site new": ("the answers so far are kept", "asks the remaining questions"),
    "lock": ("the locks that were written are kept", "compiles all of them"),
}
# What these do for the site `local`, this node alone, is rarely meant on a node of a cluster.
BUILDS = ("build", "upgrade")
LOOKS = ("plan", "doctor", "compat", "fetch")


class Terminated(KeyboardInterrupt):
    """The scheduler or a user ended the process (SIGTERM), or the terminal was closed (SIGHUP)."""


def run_verb(verb: str, words: Sequence[str]) -> int:
    """Run a verb with these words behind it and return the exit code.

    Raises:
        BaseException: what it met; `report_failure` reports it.
    """
    replace_unknown_characters(sys.stdout, sys.stderr)
    set_umask()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _terminated)
    if verb not in dict(VERBS):
        refuse_verb(verb, words)
    args = parse(verb, words)
    if verb != "site":  # which makes the folder
        refuse_mistyped()
    check_site(args)
    completed = console.completes = functools.partial(complete, typed=(verb, *words))
    module, _, function = args.leaf.run.partition(":")
    try:
        outcome: Outcome = getattr(importlib.import_module(f"provision.commands.{module}"), function)(args)
    finally:
        console.completes = str
    try:
        if args.json:
            envelope(verb, result=complete_result(outcome.result, completed), ok=outcome.exit_code == EXIT_OK)
        elif outcome.text:
            console.write_out(complete_text(secrets_here().hide_known(outcome.text), (verb, *words)))
    except BrokenPipeError:  # the reader has seen enough: `provision list | head -1`
        discard_stdout()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from error
    return outcome.exit_code


def check_site(args: argparse.Namespace) -> None:
    """Raise if this verb would build for the login node of a cluster because no site was named, or note it if it only looks.

    Raises:
        ConfigError: it would build, with this node's compiler, into the root of `local`.
    """
    if args.leaf.name not in (*BUILDS, *LOOKS) or "--site" in options_in(args.given) or default_site(otherwise=""):
        return
    from provision.machine.probes.ask_scheduler import is_login_node  # most verbs need no schedulers

    if not is_login_node():
        return
    what = "this is a node of a cluster with Slurm, and no site was named"
    hint = "`provision site list` lists the sites that there are, `provision site new NAME` writes the profile of a new one"
    if args.leaf.name in LOOKS:
        say(f"note: {what}, so this is about the site `local`, this node alone; {hint}")
        return
    raise ConfigError(
        f"{what}: the site `local` would build for this node",
        hint=f"{hint}; `{command_line(args)}` builds here all the same",
    )


def report_failure(words: Sequence[str], error: BaseException, code: int) -> int:
    """Report what ended the command line, and return the exit code; `words` begin with the verb.

    If a reader has seen enough (`provision --help | head -1`), it is `code`, that of what was done.
    """
    if isinstance(error, BrokenPipeError):
        discard_stdout()
        return code
    replace_unknown_characters(sys.stdout, sys.stderr)
    as_json = "--json" in words
    if isinstance(error, ProvisionError):
        return report(words, error, as_json)
    if isinstance(error, KeyboardInterrupt):
        word = "ended by a signal" if isinstance(error, Terminated) else "interrupted"
        kept, again = (
            KEPT.get(" ".join(words[:2])) or KEPT.get(words[0]) or ("nothing was kept", "starts from the beginning")
        )
        hint = f"run the same command again: it {again}"
        return report(words, Interruption(f"{word}; {kept}", hint=hint), as_json)
    # A path that cannot be used, of whatever kind and wherever it came from, is a fault of the path.
    if isinstance(error, OSError) and error.filename is not None:
        if error.filename == "stdout":
            discard_stdout()
            as_json = False
        return report(words, disk_error(error, error.filename), as_json)
    assert isinstance(error, Exception)
    return _bug(words, error, as_json)


def _terminated(number: int, frame: FrameType | None) -> None:
    # A scheduler sends it several times; a second one must not interrupt what frees the locks and ends the programs.
    for each in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(each)):
            signal.signal(each, _ignored)
    raise Terminated


def _ignored(number: int, frame: FrameType | None) -> None:
    """Nothing. With SIG_IGN, programs that are started later would ignore the signal too."""


def report(words: Sequence[str], error: ProvisionError, as_json: bool) -> int:
    """Print an error: in the envelope on stdout, or for people on stderr. Returns its exit code."""
    if error.correction:
        error.hint = corrected(words, *error.correction) or error.hint
    if error.hint:
        # What is wrong with a request may be its arch or stack.
        error.hint = complete(error.hint, words, ("--site",) if error.kind == "usage" else SUBJECTS)
    try:
        if as_json:
            envelope(words[0], error=error)
        else:
            show_error(error)
        sys.stdout.flush()
    except OSError:
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


def _bug(words: Sequence[str], error: Exception, as_json: bool) -> int:
    """Report a bug of this tool, with the traceback in a file instead of on the screen."""
    import traceback

    path = write_temporary("provision-bug-", secrets_here().hide("".join(traceback.format_exception(error))))
    bug = ProvisionError(
        f"a bug in provision: {type(error).__name__}: {error}",
        evidence=[f"command: {' '.join(sys.argv)}", f"version: {__version__}"],
        hint=f"report it with `{path}`",
        kind="bug",
        log=path,
    )
    return report(words, bug, as_json)


def refuse_mistyped() -> None:
    """Raise a `ConfigError` for a variable of the tool whose value means nothing: nobody would know that it has no effect."""
    folder, installer = named_folder(), environ().get("PROVISION_INSTALLER", "")
    if folder and not is_folder(folder):
        raise ConfigError(
            f"`PROVISION_CONFIG` names `{folder}`, which is no folder",
            hint="`export PROVISION_CONFIG=/PATH` of the folder that contains `sites`, or `unset PROVISION_CONFIG`",
        )
    if installer not in ("", "pip", "uv"):
        raise ConfigError(
            f"`PROVISION_INSTALLER` is `{installer}`, and must be `pip` or `uv`",
            hint="`export PROVISION_INSTALLER=pip`, or `unset PROVISION_INSTALLER`",
        )
