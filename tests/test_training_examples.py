"""docs/training.md: its programs are of Python 3.7, without fault by our own linter, and run where there is a TensorFlow.

`TENSORFLOW_PYTHON` names a Python that has TensorFlow and our Horovod: one rank each is trained then, cut off and gone on
with. Two ranks: `TENSORFLOW_LAUNCHER="mpiexec -n 2"`.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import provision
from provision.lint.rules import lint_job
from provision.lint.script import read_script
from provision.lint.training import read_training

PACKAGE = Path(provision.__file__).resolve().parent
TEXT = (PACKAGE.parent / "docs" / "training.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"`(\w+\.py)`[^`](?:(?!```).)*?```python\n(.*?)```", TEXT, re.DOTALL))

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


def run(folder: Path, *argv: str, **environ: str) -> str:
    """What a program prints."""
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "2", **environ}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=own)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def launched(python: str) -> list[str]:
    """Ranks of this Python, by the launcher beside it."""
    first, *rest = shlex.split(os.environ.get("TENSORFLOW_LAUNCHER", "")) or [""]
    return [*([str(Path(python).with_name(first)), *rest] if first else []), python]


def test_the_keras_program_trains_on_converted_data_and_goes_on(python: str, tmp_path: Path) -> None:
    if run(tmp_path, python, "-c", "import tensorflow as tf; print(tf.__version__)").startswith("1."):
        pytest.skip("train.py is for TensorFlow 2, as docs/training.md says")
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    run(tmp_path, python, "convert.py", str(PACKAGE / "smoke" / "data" / "digits.npz"), "records")
    environ = {"PROVISION_DATA": "records", "NUM_INTER_THREADS": "1", "NUM_INTRA_THREADS": "1"}
    run(tmp_path, *launched(python), "train.py", "--epochs", "2", PROVISION_OUTPUT="first", **environ)
    kept = sorted(path.name for path in (tmp_path / "first/checkpoints").iterdir())
    assert kept == [f"epoch-{number:04d}.weights.h5" for number in (0, 1, 2)]
    words = ("train.py", "--epochs", "4", "--resume-from", "first/checkpoints")
    told = run(tmp_path, *launched(python), *words, PROVISION_OUTPUT="second", **environ)
    assert sorted(path.name for path in (tmp_path / "second/checkpoints").iterdir()) == [
        f"epoch-{number:04d}.weights.h5" for number in (3, 4)
    ]
    assert "Epoch 3/4" in told
    assert "Epoch 2/4" not in told
    accuracy = float(re.findall(r" accuracy: ([0-9.]+)", told)[-1])
    assert accuracy > 0.8
    has = run(tmp_path, python, "-c", "import importlib.util as u; print(u.find_spec('tensorboard') is not None)")
    assert bool(list(tmp_path.glob("second/tensorboard/**/events.out.tfevents.*"))) is (has == "True\n")


def test_the_graph_program_stops_and_goes_on(python: str, tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(PROGRAMS["graph.py"])

    def newest() -> int:
        """The last step that was saved."""
        names = [path.name for path in (tmp_path / "out/checkpoints").glob("model.ckpt-*.index")]
        return max(int(name[len("model.ckpt-") : -len(".index")]) for name in names)

    run(tmp_path, *launched(python), "graph.py", "--steps", "120", PROVISION_OUTPUT="out")
    first = newest()
    again = ("graph.py", "--steps", "400", "--resume-from", "out/checkpoints")
    told = run(tmp_path, *launched(python), *again, PROVISION_OUTPUT="other")
    assert newest() * 120 == first * 400
    assert not (tmp_path / "other").exists()
    assert all(float(loss) < 0.5 for loss in re.findall(r"loss ([0-9.]+)", told))
