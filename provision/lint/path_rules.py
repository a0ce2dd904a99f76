"""The rule for paths in a training script: what is written below /tmp is lost after the job.

Data, caches and files that are only read may be there: many sites advise to copy data to the node.
"""

from __future__ import annotations

import ast
import re

from provision.lint.rule import Found, warning
from provision.lint.syntax import ShellScript, given, last, value_of
from provision.lint.training_script import TrainingProgram

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


@warning(
    "node-local-output",
    "`{0}` is on the node and is lost after the job",
    'write to a folder below `os.environ["PROVISION_OUTPUT"]`',
)
def node_local_output(program: TrainingProgram) -> Found:
    """Output below /tmp, which is lost after the job."""
    script = program.script
    if script.modules & {"unittest", "pytest", "absl.testing"} or "TestCase" in script.names:
        return
    for node in script.of(ast.Constant):
        if isinstance(node.value, str) and node.value.startswith("/tmp/"):
            is_docstring = isinstance(script.parents.get(id(node)), ast.Expr)
            if not is_docstring and not _is_read(script, node, node.value):
                yield node, node.value[:100]


def _is_read(script: ShellScript, path: ast.Constant, text: str) -> bool:
    """Whether the nearest name that shows it is one of something that is read: data, a cache, a file that exists already."""
    inner: ast.AST = path
    for outer in script.around(path):
        names: list[str] = []
        match outer:
            case ast.Compare():
                return True
            case ast.keyword(arg=str(word)):
                names = [word]
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open") as func) if inner is not func:
                mode = given(outer, "mode", 1)
                return mode is None or "r" in str(value_of(mode) or "")
            case ast.Call(func=func, args=words) if inner is not func:
                called = last(outer)
                if any(LOOKS.fullmatch(part) for part in re.split(r"_(?=load|read|exists)|(?<=load|read)_", called)):
                    return True
                texts = [str(word.value) for word in words if isinstance(word, ast.Constant) and word is not path]
                names = texts if OPTIONS.fullmatch(called) else [called]
            case ast.Assign(targets=targets):
                names = [last(target) for target in targets]
            case ast.AnnAssign(target=target):
                names = [last(target)]
            case _:
                pass
        for name in names:
            if WRITTEN.search(name) or READ.search(name):
                return not WRITTEN.search(name)
        if isinstance(outer, ast.stmt):
            break
        inner = outer
    return bool(READ.search(text[5:])) and not WRITTEN.search(text)
