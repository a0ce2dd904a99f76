"""The command line: words to a command, errors to exit codes. Nothing heavy is imported before a verb is known.

Exit codes: 0 done or nothing to do; 1 failed; 2 the request or a file is wrong, nothing was tried; 4 a job was left
running (`--no-wait`); 130 interrupted. stdout is data, stderr is talk.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from provision import __version__

if TYPE_CHECKING:
    import argparse

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


def parser() -> argparse.ArgumentParser:
    """The parser of all verbs; a verb's own arguments are added by `verb_parser`."""
    import argparse

    from provision.commands.shared.running import columns

    top = argparse.ArgumentParser(
        prog="provision",
        allow_abbrev=False,
        # Told the width, argparse does not import shutil to ask for it, which would be a third of our start-up.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=columns() - 2),
        usage="provision <verb> [options]",
        description="TensorFlow + Horovod environments for HPC sites, proved before anybody can load them.\n\nverbs:\n"
        + "\n".join(f"  {verb:<10} {purpose}" for verb, purpose in VERBS),
        epilog="`provision <verb> --help` tells a verb's options. Exit codes: 0 done, 1 failed, 2 wrong request,\n"
        "4 job left running, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"provision {__version__}")
    return top


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
        from provision.wording import nearest

        print(
            f"error: there is no verb `{verb}`{nearest(verb, list(verbs))}\n\nhint: `provision --help`", file=sys.stderr
        )
        return 2
    from provision.commands.shared.running import run_verb

    return run_verb(verb, verbs[verb], words[1:])
