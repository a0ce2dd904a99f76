"""The rule for containers that hide the launcher's variables: each rank in them is rank 0 of 1, and trains alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.container_options import VARIABLES, hides_environment, is_no
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault
from provision.lint.launch_rules import starts_several
from provision.lint.shell_lines import Command, Line, base

PROGRAMS = ("apptainer", "singularity")
# The long options that take no value in the next word.
SWITCHES = re.compile(
    r"--(nv|nvccli|rocm|cleanenv|contain|containall|compat|writable|writable-tmpfs|no-\w+|fakeroot|pid|ipc|net|uts|userns|unsquash"
    r"|disable-cache|sharens|keep-privs|allow-setuid|quiet|silent|verbose|debug|nocolor|boot|oci|sif-fuse|passphrase)"
)
ASSIGNED = re.compile(r"\b(" + "|".join(VARIABLES) + r")=([\w'\"]*)")
# The user hands in the variables of the launcher.
HANDED_IN = re.compile(
    r"--env-file\b|(APPTAINER|SINGULARITY)_ENV_FILE=|(APPTAINER|SINGULARITY)ENV_(SLURM|PMI|PMIX|OMPI|PALS)_|"
    r"--env[= ]\S*(SLURM|PMI|PMIX|OMPI|PALS)_"
)


def check_hidden(script: JobScript) -> Iterator[Finding]:
    """Several ranks must see the launcher's variables in their containers."""
    if any(HANDED_IN.search(line.text) for line in script.lines):
        return
    set_to = ((match, line) for line in script.lines for match in ASSIGNED.finditer(line.text))
    exported = next(((match[0], line) for match, line in set_to if not is_no(match[2])), None)
    for command in script.commands:
        words = command.all_words
        place = next((index for index, word in enumerate(words) if base(word) in PROGRAMS), None)
        if place is None or not starts_several(script, command):
            continue
        hiding: tuple[str, Line] | None = next(
            ((word, command.line) for word in _options(script, command, place) if hides_environment(word)), None
        )
        cleaned = re.search(r"\benv (-i|-|--ignore-environment)(?=\s)", command.line.text)
        hiding = hiding or ((cleaned[0], command.line) if cleaned else exported)
        if hiding is not None:
            yield fault(
                script,
                "container-env",
                hiding[1],
                f"`{hiding[0]}` hides the launcher's variables from the program in the container, "
                "so every rank is rank 0 of 1 and trains alone",
                "leave it out; `--no-home`, or `--contain` with `--bind`, hide folders only",
            )


def _options(script: JobScript, command: Command, place: int) -> Iterator[str]:
    """The options of a container's program, up to the image; variables and arrays of the script are read."""
    words = [part for word in command.all_words[place + 1 :] for part in _expanded(script, word)]
    takes_value, subcommand = False, False
    for word in words:
        if takes_value:
            takes_value = False
        elif word.startswith("-"):
            yield word
            short = len(word) == 2 and word[1] in "BHSWos"
            takes_value = short or (word.startswith("--") and "=" not in word and not SWITCHES.fullmatch(word))
        elif subcommand:
            return  # the image
        else:
            subcommand = True


def _expanded(script: JobScript, word: str) -> list[str]:
    """The words that a word with a variable stands for, as far as the script sets it."""
    array = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", word)
    if array:
        values = re.findall(rf"^\s*{array[1]}\+?=\(([^()]*)\)", script.text, re.MULTILINE)
        return " ".join(values).replace('"', "").replace("'", "").split()
    return script.filled(word).split() if word.startswith("$") else [word]
