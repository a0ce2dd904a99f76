"""The programs of docs/howto/training-scripts.md, and how they are run: with one rank or several."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import provision

PACKAGE = Path(provision.__file__).resolve().parent
TEXT = (PACKAGE.parent / "docs" / "howto" / "training-scripts.md").read_text(encoding="utf-8")
PROGRAMS: dict[str, str] = dict(re.findall(r"`(\w+\.py)`[^`](?:(?!```).)*?```python\n(.*?)```", TEXT, re.DOTALL))


def run(folder: Path, *argv: str, **environ: str) -> str:
    """What a program prints."""
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "2", **environ}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=own)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def train_keras(folder: Path, python: str, launcher: Sequence[str]) -> None:
    """Convert the digits, train two epochs, go on from them for two more."""
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    run(folder, python, "convert.py", str(PACKAGE / "proof" / "programs" / "data" / "digits.npz"), "records")
    environ = {"PROVISION_DATA": "records", "NUM_INTER_THREADS": "1", "NUM_INTRA_THREADS": "1"}
    run(folder, *launcher, python, "train.py", "--epochs", "2", PROVISION_OUTPUT="first", **environ)
    kept = sorted(path.name for path in (folder / "first/checkpoints").iterdir())
    assert kept == [f"epoch-{number:04d}.weights.h5" for number in (0, 1, 2)]
    words = ("train.py", "--epochs", "4", "--resume-from", "first/checkpoints")
    output = run(folder, *launcher, python, *words, PROVISION_OUTPUT="second", **environ)
    kept = sorted(path.name for path in (folder / "second/checkpoints").iterdir())
    assert kept == [f"epoch-{number:04d}.weights.h5" for number in (3, 4)]
    assert "Epoch 3/4" in output
    assert "Epoch 2/4" not in output
    assert float(re.findall(r" accuracy: ([0-9.]+)", output)[-1]) > 0.8
    has = run(folder, python, "-c", "import importlib.util as u; print(u.find_spec('tensorboard') is not None)")
    assert bool(list(folder.glob("second/tensorboard/**/events.out.tfevents.*"))) is (has == "True\n")


def train_graph(folder: Path, python: str, launcher: Sequence[str]) -> None:
    """Train some steps in a graph, go on from its checkpoint."""
    (folder / "graph.py").write_text(PROGRAMS["graph.py"])

    def newest() -> int:
        """The last step that was saved."""
        names = [path.name for path in (folder / "out/checkpoints").glob("model.ckpt-*.index")]
        return max(int(name[len("model.ckpt-") : -len(".index")]) for name in names)

    run(folder, *launcher, python, "graph.py", "--steps", "120", PROVISION_OUTPUT="out")
    first = newest()
    again = ("graph.py", "--steps", "400", "--resume-from", "out/checkpoints")
    output = run(folder, *launcher, python, *again, PROVISION_OUTPUT="other")
    assert newest() * 120 == first * 400
    assert not (folder / "other").exists()
    assert all(float(loss) < 0.5 for loss in re.findall(r"loss ([0-9.]+)", output))
