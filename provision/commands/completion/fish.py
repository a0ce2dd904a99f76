"""The completion script of fish."""

from __future__ import annotations

from collections.abc import Sequence

from provision.commands.completion.cases import ASKED, argument_of, leaves, words_of_head
from provision.commands.options.declare import CommandOptions, Option

HEAD = """\
# Completion of `provision` for fish, written by `provision completion fish`.

# The verb and sub-verb that are typed already.
function __provision_command
    set -l command ""
    set -l before ""
    for this in (commandline -opc)[2..-1]
        if not contains -- $before %(valued)s
            switch "$command $this"
                case %(verbs)s
                    set command $this
                case %(subverbs)s
                    set command "$command $this"
            end
        end
        set before $this
    end
    echo $command
end

function __provision_at
    test (__provision_command) = "$argv[1]"
end

# The names of a kind, for the site that is typed already.
function __provision_names
    set -l site ""
    set -l before ""
    for this in (commandline -opc)
        contains -- "$before" --site --from; and set site $this
        string match -q -- '--site=*' $this; and set site (string replace -- '--site=' '' $this)
        set before $this
    end
    set -l tool (commandline -opc)[1]
    $tool __complete $argv[1] $site 2>/dev/null
end

complete -c provision -f
"""


def write_script(commands: Sequence[CommandOptions]) -> str:
    """The script."""
    lines = [HEAD % words_of_head(commands, " ", quote)]
    for command in commands:
        lines.append(f"{at('')} -a {command.name} -d {quote(command.purpose)}\n")
        for leaf in command.subverbs:
            lines.append(f"{at(command.name)} -a {leaf.words[-1]} -d {quote(leaf.purpose)}\n")
    lines.append(f"{at('')} -l version -d 'print the version'\n{at('')} -l help -d 'print the verbs'\n")
    for leaf in leaves(commands):
        argument = argument_of(leaf)
        if argument:
            lines.append(f"{at(leaf.name)} {complete(argument)}\n")
        lines += [option_line(leaf, option) for option in leaf.options]
    return "".join(lines)


def option_line(leaf: CommandOptions, option: Option) -> str:
    """The line of one option."""
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = "" if option.is_switch else f" {complete(option, required=True)}"
    return f"{at(leaf.name)} {names}{value} -d {quote(option.purpose)}\n"


def at(command: str) -> str:
    """The beginning of a line that holds once this command is typed."""
    return f"complete -c provision -n {quote(f'__provision_at {quote(command)}')}"


def complete(value: Option, *, required: bool = False) -> str:
    """The options of fish's `complete` for a value; `-x`: it is required, and is not a file."""
    if value.kind in ("files", "folders"):
        return "-r -F" if required else "-F"
    names = f"(__provision_names {value.kind})" if value.kind in ASKED else " ".join(value.choices)
    return f"{'-x ' if required else ''}-a {quote(names)}"


def quote(text: str) -> str:
    """A word in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
