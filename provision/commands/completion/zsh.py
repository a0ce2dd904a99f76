"""The completion script of zsh."""

from __future__ import annotations

from collections.abc import Sequence

from provision.commands.completion.cases import (
    ASKED,
    argument_of,
    group_by_value,
    leaves,
    options_with_value,
    words_of_head,
)
from provision.commands.options.declare import CommandOptions, Option

HEAD = """\
#compdef provision
# Completion of `provision` for zsh, written by `provision completion zsh`.

_provision() {
    local this before="" command="" site="" previous=$words[CURRENT-1]
    local -a names
    for this in ${words[2,CURRENT-1]}; do
        [[ $before == (--site|--from) ]] && site=$this
        [[ $this == --site=* ]] && site=${this#--site=}
        case $before in
        (%(valued)s) ;;
        (*)
            case "$command $this" in
            (%(verbs)s) command=$this ;;
            (%(subverbs)s) command="$command $this" ;;
            esac
            ;;
        esac
        before=$this
    done
    if [[ $PREFIX == --*=* ]]; then
        previous=${PREFIX%%%%=*}
        compset -P 1 '*='
    fi
"""
TAIL = """\
}

if [[ $funcstack[1] == _provision ]]; then
    _provision "$@"
else
    compdef _provision provision
fi
"""


def write_script(commands: Sequence[CommandOptions]) -> str:
    """The script."""
    values = options_with_value(commands)
    lines = [HEAD % words_of_head(commands, "|", '"{}"'.format)]
    lines.append("    case $previous in\n")
    for value, names in group_by_value(values):
        lines.append(f"    ({'|'.join(names)})\n        {complete(value)}\n        return\n        ;;\n")
    others = [name for name, value in values.items() if not (value.kind or value.choices)]
    lines.append(f"    ({'|'.join(others)})\n        return 1\n        ;;\n    esac\n    case $command in\n")
    top = [(command.name, command.purpose) for command in commands]
    lines += describe("", "verb", [*top, ("--help", "print the verbs"), ("--version", "print the version")])
    for command in commands:
        if command.subverbs:
            listed = [(leaf.words[-1], leaf.purpose) for leaf in command.subverbs]
            lines += describe(command.name, "sub-verb", listed)
    for leaf in leaves(commands):
        options = [(name, option.purpose) for option in leaf.options for name in option.names if name.startswith("--")]
        argument = argument_of(leaf)
        lines += describe(leaf.name, "option", options, complete(argument) if argument else "")
    return "".join([*lines, "    esac\n", TAIL])


def describe(command: str, what: str, entries: list[tuple[str, str]], argument: str = "") -> list[str]:
    """The case of one command: its words with what each is for, or its argument unless an option is begun."""
    quoted = " ".join(quote(f"{name}:{purpose}") for name, purpose in entries)
    lines = [f'    ("{command}")\n']
    if argument:
        lines.append(f"        if [[ $PREFIX != -* ]]; then\n            {argument}\n            return\n        fi\n")
    return [*lines, f"        names=({quoted})\n        _describe '{what}' names\n        ;;\n"]


def quote(text: str) -> str:
    """A word in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def complete(value: Option) -> str:
    """The command that completes a value."""
    if value.kind in ("files", "folders"):
        return "_files" if value.kind == "files" else "_files -/"
    if value.kind in ASKED:
        return f'compadd -- ${{(f)"$($words[1] __complete {value.kind} $site 2>/dev/null)"}}'
    return f"compadd -- {' '.join(value.choices)}"
