"""Questions about the syntax tree of a training script: names, calls, values, and which statements only some ranks run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from provision.lint.imports import Import, read_imports

RANK = re.compile(
    r"rank|chief|master|primary|is_root|root_|is_main|main_process|first_worker|procid|local_id|localid", re.IGNORECASE
)
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
TRAINS = ("fit", "fit_generator", "minimize", "apply_gradients", "train_on_batch", "train_and_evaluate", "backward")

# Modules that hold no part of a user's program: Python's own, and the usual ones of data, models and plots.
KNOWN_MODULES = {
    *sys.stdlib_module_names,
    *(
        "absl",
        "cv2",
        "h5py",
        "horovod",
        "imageio",
        "jax",
        "keras",
        "matplotlib",
        "mpi4py",
        "netCDF4",
        "numpy",
        "pandas",
        "PIL",
    ),
    *("psutil", "scipy", "seaborn", "six", "skimage", "sklearn", "tensorboard", "tensorflow", "tensorflow_datasets"),
    *(
        "tensorflow_hub",
        "tensorflow_probability",
        "tensorflow_addons",
        "tf_keras",
        "torch",
        "torchvision",
        "tqdm",
        "xarray",
    ),
    *("yaml",),
}


class Fault(NamedTuple):
    """A fault: the name of the rule, the line, what is wrong there, and the fix."""

    rule: str
    line: int
    message: str
    fix: str


def dotted(node: ast.AST) -> str:
    """The dotted name of an expression (`tf.train.Saver`); empty if the expression is not a plain name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def last(node: ast.AST) -> str:
    """The last part of the name that a call, an attribute or a name has."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def given(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The argument of a call with this name, or at this position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    plain = not any(isinstance(argument, ast.Starred) for argument in call.args)
    return call.args[position] if position is not None and plain and position < len(call.args) else None


def number_of(node: ast.AST | None) -> int | None:
    """The whole number that an expression is; None if it is not a plain one."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


