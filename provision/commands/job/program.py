"""Reads a training script with the modules beside it that it imports, for the linter."""

from __future__ import annotations

from provision.errors import ConfigError
from provision.lint.imports import files_beside
from provision.lint.rules import read_training
from provision.lint.training_script import TrainingProgram
from provision.machine.files.disk import is_file, read_given

MOST_MODULES = 300


def read_program(path: str, text: str | None = None) -> TrainingProgram:
    """The training script at this path, or of this text, with what it imports from its folder, and what that imports.

    Raises:
        ConfigError: the script cannot be read.
    """
    text = read_given(path, "training script", errors="replace") if text is None else text
    beside: dict[str, str] = {}
    unread = [(path, text)]
    while unread:
        file, of_file = unread.pop()
        for other in files_beside(of_file, file, path):
            if other in beside or other == path or len(beside) == MOST_MODULES or not is_file(other):
                continue
            try:
                beside[other] = read_given(other, "module", errors="replace")
            except ConfigError:
                continue  # the linter reports it as a module that was not read
            unread.append((other, beside[other]))
    return read_training(text, path, beside)
