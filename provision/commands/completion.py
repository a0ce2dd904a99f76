"""`provision completion SHELL`: the script that completes verbs, options and names in bash (4 or later), zsh or fish.

The script is written from the declarations of the options. It knows the verbs and options by itself, and asks
`provision __complete` for the names of sites, archs, stacks and environments.
"""

from __future__ import annotations

from collections.abc import Callable

from provision.commands.options import COMMANDS
from provision.commands.options.declare import CommandOptions, Option
from provision.commands.shared.outcome import Args, Outcome

VERBS = tuple(COMMANDS.values())
# The commands that have options: verbs without sub-verbs, and sub-verbs.
LEAVES = tuple(leaf for command in VERBS for leaf in command.leaves)
# In a shell, a file and a folder are completed by the shell itself, and these by `provision __complete`.
ASKED = ("sites", "archs", "stacks", "environments")
TOP = (("--help", "print the verbs"), ("--version", "print the version"))

BASH_HEAD = """\
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
BASH_TAIL = """\
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _provision provision
"""
ZSH_HEAD = """\
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
ZSH_TAIL = """\
}

if [[ $funcstack[1] == _provision ]]; then
    _provision "$@"
else
    compdef _provision provision
fi
"""
FISH_HEAD = """\
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


def run(args: Args) -> Outcome:
    """Print the script."""
    text = WRITERS[args.shell]()
    return Outcome(text=text, result={"shell": args.shell, "script": text})


def valued_options() -> dict[str, Option]:
    """Every option that has a value; it names the same in every command that has the option."""
    found: dict[str, Option] = {}
    for option in (option for leaf in LEAVES for option in leaf.options if not option.is_switch):
        for name in option.names:
            known = found.setdefault(name, option)
            assert (known.kind, known.choices) == (option.kind, option.choices), name
    return found


def words_of_head(between: str, quote: Callable[[str], str]) -> dict[str, str]:
    """What stands in the first lines of a script: the options with a value, and the verbs and sub-verbs as they are typed."""
    return {
        "valued": between.join(valued_options()),
        "verbs": between.join(quote(f" {command.name}") for command in VERBS),
        "subverbs": between.join(quote(leaf.name) for command in VERBS for leaf in command.subverbs),
    }


def group_by_value() -> tuple[list[tuple[Option, list[str]]], list[str]]:
    """The spellings of the options with the same values that can be completed, with one of the options; and all others."""
    groups: dict[tuple[str, tuple[str, ...]], tuple[Option, list[str]]] = {}
    for name, option in valued_options().items():
        groups.setdefault((option.kind, option.choices), (option, []))[1].append(name)
    _, others = groups.pop(("", ()))
    return list(groups.values()), others


def argument_of(leaf: CommandOptions) -> Option | None:
    """What a command's arguments name, if that can be completed."""
    first = leaf.arguments[0] if leaf.arguments else None
    return first if first and (first.kind or first.choices) else None


def long_options(leaf: CommandOptions) -> list[tuple[str, str]]:
    """The long spellings of a command's options, with what each is for."""
    return [(name, option.purpose) for option in leaf.options for name in option.names if name.startswith("--")]


def write_bash() -> str:
    """The script of bash."""
    groups, others = group_by_value()
    lines = [BASH_HEAD % words_of_head(" | ", '"{}"'.format)]
    lines.append("    # The value of an option.\n    case $previous in\n")
    for value, names in groups:
        lines.append(f"    {' | '.join(names)})\n{complete_in_bash(value, 8)}        return\n        ;;\n")
    lines.append(f"    {' | '.join(others)})\n        return\n        ;;\n    esac\n")
    lines.append("    # Options and sub-verbs, or the argument of the command.\n    case $command in\n")
    lines.append(f'    "") words="{" ".join([*COMMANDS, *dict(TOP)])}" ;;\n')
    for command in VERBS:
        if command.subverbs:
            listed = " ".join(leaf.words[-1] for leaf in command.subverbs)
            lines.append(f'    {command.name}) words="{listed} --help" ;;\n')
    for leaf in LEAVES:
        lines.append(f'    "{leaf.name}")\n        words="{" ".join(name for name, _ in long_options(leaf))}"\n')
        if argument := argument_of(leaf):
            completed = complete_in_bash(argument, 12)
            lines.append(f"        if [[ $word != -* ]]; then\n{completed}            return\n        fi\n")
        lines.append("        ;;\n")
    return "".join([*lines, "    esac\n", BASH_TAIL])


