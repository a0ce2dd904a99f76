"""The house rules, held over the source: who imports what, who touches what, who explains itself, and how much loads."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import provision
from parts.loops import for_each

HOUSE = Path(provision.__file__).resolve().parent
FILES = {str(path.relative_to(HOUSE)): path for path in sorted(HOUSE.rglob("*.py"))}
PROGRAMS = {name: path for name, path in FILES.items() if name.startswith("proof/programs/")}
OURS = {name: path for name, path in FILES.items() if name not in PROGRAMS}

# The house in one total order: a folder imports only from folders above it in this list (and from itself).
LAYERS = (
    ("errors", "wording"),
    ("knowledge",),
    ("profile",),
    ("model",),
    ("launch", "schedulers"),
    ("horovod",),
    ("proof",),
    ("backends",),
    ("planning",),
    ("jobs",),
    ("lint",),
    ("explain",),
    ("machine",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
# And the rooms of `machine/`, in the same way.
ROOMS = (
    "files",
    "programs",
    "terminal",
    "configuration",
    "rendering",
    "probes",
    "sharing",
    "root",
    "network",
    "install",
)
ROOMS += ("submission",)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# The only folder that touches processes, files, clock, environment and network, and who may import it.
TOUCHING, MAY_TOUCH = "machine", ("machine", "commands")
PURE = {
    name: path for name, path in OURS.items() if RANK.get(name.split("/")[0].removesuffix(".py"), 99) < RANK[TOUCHING]
}
# Everything else, the command line included, asks `machine/` for what it wants to know or do.
OUTSIDE = {
    name: path for name, path in OURS.items() if name.split("/")[0] not in (TOUCHING, "__init__.py", "__main__.py")
}
# What a folder outside `machine/` may use of os.path: words about paths, which look at no file.
OF_OS_PATH = {"join", "dirname", "basename", "normpath", "commonpath", "isabs", "split", "splitext"}

ONLY_IMPORTER = {
    "subprocess": "machine/programs/run.py",
    "jinja2": "machine/rendering/render.py",
    "rich": "machine/terminal/live_table.py",
}
# Modules whose functions touch processes, files, clock, environment or network.
EFFECTS = {"time", "datetime", "subprocess", "socket", "shutil", "tempfile", "random", "platform", "asyncio"}
EFFECTS |= {"urllib", "http", "glob", "fcntl", "pwd", "getpass", "signal", "select", "threading"}
# A signal is how a user or a scheduler ends a verb, so the command line turns it into an exit code, like Ctrl-C.
# `urllib.parse` quotes text, and reaches nothing.
EXCUSED = {name: {"signal"} for name in ("cli.py", "commands/shared/running.py")} | {"model/redaction.py": {"urllib"}}
# stdout is the result of a verb: only the command line prints.
PRINTING = ("commands", "cli.py")
# Methods of Path that look at a file, or change one.
OF_PATH = {"read_text", "read_bytes", "open", "exists", "is_file", "is_dir", "is_symlink", "stat", "lstat", "samefile"}
OF_PATH |= {"glob", "rglob", "iterdir", "resolve", "absolute", "expanduser", "readlink", "cwd", "home"}

WRITING = {"write_text", "write_bytes", "mkdir", "unlink", "rename", "replace", "rmdir", "touch", "symlink_to", "chmod"}

every_file = for_each("name", FILES)
every_pure_file = for_each("name", PURE)


@functools.cache
def tree(name: str) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


@functools.cache
def imports(name: str) -> frozenset[str]:
    """Every module that a file imports, at its top or within functions; `from a import b` counts as `a` and `a.b`."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno} imports relatively"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def packages(name: str) -> set[str]:
    """The outermost packages that a file imports."""
    return {module.partition(".")[0] for module in imports(name)}


def test_the_house_is_where_it_is_looked_for() -> None:
    assert {"planning/planner.py", "profile/site.py", "backends/venv/draft.py", "schedulers/slurm.py"} <= set(PURE)
    assert PROGRAMS