class Script:
    """A syntax tree with its parents, its assignments and its calls."""

    def __init__(self, tree: ast.AST) -> None:
        self.nodes: list[ast.AST] = list(ast.walk(tree))
        self.calls: list[ast.Call] = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.called: set[str] = {last(call) for call in self.calls}

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The parent of each node, by the node's id."""
        return {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """The values that each plain name is assigned."""
        values: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
                targets = [node.target]
            for target in targets:
                value = getattr(node, "value", None)
                if isinstance(target, ast.Name) and value is not None:
                    values.setdefault(target.id, []).append(value)
        return values

    @cached_property
    def bound(self) -> set[str]:
        """Every name that the script defines in any way."""
        names = {node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
        return names

    @cached_property
    def modules(self) -> set[str]:
        """The modules that the script imports, with their full names."""
        return {imported.module for imported in self.imports}

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All imports."""
        return tuple(read_imports(self.nodes))

    @cached_property
    def names(self) -> set[str]:
        """All names and attributes that stand in the code."""
        names = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        return names | {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @cached_property
    def keywords(self) -> set[str]:
        """The names with which arguments are given."""
        return {node.arg for node in self.nodes if isinstance(node, ast.keyword) and node.arg}

    @cached_property
    def texts(self) -> dict[str, int]:
        """All texts in the code that are values, with a line of each; a docstring is none."""
        documents = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        return {
            node.value: node.lineno
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
        }

    @cached_property
    def is_whole(self) -> bool:
        """Whether this is a program of one file: it runs something itself, and imports no module that may hold a part of it."""
        if any(name.startswith(".") or name.partition(".")[0] not in KNOWN_MODULES for name in self.modules):
            return False
        return self.runs

    @cached_property
    def runs(self) -> bool:
        """Whether this runs something, and does not only define it."""
        if any(isinstance(node, ast.Name) and node.id == "__name__" for node in self.nodes):
            return True
        body = self.nodes[0].body if isinstance(self.nodes[0], ast.Module) else []
        return any(isinstance(node, ast.For | ast.While | ast.With) or _is_call(node) for node in body)

    @cached_property
    def of_rank(self) -> set[str]:
        """The names whose values depend on the rank."""
        names: set[str] = set()
        for _ in range(4):
            new = {
                name
                for name, values in self.assigned.items()
                if name not in names and any(self._mentions(value, names) for value in values)
            }
            if not new:
                break
            names |= new
        return names

    @staticmethod
    def _mentions(node: ast.AST, names: set[str]) -> bool:
        for part in ast.walk(node):
            name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
            if name and (RANK.search(name) or name in names):
                return True
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and RANK.search(part.value[:80]):
                return True
        return False

    def by_rank(self, node: ast.AST) -> bool:
        """Whether the value of an expression depends on the rank."""
        return self._mentions(node, self.of_rank)

    def functions(self, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions of this name."""
        return [
            node
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        ]

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        parent = self.parents.get(id(node))
        while parent is not None:
            yield parent
            parent = self.parents.get(id(parent))

    def on_some_ranks(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether only some ranks run this node, as far as it can be seen; True if it cannot."""
        inner: ast.AST = node
        for outer in self.around(node):
            if (
                isinstance(outer, ast.If | ast.IfExp | ast.While)
                and inner is not outer.test
                and self.by_rank(outer.test)
            ):
                return True
            if isinstance(outer, ast.BoolOp | ast.DictComp | ast.ListComp | ast.Match | ast.Dict) and self.by_rank(
                outer
            ):
                return True
            if isinstance(outer, ast.Call) and inner is not outer.func and RANK.search(last(outer)):
                return True  # `run_on_chief(…)`
            if isinstance(outer, ast.With) and any(self.by_rank(item.context_expr) for item in outer.items):
                return True
            if self._left_before(outer, inner):
                return True
            if isinstance(outer, ast.Lambda | ast.ClassDef):
                return True
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                return self._called_on_some_ranks(outer, depth)
            inner = outer
        return False

    def _left_before(self, block: ast.AST, inner: ast.AST) -> bool:
        """Whether a statement before `inner` in the same block ends the run of other ranks: `if rank != 0: return`."""
        for body in (getattr(block, "body", None), getattr(block, "orelse", None)):
            if not isinstance(body, list) or inner not in body:
                continue
            for statement in body[: body.index(inner)]:
                if isinstance(statement, ast.If) and self.by_rank(statement.test):
                    ends = statement.body[-1]
                    if isinstance(ends, LEAVES) or (
                        isinstance(ends, ast.Expr) and last(ends.value) in ("exit", "_exit", "quit")
                    ):
                        return True
        return False

    def _called_on_some_ranks(self, function: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> bool:
        calls = [call for call in self.calls if last(call) == function.name and function not in list(self.around(call))]
        if not calls or not depth or function.decorator_list:
            return True  # it is called from elsewhere, or not at all
        return all(self.on_some_ranks(call, depth - 1) for call in calls)

    def ending(self, node: ast.AST | None, depth: int = 3) -> str | None:
        """The text with which the value of an expression ends, as far as it is written in the script; None if unknown."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
                return text
            case ast.BinOp(op=ast.Add(), right=right):
                return self.ending(right, depth)
            case ast.BinOp(op=ast.Mod(), left=left):
                end = self.ending(left, depth)
                return None if end is None or end.endswith(("%s", "%d")) else end
            case ast.Call(func=ast.Attribute(attr="join"), args=[_, *_, path]):
                return self.ending(path, depth)
            case ast.Call(func=ast.Attribute(attr="format", value=value)):
                end = self.ending(value, depth)
                return None if end is None or end.endswith("}") else end
            case ast.Call(func=ast.Name(id="str"), args=[value]):
                return self.ending(value, depth)
            case ast.BinOp(op=ast.Div(), right=right):
                return self.ending(right, depth)
            case ast.Name(id=name) if depth:
                values = self.assigned.get(name, [])
                return self.ending(values[0], depth - 1) if len(values) == 1 and name not in self._arguments else None
        return None

    @cached_property
    def _arguments(self) -> set[str]:
        return {node.arg for node in self.nodes if isinstance(node, ast.arg)}


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call)
