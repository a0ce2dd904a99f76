"""The completion script of bash (4 or later)."""

from __future__ import annotations

from collections.abc import Sequence

from provision.commands.completion.cases import (
    ASKED,
    TOP,
    argument_of,
    group_by_value,
    leaves,
    options_with_value,
    words_of_head,
)
from provision.commands.options.declare import CommandOptions, Option

HEAD = """\
# Completion of `provision` for bash, written by `provision completion bash`.

_provision() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local this before="" command="" site="" words=""
    # readline makes words of `--site=SITE`: `--site`, `=` and SITE.
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $previous == "=" ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for this in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $this == "=" ]] && continue
        [[ $before == "--site" || $before == "--from" ]] && site=$this
        case $before in
        %(valued)s) ;;
        *)
            case "$command $this" in
            %(verbs)s) command=$this ;;
            %(subverbs)s) command="$command $this" ;;
            esac
            ;;
        esac
        before=$this
    done
"""
TAIL = """\
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _provision provision
"""


def write_script(commands: Sequence[CommandOptions]) -> str:
    """The script."""
    values = options_with_value(commands)
    lines = [HEAD % words_of_head(commands, " | ", '"{}"'.format)]
    lines.append("    # The value of an option.\n    case $previous in\n")
    for value, names in group_by_value(values):
        lines.append(f"    {' | '.join(names)})\n{complete(value)}        return\n        ;;\n")
    others = [name for name, value in values.items() if not (value.kind or value.choices)]
    lines.append(f"    {' | '.join(others)})\n        return\n        ;;\n    esac\n")
    lines.append("    # Options and sub-verbs, or the argument of the command.\n    case $command in\n")
    lines.append(f'    "") words="{" ".join([*(command.name for command in commands), *TOP])}" ;;\n')
    for command in commands:
        if command.subverbs:
            lines.append(
                f'    {command.name}) words="{" ".join(leaf.words[-1] for leaf in command.subverbs)} --help" ;;\n'
            )
    for leaf in leaves(commands):
        options = " ".join(name for option in leaf.options for name in option.names if name.startswith("--"))
        lines.append(f'    "{leaf.name}")\n        words="{options}"\n')
        argument = argument_of(leaf)
        if argument:
            lines.append(
                f"        if [[ $word != -* ]]; then\n{complete(argument, 12)}            return\n        fi\n"
            )
        lines.append("        ;;\n")
    lines.append("    esac\n")
    return "".join([*lines, TAIL])


def complete(value: Option, indent: int = 8) -> str:
    """The lines that complete a value."""
    if value.kind in ("files", "folders"):
        flag = "-f" if value.kind == "files" else "-d"
        lines = [f'mapfile -t COMPREPLY < <(compgen {flag} -- "$word")', "compopt -o filenames 2>/dev/null"]
    elif value.kind in ASKED:
        names = f'$("${{COMP_WORDS[0]}}" __complete {value.kind} "$site" 2>/dev/null)'
        lines = [f'mapfile -t COMPREPLY < <(compgen -W "{names}" -- "$word")']
    else:
        lines = [f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(value.choices)}" -- "$word")']
    return "".join(f"{' ' * indent}{line}\n" for line in lines)
