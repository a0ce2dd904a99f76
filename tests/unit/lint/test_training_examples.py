"""The example programs: they parse on Python 3.6, our linter finds nothing, and they are what `provision example` lists.

The real tests run them (`tests/parts/examples.py`).
"""

from __future__ import annotations

import ast

from parts.examples import FOLDER, PROGRAMS
from parts.loops import for_each
from provision.knowledge.examples import EXAMPLES, Example
from provision.lint.rules import lint_program, read_training

every_program = for_each("name", PROGRAMS)


def test_the_folder_contains_exactly_the_examples_of_the_list() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(example.name for example in EXAMPLES)
    assert sorted(PROGRAMS) == sorted(["tfrecord/convert.py", *(f"{example.name}/train.py" for example in EXAMPLES)])


@every_program
def test_our_linter_finds_no_fault_in_a_program(name: str) -> None:
    ast.parse(PROGRAMS[name], feature_version=(3, 6))  # the oldest Python of a stack
    assert lint_program(read_training(PROGRAMS[name], "train.py"), None) == ()


@for_each("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_takes_the_folders_of_a_job_and_marks_what_differs(example: Example) -> None:
    text = PROGRAMS[f"{example.name}/train.py"]
    resumes = () if example.name == "mpi4py" else ("--resume-from",)
    for word in (*resumes, "--data-dir", "--output-dir", "PROVISION_DATA", "PROVISION_OUTPUT", "report.json"):
        assert word in text, word
    assert ("differs: " in text) is (example.name not in ("single", "graph", "mpi4py"))
    assert f"or {example.needs}" in text.splitlines()[0]