def complete_in_bash(value: Option, indent: int) -> str:
    """The lines that complete a value."""
    more = ""
    if value.kind in ("files", "folders"):
        generated = "-f" if value.kind == "files" else "-d"
        more = f"{' ' * indent}compopt -o filenames 2>/dev/null\n"
    elif value.kind in ASKED:
        generated = f'-W "$("${{COMP_WORDS[0]}}" __complete {value.kind} "$site" 2>/dev/null)"'
    else:
        generated = f'-W "{" ".join(value.choices)}"'
    return f'{" " * indent}mapfile -t COMPREPLY < <(compgen {generated} -- "$word")\n{more}'


def write_zsh() -> str:
    """The script of zsh."""
    groups, others = group_by_value()
    lines = [ZSH_HEAD % words_of_head("|", '"{}"'.format)]
    lines.append("    case $previous in\n")
    for value, names in groups:
        lines.append(f"    ({'|'.join(names)})\n        {complete_in_zsh(value)}\n        return\n        ;;\n")
    lines.append(f"    ({'|'.join(others)})\n        return 1\n        ;;\n    esac\n    case $command in\n")
    lines += describe_in_zsh("", "verb", [*((command.name, command.purpose) for command in VERBS), *TOP])
    for command in VERBS:
        if command.subverbs:
            listed = [(leaf.words[-1], leaf.purpose) for leaf in command.subverbs]
            lines += describe_in_zsh(command.name, "sub-verb", listed)
    for leaf in LEAVES:
        argument = argument_of(leaf)
        lines += describe_in_zsh(leaf.name, "option", long_options(leaf), complete_in_zsh(argument) if argument else "")
    return "".join([*lines, "    esac\n", ZSH_TAIL])


def describe_in_zsh(command: str, what: str, entries: list[tuple[str, str]], argument: str = "") -> list[str]:
    """The case of one command: its words with what each is for, or its argument unless an option is begun."""
    quoted = " ".join("'" + f"{name}:{purpose}".replace("'", "'\\''") + "'" for name, purpose in entries)
    lines = [f'    ("{command}")\n']
    if argument:
        lines.append(f"        if [[ $PREFIX != -* ]]; then\n            {argument}\n            return\n        fi\n")
    return [*lines, f"        names=({quoted})\n        _describe '{what}' names\n        ;;\n"]


def complete_in_zsh(value: Option) -> str:
    """The command that completes a value."""
    if value.kind in ("files", "folders"):
        return "_files" if value.kind == "files" else "_files -/"
    if value.kind in ASKED:
        return f'compadd -- ${{(f)"$($words[1] __complete {value.kind} $site 2>/dev/null)"}}'
    return f"compadd -- {' '.join(value.choices)}"


def write_fish() -> str:
    """The script of fish."""
    lines = [FISH_HEAD % words_of_head(" ", quote_for_fish)]
    for command in VERBS:
        lines.append(f"{at('')} -a {command.name} -d {quote_for_fish(command.purpose)}\n")
        for leaf in command.subverbs:
            lines.append(f"{at(command.name)} -a {leaf.words[-1]} -d {quote_for_fish(leaf.purpose)}\n")
    lines += [f"{at('')} -l {name[2:]} -d '{purpose}'\n" for name, purpose in reversed(TOP)]
    for leaf in LEAVES:
        if argument := argument_of(leaf):
            lines.append(f"{at(leaf.name)} {complete_in_fish(argument)}\n")
        for option in leaf.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = "" if option.is_switch else f" {complete_in_fish(option, required=True)}"
            lines.append(f"{at(leaf.name)} {names}{value} -d {quote_for_fish(option.purpose)}\n")
    return "".join(lines)


def at(command: str) -> str:
    """The beginning of a line of fish that holds once this command is typed."""
    return f"complete -c provision -n {quote_for_fish(f'__provision_at {quote_for_fish(command)}')}"


def complete_in_fish(value: Option, *, required: bool = False) -> str:
    """The options of fish's `complete` for a value; `-x`: it is required, and is not a file."""
    if value.kind in ("files", "folders"):
        return "-r -F" if required else "-F"
    names = f"(__provision_names {value.kind})" if value.kind in ASKED else " ".join(value.choices)
    return f"{'-x ' if required else ''}-a {quote_for_fish(names)}"


def quote_for_fish(text: str) -> str:
    """A word in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
