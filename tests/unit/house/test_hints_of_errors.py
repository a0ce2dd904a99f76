"""The commands in the hints of errors that the code raises, and of known failures: a shell takes them, and ours exist."""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import provision
from provision.commands.options import COMMANDS
from provision.commands.options.declare import CommandOptions
from provision.machine.programs.failed_program import known_failures

PACKAGE = Path(provision.__file__).parent
IN_BACKTICKS = re.compile(r"`([^`]+)`")
# What the code inserts. It is a word for a shell, and no name of a verb or an option.
INSERTED = "INSERTED"
# Lines of a profile or of Python, which are not commands.
NOT_FOR_A_SHELL = re.compile(r"^[\w.<>\[\]]+ = |^\[|^\w+ = \{|^archs\.|^import |^from __future__ |^tf\.|^hvd\.|^#")


def texts(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may give, with a word for what is inserted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else INSERTED for part in node.values]
        yield "".join(map(str, parts))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left in texts(node.left):
            for right in texts(node.right):
                yield left + right
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def hints() -> Iterator[tuple[str, str]]:
    """Each text that is given as `hint=`, or assigned to `hint`, with its file and line; then those of known failures."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            given: ast.expr | None = None
            if (isinstance(node, ast.keyword) and node.arg == "hint") or (
                isinstance(node, ast.Assign)
                and any(isinstance(one, ast.Name) and one.id == "hint" for one in node.targets)
            ):
                given = node.value
            if given is not None:
                yield from ((f"{path.relative_to(PACKAGE)}:{given.lineno}", text) for text in texts(given))
    yield from ((failure.id, re.sub(r"\{\w*\}", INSERTED, failure.hint)) for failure in known_failures().entries)


@functools.cache
def commands() -> list[tuple[str, str]]:
    """The texts in backticks of all hints; those of one word that is only inserted are left out."""
    found = [(place, text) for place, hint in hints() for text in IN_BACKTICKS.findall(hint)]
    return [(place, text) for place, text in found if not text.startswith((INSERTED, "--")) and "…" not in text]


def test_each_command_in_a_hint_is_valid_for_a_shell() -> None:
    checked = [(place, text) for place, text in commands() if " " in text and not NOT_FOR_A_SHELL.match(text)]
    assert len(checked) > 270
    script = "".join(f"f() {{ : {shlex.quote(place)}\n{text}\n}}\n" for place, text in checked)
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_each_command_of_this_tool_in_a_hint_exists_with_its_options() -> None:
    own = [(place, text) for place, text in commands() if text.startswith("provision ")]
    assert len(own) > 110
    wrong = [(place, text) for place, text in own if not exists(text, COMMANDS)]
    assert not wrong


def exists(text: str, known: dict[str, CommandOptions]) -> bool:
    """Whether a command of this tool names a verb, and only options of it."""
    words = [word.removesuffix(INSERTED) or INSERTED for word in shlex.split(re.sub(r"[][]", "", text))[1:]]
    if words[0] in ("help", "--help", "--version") or words[0].startswith(INSERTED):
        return True
    command = known.get(words[0])
    if command is None:
        return False
    subverbs = {verb.name.split()[-1]: verb for verb in command.subverbs}
    if subverbs and len(words) > 1 and not words[1].startswith(("-", INSERTED)):
        if words[1] not in subverbs:
            return False
        command = subverbs[words[1]]
    options = {name for option in command.options for name in option.names} | {"--help", "--json", "--verbose"}
    for verb in subverbs.values():
        options |= {name for option in verb.options for name in option.names}
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    return given <= options


def test_the_reader_of_hints_sees_what_is_inserted_and_both_branches() -> None:
    code = "f(hint=f'`provision build {x}`' if x else '`a` ' + '`b c`')"
    (keyword,) = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.keyword)]
    assert list(texts(keyword.value)) == ["`provision build INSERTED`", "`a` `b c`"]
    assert not exists("provision biuld", COMMANDS)
    assert not exists("provision build --acrh x", COMMANDS)


def test_no_hint_prints_the_password_of_a_proxy() -> None:
    environ = {"PATH": os.environ["PATH"], "https_proxy": "http://ada:s3@cret@proxy:3128"}
    shown = {text for _, text in commands() if "grep -i proxy" in text}
    assert shown
    for text in shown:
        done = subprocess.run(["bash", "-c", text], env=environ, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "https_proxy=http://...@proxy:3128\n", text
