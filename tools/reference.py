#!/usr/bin/env python3
"""Write docs/reference/cli.md and man/provision.1 from the options; lint-rules.md from its table.

`tools/reference.py` writes them; with `--check` it writes nothing, and exits 1 if one of them is not current.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from provision import __version__  # noqa: E402
from provision.commands.options import COMMANDS  # noqa: E402
from provision.commands.options.declare import CommandOptions, Option  # noqa: E402
from provision.commands.options.users import SHELLS  # noqa: E402
from provision.commands.shared.help_text import PURPOSE  # noqa: E402
from provision.lint.rules import RULES, WEIGHTS  # noqa: E402

# Every command has these, so they are described once.
COMMON = ("--help", "--json")
EXITS = (
    ("0", "done, or nothing to do"),
    ("1", "failed"),
    ("2", "the request or a file is wrong; nothing was tried"),
    ("3", "a log shows a failure that is not known (`explain`)"),
    ("4", "a job was left running (`--no-wait`)"),
    ("130", "interrupted"),
)
VARIABLES = (
    ("PROVISION_SITE", "the site, if `--site` is not given (default: local)"),
    ("PROVISION_ROOT", "the folder of the environments, if the profile says `${PROVISION_ROOT}`"),
    ("PROVISION_CONFIG", "a folder with your own `sites/`, `stacks/` and `requirements/`, which is searched first"),
    ("XDG_CONFIG_HOME", "`provision` below it is your own folder, which is searched next (default: ~/.config)"),
    ("NO_COLOR", "if it is not empty, nothing is coloured"),
)
EVERYWHERE = (
    "`--help` behind a verb prints its options. Options may stand before the verb. An option that a verb does "
    "not use is refused with exit code 2."
)


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description="write the reference of the command line")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    args = parser.parse_args()
    commands = tuple(COMMANDS.values())
    stale = []
    for name, text in (
        ("docs/reference/cli.md", write_page(commands)),
        ("man/provision.1", write_manual(commands)),
        ("docs/reference/lint-rules.md", write_rules()),
    ):
        path = REPOSITORY / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not args.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {name}")
    if args.check and stale:
        print(f"not current: {', '.join(stale)}; run tools/reference.py", file=sys.stderr)
    return 1 if args.check and stale else 0


def write_rules() -> str:
    """The page of the linter's rules."""
    rows = [
        f"| `{name}` | {rule.weight} | {rule.subject} | {rule.finds} |"
        for weight in WEIGHTS
        for name, rule in sorted(RULES.items())
        if rule.weight == weight
    ]
    return "\n".join(
        [
            "# Rules of `provision job lint`",
            "",
            "`tools/reference.py` writes this page.",
            "",
            "**error**: the job is refused, fails, or computes something else than was meant; exit code 2. **warning**: it",
            "loses time, files or resources, or fails under conditions that the scripts do not show. **advice**: it works, and",
            "would be safer or easier to repeat otherwise. Rules about a site need `--site SITE`.",
            "",
            "| rule | weight | looks at | finds |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def own_options(command: CommandOptions) -> list[Option]:
    """The options of a command that not every command has."""
    return [option for option in command.options if not set(option.names) & set(COMMON)]


def describe_argument(argument: Option) -> str:
    """An argument in a synopsis."""
    text = argument.word + (" ..." if argument.number in ("*", "+") else "")
    return f"[{text}]" if argument.number in ("?", "*") else text


def describe_option(option: Option) -> str:
    """An option with its value."""
    names = ", ".join(option.names)
    return names if option.is_switch else f"{names} {'|'.join(option.choices) or option.word}"


def synopsis(command: CommandOptions) -> str:
    """The command with its arguments."""
    required = [describe_option(option) for option in own_options(command) if option.required]
    optional = ["[OPTIONS]"] if len(own_options(command)) > len(required) else []
    arguments = [describe_argument(argument) for argument in command.arguments]
    return " ".join(["provision", command.name, *required, *optional, *arguments])


def rows_of(command: CommandOptions) -> list[tuple[str, str]]:
    """What a command takes: each argument and option, and what it is for."""
    arguments = [(describe_argument(argument), argument.purpose) for argument in command.arguments]
    return [*arguments, *((describe_option(option), option.purpose) for option in own_options(command))]


# Markdown


def write_page(commands: tuple[CommandOptions, ...]) -> str:
    """docs/reference/cli.md."""
    lines = [
        "# The command line",
        "",
        "<!-- Written by tools/reference.py from provision/commands/options; do not edit. -->",
        "",
        EVERYWHERE,
        "",
        "Every command has `--help` and `--json` (print one JSON object on stdout, also on failure).",
        "",
        "| verb | purpose |",
        "|---|---|",
        *(f"| [{command.name}](#provision-{command.name}) | {command.purpose} |" for command in commands),
    ]
    common = common_rows(commands)
    lines += ["", "## Options of several commands", "", *table(sorted(common.items()))]
    for command in commands:
        lines += ["", f"## provision {command.name}", "", f"{sentence(command.purpose)}"]
        for leaf in command.leaves:
            if command.subverbs:
                lines += ["", f"### provision {leaf.name}", "", sentence(leaf.purpose)]
            lines += ["", f"`{synopsis(leaf)}`"]
            rows = rows_of(leaf)
            lines += table([row for row in rows if row not in common.items()], before=("",))
            others = [f"`{cell(word)}`" for word, purpose in rows if common.get(word) == purpose]
            if others:
                lines += ["", f"[As in other commands](#options-of-several-commands): {', '.join(others)}"]
    lines += ["", "## Completion", "", "Write the script of your shell to the place where the shell looks for it:", ""]
    lines += ["| shell | place |", "|---|---|", *(f"| {shell} | {place} |" for shell, place in SHELLS.items())]
    lines += ["", "See also [environment variables](environment.md) and [exit codes](exit-codes.md)."]
    return "\n".join(lines) + "\n"


def common_rows(commands: tuple[CommandOptions, ...]) -> dict[str, str]:
    """The options that at least four commands have, and what they mean in most of these."""
    counts = Counter(row for command in commands for leaf in command.leaves for row in rows_of(leaf))
    return {word: purpose for (word, purpose), count in reversed(counts.most_common()) if count > 3}


def table(rows: Sequence[tuple[str, str]], before: tuple[str, ...] = ()) -> list[str]:
    """The lines of a table of options; none if there are no rows."""
    lines = [f"| `{cell(word)}` | {cell(purpose)} |" for word, purpose in rows]
    return [*before, "| word | meaning |", "|---|---|", *lines] if lines else []


def sentence(text: str) -> str:
    """A purpose as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def cell(text: str) -> str:
    """A text in a table."""
    return text.replace("|", "\\|")


# The manual page


def write_manual(commands: tuple[CommandOptions, ...]) -> str:
    """man/provision.1, in the macros of man(7)."""
    lines = [
        '.\\" Written by tools/reference.py from provision/commands/options; do not edit.',
        f'.TH PROVISION 1 "" "provision {__version__}" "User Commands"',
        ".SH NAME",
        "provision \\- build, prove and publish TensorFlow + Horovod environments on HPC sites",
        ".SH SYNOPSIS",
        ".B provision",
        "\\fIVERB\\fR [\\fISUB\\-VERB\\fR] [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        roff(PURPOSE),
        ".PP",
        roff(EVERYWHERE),
        ".SH OPTIONS OF EVERY VERB",
        *tagged("-h, --help", "print the options"),
        *tagged("--json", "print one JSON object on stdout, also on failure"),
        ".SH VERBS",
    ]
    for command in commands:
        for leaf in command.leaves:
            lines += [f".SS {roff(synopsis(leaf))}", roff(sentence(leaf.purpose))]
            for word, purpose in rows_of(leaf):
                lines += tagged(word, purpose)
    lines.append(".SH ENVIRONMENT")
    for name, meaning in VARIABLES:
        lines += tagged(name, meaning)
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXITS:
        lines += tagged(code, meaning)
    return "\n".join(lines) + "\n"


def tagged(word: str, text: str) -> list[str]:
    """A word in bold and the paragraph that explains it."""
    return [".TP", f"\\fB{roff(word)}\\fR", roff(text)]


def roff(text: str) -> str:
    """A text for roff: literals in bold, and no letter that it would read as a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    bold = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", escaped)
    return f"\\&{bold}" if bold[:1] in (".", "'") else bold


if __name__ == "__main__":
    sys.exit(main())
