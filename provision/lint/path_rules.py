"""The rule for paths in a training script: what is written below /tmp is lost after the job.

Data, caches and files that are only read may be there: many sites advise to copy data to the node.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from provision.lint.syntax import Fault, Script, given, last

# Names of functions that read or look, of what a script writes, and of what it reads.
LOOKS = re.compile(
    r"load|read|restore|exists|is_?(file|dir)|list_?dir|i?glob|rmtree|remove|unlink|assert.*", re.IGNORECASE
)
WRITTEN = re.compile(
    r"out|save|log|ckpt|check_?point|model|export|result|writ|backup|eval|train_|summar|plot|fig", re.IGNORECASE
)
READ = re.compile(
    r"data|input|image|annot|csv|json|cache|te?mp|scratch|sock|lock|port|src|source|record|prefix|__file__",
    re.IGNORECASE,
)
OPTIONS = re.compile(r"add_argument|add_option|option|DEFINE_\w+", re.IGNORECASE)
TESTS = {"unittest", "pytest", "absl.testing"}


def path_faults(script: Script) -> Iterator[Fault]:
    """Output below /tmp, as far as the names around the path show that it is output."""
    if script.modules & TESTS or "TestCase" in {last(node) for node in script.nodes}:
        return
    for node in script.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value.startswith("/tmp/"):
            continue
        if isinstance(script.parents.get(id(node)), ast.Expr) or _is_read(script, node):
            continue
        yield Fault(
            "node-local-output",
            node.lineno,
            f"`{node.value[:100]}` is on the node and is lost after the job",
            'write to a folder below `os.environ["PROVISION_OUTPUT"]`',
        )


def _is_read(script: Script, path: ast.Constant) -> bool:
    """Whether the nearest name that shows it is one of something that is read: data, a cache, a file that exists already."""
    inner: ast.AST = path
    for outer in script.around(path):
        if isinstance(outer, ast.Compare):
            return True
        names: list[str] = []
        if isinstance(outer, ast.keyword) and outer.arg:
            names = [outer.arg]
        elif isinstance(outer, ast.Call) and inner is not outer.func:
            called = last(outer)
            if called == "open":
                mode = given(outer, "mode", 1)
                return mode is None or (isinstance(mode, ast.Constant) and "r" in str(mode.value))
            if any(LOOKS.fullmatch(word) for word in re.split(r"_(?=load|read|exists)|(?<=load|read)_", called)):
                return True
            texts = [word.value for word in outer.args if isinstance(word, ast.Constant) and word is not path]
            names = [str(text) for text in texts] if OPTIONS.fullmatch(called) else [called]
        elif isinstance(outer, ast.Assign | ast.AnnAssign):
            names = [last(target) for target in (outer.targets if isinstance(outer, ast.Assign) else [outer.target])]
        for name in names:
            if WRITTEN.search(name):
                return False
            if READ.search(name):
                return True
        if isinstance(outer, ast.stmt):
            break
        inner = outer
    return bool(READ.search(str(path.value)[5:])) and not WRITTEN.search(str(path.value))
