"""Reads a training script and the modules beside it, and finds the faults that it has whatever job starts it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from provision.lint import (  # noqa: F401  each module registers its rules
    data_rules,
    horovod_rules,
    path_rules,
    sort_findings,
    strategy_rules,
    tensorflow_rules,
)
from provision.lint.data_rules import downloads
from provision.lint.imports import parse
from provision.lint.rule import find
from provision.lint.syntax import Script
from provision.lint.training_script import Training

__all__ = ["Training", "read_training"]


def read_training(text: str, file: str, beside: Mapping[str, str] | None = None) -> Training:
    """The training script in this text. A text that is not Python 3 is a script with one finding.

    `beside` are the texts of the modules that it imports from its folder, by their paths.
    """
    tree = parse(text)
    trees = {path: parse(other) for path, other in beside.items()} if beside and isinstance(tree, ast.Module) else {}
    script = Script(tree if isinstance(tree, ast.Module) else ast.Module([], []))
    modules = {path: Script(other) for path, other in trees.items() if isinstance(other, ast.Module)}
    training = Training(
        file=file,
        source=tuple(text.splitlines()),
        scripts={file: script, **modules},
        error=None if isinstance(tree, ast.Module) else tree,
    )
    training.downloads = downloads(script)
    training.findings = sort_findings(find({"program": training, "site": None, "script": None}, "program"))
    return training
