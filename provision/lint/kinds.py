"""Tells a training script from a job script."""

from __future__ import annotations

import ast
import re

DIRECTIVE = re.compile(r"^[ \t]*#(SBATCH|PBS|COBALT)[ \t]", re.MULTILINE)


def is_program(text: str, name: str) -> bool:
    """Whether this text is a Python program and no job script. A program with directives is a job script that Python runs."""
    if DIRECTIVE.search(text):
        return False
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        return "python" in first
    return name.endswith(".py") or (name == "-" and _is_python(text))


def _is_python(text: str) -> bool:
    """Whether a text without a first line `#!` imports or defines something in Python."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) for node in body)
