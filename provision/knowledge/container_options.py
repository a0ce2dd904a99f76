"""Options and variables with which a container hides the environment from its program.

A launcher gives each rank its number in variables. Behind such an option every rank is rank 0 of 1, and trains alone.
Sources: apptainer/apptainer, cmd/internal/cli/action_flags.go (commit 00e9b038): `-e, --cleanenv`; `-C, --containall`, which
contains also the "environment"; `--compat`, which "infers --containall"; each also as a variable. `-c, --contain` keeps the
environment (internal/pkg/util/env/clean.go). Singularity has the same options. Shifter documents none (doc/command/shifter.rst).
"""

from __future__ import annotations

LONG = ("--cleanenv", "--containall", "--compat")
SHORT = "eC"
# The short options whose value may follow in the same word.
WITH_VALUE = "BHSWos"
VARIABLES = tuple(
    f"{program}_{option}" for program in ("APPTAINER", "SINGULARITY") for option in ("CLEANENV", "CONTAINALL", "COMPAT")
)
NO = ("0", "f", "false", "no", "n", "off", "")


def hides_environment(option: str) -> bool:
    """Whether an option of Apptainer hides the launcher's variables from the program in the container."""
    name, equals, value = option.partition("=")
    if option.startswith("--"):
        return name in LONG and (not equals or not is_no(value))
    for letter in name[1:] if option.startswith("-") else "":
        if letter in SHORT:
            return True
        if letter in WITH_VALUE:
            return False
    return False


def is_no(value: str) -> bool:
    """Whether a value switches an option off."""
    return value.strip("'\"").lower() in NO
