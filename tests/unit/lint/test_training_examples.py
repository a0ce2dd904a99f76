"""The programs of docs/howto/training-scripts.md: they parse on Python 3.7, and our linter finds nothing.

`tests/real/test_build_local.py` runs them.
"""

from __future__ import annotations

import ast

import pytest

from parts.training import PROGRAMS, TEXT
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.lint.training import read_training

every_program = pytest.mark.parametrize("name", ["convert.py", "train.py", "graph.py"])


def test_the_page_contains_exactly_these_programs() -> None:
    assert sorted(PROGRAMS) == ["convert.py", "graph.py", "train.py"]
    assert TEXT.count("```python") == len(PROGRAMS)


@every_program
def test_a_program_parses_on_the_oldest_python_of_a_stack(name: str) -> None:
    ast.parse(PROGRAMS[name], feature_version=(3, 7))


@every_program
def test_our_linter_finds_no_fault_in_a_program(name: str) -> None:
    training = read_training(PROGRAMS[name], name)
    assert training.findings == ()
    for version in ("2.15.1", "2.21.0"):
        job = (
            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=1\nset -e\n"
            f"module purge\nmodule load tensorflow/{version}\nmodule list\n"
            f"export NUM_INTER_THREADS=2\nexport NUM_INTRA_THREADS=4\nsrun python {name}\n"
        )
        findings = lint_job(read_script(job, "job.sh"), training, None, None)
        # A user starts convert.py once by hand; it does not compute with TensorFlow.
        expected = {"threads-unread"} if name == "convert.py" else set()
        assert {finding.rule for finding in findings} - expected == set()


@every_program
def test_the_lines_of_a_program_are_at_most_120_long(name: str) -> None:
    assert max(map(len, PROGRAMS[name].splitlines())) <= 120
