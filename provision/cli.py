"""The command line: find the verb among the words and run it.

Help and version are printed from data; argparse is imported only for a verb.

Exit codes: 0 done or nothing to do; 1 failed; 2 the request or a file is wrong, nothing was tried; 3 a log shows a
failure that is not known (`explain`); 4 a job was left running (`--no-wait`); 130 interrupted. stdout is data, stderr is
for people.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence

from provision import __version__
from provision.commands import PAGES, VERBS

# They are the same with `--json`.
FOR_PEOPLE = ("help", "-h", "--help", "--help-all", "version", "-V", "--version")

# The page of the help that each prints.
HELPS = {"-h": "", "--help": "", "--help-all": "all"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: whatever happens, and at whatever moment, without a traceback."""
    words, code = list(sys.argv[1:] if argv is None else argv), 0
    try:
        try:
            code = _run(words)
        finally:
            show("")
        if argv is None:
            # Ctrl-C ends the process at once from now on: the interpreter, which tidies up, would print where it was.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except (Exception, KeyboardInterrupt) as error:
        from provision.commands.shared.running import report_failure

        verb, rest = verb_first(words) if words else ("help", [])
        code = report_failure((verb, *rest), error, code)
    return code


def _run(words: list[str]) -> int:
    """Print what is known without a verb, or run the verb among these words."""
    # A run makes many objects and drops few: looking for cycles took a tenth of the time of a build with nothing to do.
    gc.set_threshold(100_000)
    if words[:1] == ["__complete"]:
        from provision.commands.shared.names import names_of

        for name in names_of(*words[1:3]):
            print(name)
        return 0
    plain = [word for word in words if word != "--json"]
    if plain and plain[0] in FOR_PEOPLE:
        words = plain
    if not words or words[0] in HELPS or (words[0] == "help" and words[1:] in [[], *([page] for page in PAGES)]):
        from provision.commands.shared.help_text import help_here

        if not words:
            print(help_here(), file=sys.stderr)
            return 2
        show(help_here(HELPS.get(words[0], words[-1])))
        return 0
    if words[0] in ("-V", "--version") or words == ["version"]:
        show(f"provision {__version__}")
        return 0
    if words[0] == "help":
        words = [*words[1:], "--help"]
    from provision.commands.shared.running import run_verb

    verb, rest = verb_first(words)
    return run_verb(verb, rest)


def show(text: str) -> None:
    """Print a text, and all that was printed before.

    Raises:
        OSError: it cannot be written; `stdout` is its file.
    """
    try:
        print(text, end="\n" if text else "", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from error


def verb_first(words: Sequence[str]) -> tuple[str, list[str]]:
    """The verb among these words, and the others: options may stand before it (`provision --json list`)."""
    verbs = {verb for verb, _ in VERBS}
    at = 0
    if words[0].startswith("-"):
        names = [index for index, word in enumerate(words) if not word.startswith("-")]
        at = next((index for index in names if words[index] in verbs), names[0] if names else 0)
    return words[at], [*words[:at], *words[at + 1 :]]
