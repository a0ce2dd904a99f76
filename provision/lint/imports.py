"""The modules that a program imports, and the files beside it in which they would be. Pure: no file is looked for."""

from __future__ import annotations

import ast
import posixpath
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Calls that import the module whose name is their first argument.
BY_NAME = ("import_module", "__import__")


class Import(NamedTuple):
    """An imported module with its dots, the names that are imported from it, and the line."""

    module: str
    names: tuple[str, ...]
    line: int

    @property
    def modules(self) -> tuple[str, ...]:
        """The module, and those that the names would be if they are modules themselves."""
        between = "" if not self.module or self.module.endswith(".") else "."
        return (self.module, *(f"{self.module}{between}{name}" for name in self.names))


def read_imports(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    """All imports of a syntax tree, also those by a name that is written out."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names if alias.name != "*")
            yield Import("." * node.level + (node.module or ""), names, node.lineno)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(first.value, (), node.lineno)


def files_of(imported: Import, file: str, program: str) -> tuple[str, ...]:
    """The files that Python would read for an import in this file, if they are beside the program or in packages there."""
    name = imported.module.lstrip(".")
    level = len(imported.module) - len(name)
    folder = posixpath.dirname(file if level else program)
    for _ in range(level - 1):
        folder = posixpath.join(folder, "..")
    parts = name.split(".") if name else []
    stems = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    stems += ["/".join((*parts, part)) for part in imported.names]
    ends = [f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")]
    above, own, _ = f"/{folder}/".rpartition(f"/{parts[0]}/") if parts and not level else ("", "", "")
    # A program in a package, which `-m` starts from above, imports that by its whole name.
    folders = (folder, above[1:] or ("/" if folder.startswith("/") else "")) if own else (folder,)
    return tuple(posixpath.normpath(posixpath.join(one, end)) for one in folders for end in ends)


def files_beside(text: str, file: str, program: str) -> tuple[str, ...]:
    """The files that a file of a program may import from the folder of the program; none if it is not valid Python."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return ()
    return tuple(
        dict.fromkeys(path for imported in read_imports(ast.walk(tree)) for path in files_of(imported, file, program))
    )


def parse(text: str) -> ast.Module | Exception:
    """The syntax tree of a program, or why it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python prints some of what it reads, such as `"\d"`
            return ast.parse(text)
    # Brackets or operators, thousands deep, are too much for Python's own parser.
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
