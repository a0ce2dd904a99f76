"""Questions about the syntax tree of a training script: names, calls, values, and which statements only some ranks run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from provision.lint.imports import Import, read_imports

RANK = re.compile(
    r"rank|chief|master|primary|is_root|root_|is_main|main_process|first_worker|procid|local_id|localid|gpu_?id|(^|_)gpu$",
    re.IGNORECASE,
)
ONE_RANK = re.compile(r"[\w.]*(size|world|ranks)\w*(\(\))? (==|<=) 1")
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
TRAINS = ("fit", "fit_generator", "minimize", "apply_gradients", "train_on_batch", "train_and_evaluate", "backward")
# Modules that hold no part of a user's program: Python's own, and the usual ones of data, models and plots.
KNOWN_MODULES = {
    *sys.stdlib_module_names,
    *("absl", "cv2", "h5py", "horovod", "imageio", "jax", "keras", "matplotlib", "mpi4py", "netCDF4", "numpy"),
    *("pandas", "PIL", "psutil", "scipy", "seaborn", "six", "skimage", "sklearn", "tensorboard", "tensorflow"),
    *("tensorflow_datasets", "tensorflow_hub", "tensorflow_probability", "tensorflow_addons", "tf_keras"),
    *("torch", "torchvision", "tqdm", "xarray", "yaml", "datasets", "einops", "filelock", "mlflow", "packaging"),
    *("tensorboardX", "timm", "torchaudio", "torchmetrics", "torchtext", "transformers", "wandb"),
}
Node = TypeVar("Node", bound=ast.AST)


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


def arguments(call: ast.Call) -> list[ast.expr]:
    """All arguments of a call."""
    return [*call.args, *(word.value for word in call.keywords)]


def unpacks(call: ast.Call) -> bool:
    """Whether a call gets arguments that are not written there: `**options`."""
    return any(word.arg is None for word in call.keywords)


def first_part(node: ast.expr | None) -> ast.expr | None:
    """The first part of a text that is put together, or of a list."""
    while isinstance(node, ast.BinOp | ast.JoinedStr | ast.List | ast.Tuple):
        parts = (
            [node.left]
            if isinstance(node, ast.BinOp)
            else node.values
            if isinstance(node, ast.JoinedStr)
            else node.elts
        )
        node = parts[0] if parts else None
    return node


def is_environ(node: ast.AST) -> bool:
    """Whether an expression is `os.environ`."""
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def value_of(node: ast.AST | None) -> object:
    """The value of a constant; None if the expression is not a constant."""
    return node.value if isinstance(node, ast.Constant) else None


def number_of(node: ast.AST | None) -> int | None:
    """The whole number that an expression is; None if it is not a plain one."""
    value = value_of(node)
    return value if type(value) is int else None


class Syntax:
    """A syntax tree with its parents, its assignments and its calls."""

    def __init__(self, tree: ast.AST) -> None:
        self.nodes: list[ast.AST] = list(ast.walk(tree))
        self._of: dict[type[ast.AST], list[Any]] = {}
        for node in self.nodes:
            self._of.setdefault(type(node), []).append(node)
        self.calls: list[ast.Call] = self.of(ast.Call)
        self.called: set[str] = {last(call) for call in self.calls}

    def of(self, kind: type[Node]) -> list[Node]:
        """The nodes of this kind."""
        return self._of.get(kind, [])

    def calls_of(self, *names: str) -> list[ast.Call]:
        """The calls of functions with these names, of whatever module or object."""
        return [call for call in self.calls if last(call) in names]

    def methods(self, name: str) -> list[ast.Call]:
        """The calls of a method with this name."""
        return [call for call in self.calls if isinstance(call.func, ast.Attribute) and call.func.attr == name]

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The parent of each node, by the node's id."""
        return {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """The values that each plain name is assigned."""
        values: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        values.setdefault(target.id, []).append(node.value)
        return values

    def sources(self, node: ast.expr) -> list[ast.expr]:
        """The expressions whose value this one may have: those assigned to a name, or given for an argument of a function."""
        found, unread = [], [node]
        seen: set[tuple[ast.AST | None, str]] = set()
        while unread:
            one = unread.pop()
            function = next((outer for outer in self.around(one) if isinstance(outer, FUNCTIONS)), None)
            name = one.id if isinstance(one, ast.Name) else ""
            values = self._values(name, function) if name and (function, name) not in seen else []
            if not name or not (values or (function, name) in seen):
                found.append(one)
            seen.add((function, name))
            unread += values
        return found or [node]

    def _values(self, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> list[ast.expr]:
        """The values that a name is assigned, and those that it gets as an argument of the function in which it is used."""
        values = list(self.assigned.get(name, ()))
        names = [argument.arg for argument in function.args.args] if function else []
        if function and name in names:
            place, defaults = names.index(name), function.args.defaults
            passed = [given(call, name, place) for call in self.calls_of(function.name)]
            values += [value for value in passed if value is not None]
            default = place - len(names) + len(defaults)
            values += defaults[default : default + 1] if default >= 0 and (None in passed or not passed) else []
        return values

    def reads(self, name: str | None = None) -> list[ast.Name | ast.Attribute]:
        """The places where names and attributes are read, or only where this name is."""
        found: list[ast.Name | ast.Attribute] = [*self.of(ast.Name), *(self.of(ast.Attribute) if name is None else ())]
        return [node for node in found if isinstance(node.ctx, ast.Load) and name in (None, last(node))]

    @cached_property
    def modules(self) -> set[str]:
        """The modules that the script imports, with their full names."""
        return {imported.module for imported in self.imports}

    @cached_property
    def exported(self) -> tuple[tuple[str, ast.Assign | ast.Call, ast.expr], ...]:
        """The variables of the environment that the script sets, each with the place and the value, by line."""
        assigns = ((node, target) for node in self.of(ast.Assign) for target in node.targets)
        found: list[tuple[ast.expr, ast.Assign | ast.Call, ast.expr]] = [
            (target.slice, node, node.value)
            for node, target in assigns
            if isinstance(target, ast.Subscript) and is_environ(target.value)
        ]
        found += [(c.args[0], c, c.args[1]) for c in self.calls_of("putenv", "setdefault") if len(c.args) > 1]
        named = ((str(value_of(key)), node, value) for key, node, value in found)
        return tuple(sorted(named, key=lambda one: one[1].lineno))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All imports."""
        return tuple(read_imports(self.nodes))

    @cached_property
    def names(self) -> set[str]:
        """All names and attributes that stand in the code."""
        return {node.attr for node in self.of(ast.Attribute)} | {node.id for node in self.of(ast.Name)}

    @cached_property
    def keywords(self) -> set[str]:
        """The names with which arguments are given."""
        return {node.arg for node in self.of(ast.keyword) if node.arg}

    @cached_property
    def texts(self) -> dict[str, int]:
        """All texts in the code that are values, with a line of each; a docstring is none."""
        documents = {id(node.value) for node in self.of(ast.Expr)}
        texts = (node for node in self.of(ast.Constant) if id(node) not in documents)
        return {node.value: node.lineno for node in texts if isinstance(node.value, str)}

    @cached_property
    def runs(self) -> bool:
        """Whether this runs something, and does not only define it."""
        body = self.nodes[0].body if isinstance(self.nodes[0], ast.Module) else []
        return any(node.id == "__name__" for node in self.of(ast.Name)) or any(
            isinstance(node, ast.For | ast.While | ast.With)
            or (isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call))
            for node in body
        )

    @cached_property
    def of_rank(self) -> set[str]:
        """The names whose values depend on the rank."""
        names: set[str] = set()
        for _ in range(4):
            before = len(names)
            others = ((name, values) for name, values in self.assigned.items() if name not in names)
            names |= {name for name, values in others if any(_mentions(value, names) for value in values)}
            if len(names) == before:
                break
        return names

    def by_rank(self, node: ast.AST) -> bool:
        """Whether the value of an expression depends on the rank."""
        return _mentions(node, self.of_rank)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        parent = self.parents.get(id(node))
        while parent is not None:
            yield parent
            parent = self.parents.get(id(parent))

    def steps(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """The way out of a node: each node on it with the one around it."""
        return pairwise((node, *self.around(node)))

    def is_inside(self, node: ast.AST, *kinds: type[ast.AST]) -> bool:
        """Whether a node of one of these kinds is around a node."""
        return any(isinstance(outer, kinds) for outer in self.around(node))

    def class_of(self, node: ast.AST) -> ast.AST | None:
        """The class in which a node is."""
        return next((outer for outer in self.around(node) if isinstance(outer, ast.ClassDef)), None)

    def on_some_ranks(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether only some ranks run this node, as far as it can be seen; True if it cannot."""
        for inner, outer in self.steps(node):
            if self._left_before(outer, inner):
                return True
            match outer:
                case (
                    ast.If(test=test, orelse=other)
                    | ast.IfExp(test=test, orelse=other)
                    | ast.While(test=test, orelse=other)
                ) if inner is not test:
                    in_else = inner in other if isinstance(other, list) else inner is other
                    chosen = self.by_rank(test) or (not in_else and ONE_RANK.fullmatch(ast.unparse(test)) is not None)
                    chosen = chosen or self._made_by_rank(test)
                case ast.BoolOp() | ast.DictComp() | ast.ListComp() | ast.Match() | ast.Dict():
                    chosen = self.by_rank(outer)
                case ast.Call(func=func) if inner is not func:  # `run_on_chief(…)`
                    chosen = RANK.search(last(outer)) is not None
                case ast.With(items=items):
                    chosen = any(self.by_rank(item.context_expr) for item in items)
                case ast.Lambda() | ast.ClassDef():
                    chosen = True
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    return self._called_on_some_ranks(outer, depth)
                case _:
                    chosen = False
            if chosen:
                return True
        return False

    def _made_by_rank(self, test: ast.expr) -> bool:
        """Whether a condition asks for something that was made on some ranks: `if log is not None`."""
        names = [part.id for part in ast.walk(test) if isinstance(part, ast.Name)]
        made = (value for name in names for value in self.assigned.get(name, ()))
        return any(isinstance(o, ast.If) and self.by_rank(o.test) for value in made for o in self.around(value))

    def _left_before(self, block: ast.AST, inner: ast.AST) -> bool:
        """Whether a statement before `inner` in the same block ends the run of other ranks: `if rank != 0: return`."""
        for body in (getattr(block, "body", None), getattr(block, "orelse", None)):
            if not isinstance(body, list) or inner not in body:
                continue
            for statement in body[: body.index(inner)]:
                ends = statement.body[-1] if isinstance(statement, ast.If) and self.by_rank(statement.test) else None
                exits = isinstance(ends, ast.Expr) and last(ends.value) in ("exit", "_exit", "quit")
                if isinstance(ends, LEAVES) or exits:
                    return True
        return False

    def callers(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call] | None:
        """The calls of a function; None if it may be called from elsewhere, or not at all."""
        calls = [call for call in self.calls_of(function.name) if function not in list(self.around(call))]
        by_app = function.name == "main" and "run" in self.called  # `tf.app.run()`
        return None if function.decorator_list or not (calls or by_app) else calls

    def _called_on_some_ranks(self, function: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> bool:
        calls = self.callers(function)
        if calls is None or not depth:
            return True
        return bool(calls) and all(self.on_some_ranks(call, depth - 1) for call in calls)

    def ending(self, node: ast.AST | None, depth: int = 3) -> str | None:
        """The text with which the value of an expression ends, as far as it is written in the script; None if unknown."""
        match node:
            case ast.Constant(value=str(text)) | ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
                return text
            case ast.BinOp(op=ast.Mod(), left=left):
                end = self.ending(left, depth)
                return None if end is None or end.endswith(("%s", "%d")) else end
            case ast.Call(func=ast.Attribute(attr="format", value=value)):
                end = self.ending(value, depth)
                return None if end is None or end.endswith("}") else end
            case (
                ast.BinOp(op=ast.Add() | ast.Div(), right=value)
                | ast.Call(func=ast.Attribute(attr="join"), args=[_, *_, value])
                | ast.Call(func=ast.Name(id="str"), args=[value])
            ):
                return self.ending(value, depth)
            case ast.Name(id=name) if depth:
                values = self.assigned.get(name, [])
                return self.ending(values[0], depth - 1) if len(values) == 1 and name not in self.arguments else None
        return None

    @cached_property
    def arguments(self) -> set[str]:
        """The names of the arguments of all functions."""
        return {node.arg for node in self.of(ast.arg)}

    def targets(self, node: ast.AST) -> list[ast.expr]:
        """What the value of an expression is assigned to, if that is all of an assignment, or one of its alternatives."""
        outer = self.parents.get(id(node))
        while isinstance(outer, ast.IfExp):
            outer = self.parents.get(id(outer))
        return outer.targets if isinstance(outer, ast.Assign) else []


def _mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression has a name or a text that is one of a rank, or one of these names."""
    for part in ast.walk(node):
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        text = part.value if isinstance(part, ast.Constant) else ""
        if name in names or RANK.search(name or (text[:80] if isinstance(text, str) else "")):
            return True
    return False
