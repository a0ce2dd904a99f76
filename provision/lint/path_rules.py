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
LOOKS = re.compile(r"load|read|restore|exists|is_?(file|dir)|list_?dir|glob|rmtree|remove|unlink|assert", re.IGNORECASE)
WRITTEN = re.compile(
    r"out|save|log|ckpt|check_?point|model|export|result|writ|backup|eval|train_|summar|plot|fig", re.IGNORECASE
)
READ = re.compile(
    r"data|input|image|annot|csv|json|cache|te?mp|scratch|sock|lock|port|src|source|record|prefix|__file__",
    re.IGNORECASE,
)


@warning("`{0}` is on the node and is lost after the job", 'write to a folder below `os.environ["PROVISION_OUTPUT"]`')
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
    for outer in script.around(path):
        match outer:
            case ast.Compare():
                return True
            case ast.keyword(arg=str(word)):
                name = word
            case ast.Call(args=words) if last(outer) == "open":
                mode = given(outer, "mode", 1)
                return mode is None or "r" in str(value_of(mode) or "")
            case ast.Call(args=words):
                name = " ".join((last(outer), *(str(value_of(word)) for word in words if word is not path)))
                if LOOKS.search(last(outer)):
                    return True
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
                name = last(target)
            case _:
                name = ""
        if WRITTEN.search(name) or READ.search(name):
            return not WRITTEN.search(name)
        if isinstance(outer, ast.stmt):
            break
    return bool(READ.search(text[5:])) and not WRITTEN.search(text)