@pytest.mark.parametrize("package", ONLY_IMPORTER)
def test_a_package_with_one_importer_is_imported_by_it_alone(package: str) -> None:
    assert [name for name in OURS if package in packages(name)] == [ONLY_IMPORTER[package]]


def folder(name: str) -> str:
    """The top-level folder (or file) of the package that a file belongs to."""
    return name.split("/")[0].removesuffix(".py")


def test_every_top_level_entry_has_its_place_in_the_order() -> None:
    there = {folder(name) for name in OURS} - {"__init__"}
    assert there == set(RANK)
    assert len(there - {"__main__"}) <= 17


@for_each("name", [name for name in OURS if name != "__init__.py"])
def test_imports_go_up_the_list_of_folders(name: str) -> None:
    mine = folder(name)
    others = {module.split(".")[1] for module in imports(name) if module.startswith("provision.")} - {"__version__"}
    for other in others - {mine}:
        assert RANK[other] < RANK[mine], f"{name} imports {other}"
        assert other != TOUCHING or mine in MAY_TOUCH, f"{name} imports {other}"


def rooms_of(folder: str) -> dict[str, set[str]]:
    """The rooms and files directly in a folder, each with those beside it that are imported anywhere in it."""
    start = f"provision.{folder}/".replace("/", ".") if folder else "provision."
    rooms: dict[str, set[str]] = {}
    for name in OURS:
        module = f"provision.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        if module.startswith(start):
            room = module.removeprefix(start).split(".")[0]
            others = {other.removeprefix(start).split(".")[0] for other in imports(name) if other.startswith(start)}
            rooms[room] = rooms.get(room, set()) | others - {room}
    return {room: others & rooms.keys() for room, others in rooms.items()}


def test_imports_go_up_the_list_of_rooms_of_machine() -> None:
    rooms = rooms_of("machine")
    assert set(ROOMS) == set(rooms)
    for room, others in rooms.items():
        assert all(ROOMS.index(other) < ROOMS.index(room) for other in others), f"machine/{room} imports {others}"


@for_each("folder", sorted({name.rpartition("/")[0] for name in OURS}))
def test_neither_rooms_nor_files_of_a_folder_import_each_other_in_a_circle(folder: str) -> None:
    rooms = rooms_of(folder)
    while free := [room for room, others in rooms.items() if not others & rooms.keys()]:
        for room in free:
            del rooms[room]
    assert not rooms, f"in a circle, or above one: {sorted(rooms)}"


def test_no_two_files_share_a_name_unless_a_verb_is_named_like_its_noun() -> None:
    names: dict[str, set[str]] = {}
    for name in OURS:
        if not name.startswith("commands/") and not name.endswith("__init__.py"):
            # Two backends have files of the same names with the same meanings.
            names.setdefault(name.split("/")[-1], set()).add(re.sub(r"^backends/\w+/", "backends/NAME/", name))
    assert not [same for same in names.values() if len(same) > 1]


def test_no_folder_but_backends_imports_a_backend_by_name_unless_it_acts() -> None:
    named = ("provision.backends.venv",)
    importing = [name for name in PURE if any(module.startswith(named) for module in imports(name))]
    assert {name.split("/")[0] for name in importing} == {"backends"}


