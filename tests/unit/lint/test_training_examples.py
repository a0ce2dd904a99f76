"""The programs of docs/howto/training-scripts.md: Python 3.7, no finding of our linter, and run if there is a TensorFlow.

`TENSORFLOW_PYTHON` names a Python that has TensorFlow and our Horovod: one rank each is trained then, stopped and gone on
with. Two ranks: `TENSORFLOW_LAUNCHER="mpiexec -n 2"`. `test_build_local.py` runs them in what it has built.
"""

from __future__ import annotations

import ast
import os
import shlex
from pathlib import Path

import pytest

from parts.training import PROGRAMS, TEXT, run, train_graph, train_keras
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.lint.training import read_training

every_program = pytest.mark.parametrize("name", ["convert.py", "train.py", "graph.py"])


def test_every_program_is_found_and_there_is_no_other() -> None:
    assert sorted(PROGRAMS) == ["convert.py", "graph.py", "train.py"]
    assert TEXT.count("```python") == len(PROGRAMS)


@every_program
def test_a_program_is_of_the_oldest_python_that_a_stack_has(name: str) -> None:
    ast.parse(PROGRAMS[name], feature_version=(3, 7))


@every_program
def test_a_program_has_no_fault_by_our_own_rules(name: str) -> None:
    training = read_training(PROGRAMS[name], name)
    assert training.findings == ()
    for version in ("2.15.1", "2.21.0"):
        job = (
            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=1\nset -e\n"
            f"module purge\nmodule load tensorflow/{version}\nmodule list\n"
            f"export NUM_INTER_THREADS=2\nexport NUM_INTRA_THREADS=4\nsrun python {name}\n"
        )
        found = lint_job(read_script(job, "job.sh"), training, None, None)
        # convert.py is started by hand, once, and computes nothing.
        wrong = {one.rule for one in found} - ({"threads-unread"} if name == "convert.py" else set())
        assert wrong == set()


@every_program
def test_lines_are_as_short_as_ours(name: str) -> None:
    assert max(map(len, PROGRAMS[name].splitlines())) <= 120


@pytest.fixture
def python() -> str:
    found = os.environ.get("TENSORFLOW_PYTHON")
    if not found:
        pytest.skip("TENSORFLOW_PYTHON names no Python with TensorFlow and Horovod; these programs were not run here")
    return found


@pytest.fixture
def launcher(python: str) -> list[str]:
    """The launcher beside that Python, if one is named."""
    first, *rest = shlex.split(os.environ.get("TENSORFLOW_LAUNCHER", "")) or [""]
    return [str(Path(python).with_name(first)), *rest] if first else []


def test_the_keras_program_trains_on_converted_data_and_goes_on(
    python: str, launcher: list[str], tmp_path: Path
) -> None:
    if run(tmp_path, python, "-c", "import tensorflow as tf; print(tf.__version__)").startswith("1."):
        pytest.skip("train.py is for TensorFlow 2, as docs/howto/training-scripts.md says")
    train_keras(tmp_path, python, launcher)


def test_the_graph_program_stops_and_goes_on(python: str, launcher: list[str], tmp_path: Path) -> None:
    train_graph(tmp_path, python, launcher)