def effects(name: str, syntax: ast.Module) -> Iterator[str]:
    """Every place in a file where it asks for the time, the environment, a file, stdin or another program."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for package in {module.partition(".")[0] for module in modules} & EFFECTS - EXCUSED.get(name, set()):
                yield f"{name}:{node.lineno} imports {package}"
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if (
                (owner == "os" and node.attr not in ("path", "pathsep"))
                or (owner == "os.path" and node.attr not in OF_OS_PATH)
                or (owner == "sys" and node.attr == "stdin")
                or node.attr in OF_PATH | WRITING - {"replace"}
            ):
                yield f"{name}:{node.lineno} uses {owner}.{node.attr}"
        # str.replace has two arguments, Path.replace has one.
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replace":
            function = ast.unparse(node.func)
            if len(node.args) != 2 and function != "dataclasses.replace":
                yield f"{name}:{node.lineno} calls {function} with {len(node.args)} arguments"
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "os.path"):
            yield f"{name}:{node.lineno} imports from {node.module}: use `os.path.join`, so that it can be seen"
        forbidden = ("open", "input") if name.startswith(PRINTING) else ("open", "input", "print")
        if isinstance(node, ast.Name) and node.id in forbidden:
            yield f"{name}:{node.lineno} uses {node.id}"


@for_each("name", OUTSIDE)
def test_only_machine_touches_the_time_the_environment_files_or_programs(name: str) -> None:
    assert not list(effects(name, tree(name)))


@pytest.mark.parametrize(
    "line",
    [
        "import tempfile",
        "from urllib.request import urlopen",
        "import signal",
        "os.environ['HOME']",
        "os.getcwd()",
        "os.path.abspath(name)",
        "from os import environ",
        "sys.stdin.read()",
        "open('x')",
        "input()",
        "Path(name).is_file()",
        "Path.cwd()",
        "path.write_text(text)",
        "path.replace(other)",
    ],
)
def test_an_effect_in_a_verb_is_found(line: str) -> None:
    assert list(effects("commands/build.py", ast.parse(line)))


@every_pure_file
def test_a_pure_room_has_no_path_of_this_machine(name: str) -> None:
    assert "pathlib.Path" not in imports(name), "PurePosixPath is the path of a pure room"


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Every public class and function of a module, and of its public classes."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and not one.name.startswith("_"):
            yield f"{prefix}{one.name}", one
            if isinstance(one, ast.ClassDef):
                yield from definitions(one, f"{one.name}.")


@every_file
def test_everything_public_says_what_it_is(name: str) -> None:
    assert ast.get_docstring(tree(name)) or name == "proof/programs/__init__.py"
    assert [title for title, node in definitions(tree(name)) if not ast.get_docstring(node)] == []


def loaded(*words: str) -> set[str]:
    """The outermost packages that are loaded once the command line has done this."""
    program = (
        "import sys\nfrom provision.cli import main\n"
        "try:\n  main()\nexcept SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


HEAVY = {"rich", "jinja2", "archspec", "asyncio", "virtualenv", "pip", "tomllib", "tomli", "numpy", "ssl"}
OF_VERBS = {"argparse", "dataclasses"}


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("--version", {*HEAVY, *OF_VERBS}),
        ("--help", {*HEAVY, *OF_VERBS}),
        ("build --help", HEAVY),
        ("list", {"rich", "jinja2", "archspec", "asyncio"}),
        ("__complete archs nyu-torch", {*HEAVY, *OF_VERBS, "difflib", "shutil", "json"}),
    ],
)
def test_the_first_words_load_nothing_heavy(words: str, heavy: set[str]) -> None:
    assert not loaded(*words.split()) & heavy


def test_every_verb_is_a_file_and_every_file_a_verb() -> None:
    from provision.commands import VERBS

    verbs = {path.stem for path in (HOUSE / "commands").iterdir()} - {"__init__", "options", "shared", "__pycache__"}
    assert verbs == {verb for verb, _ in VERBS}


def is_constant(node: ast.expr) -> bool:
    """Whether an expression is a text of the source, or a choice between such texts."""
    if isinstance(node, ast.IfExp):
        return is_constant(node.body) and is_constant(node.orelse)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@for_each("name", [name for name in OURS if name != "model/quoting.py"])
def test_only_quoting_makes_code_of_a_value(name: str) -> None:
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Code", "bash"):
            assert is_constant(node.args[0]), f"{name}:{node.lineno} makes code of a value"
