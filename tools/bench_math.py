#!/usr/bin/env python3
"""The row of `make bench` for Intel's TensorFlow: seconds of training on one process, with oneDNN and with Eigen alone.

    math onednn   wall of 30 steps of a small convolutional network with `intel-tensorflow` 1.15.2,
                  over the same with `tensorflow` 1.15.5                                                at most 1.0

Both are installed as the locks of their stacks pin them, without Horovod. It needs the Python of these stacks on this machine.
Run alone it prints its row: `tools/bench_math.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TOOL = (sys.executable, "-m", "provision")
ONEDNN, EIGEN = "tensorflow-1.15.2-intel", "tensorflow-1.15.5"
MOST = 1.0
Row = tuple[str, float, float, str, float]

# Prints the seconds of the fastest of three rounds of ten steps.
TRAIN = """
import time
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
images, labels = tf.placeholder(tf.float32, (128, 28, 28, 1)), tf.placeholder(tf.int64, (128,))
x = tf.layers.conv2d(images, 32, 3, activation=tf.nn.relu)
x = tf.layers.conv2d(x, 64, 3, activation=tf.nn.relu)
x = tf.layers.flatten(tf.layers.max_pooling2d(x, 2, 2))
loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(tf.layers.dense(x, 128, tf.nn.relu), 10))
step = tf.train.AdamOptimizer().minimize(loss)
rng = np.random.RandomState(0)
feed = {images: rng.rand(128, 28, 28, 1), labels: rng.randint(0, 10, 128)}
best = 1e9
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, feed)
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(10):
            session.run(step, feed)
        best = min(best, time.perf_counter() - began)
print(best)
"""


def python_of(stack: str) -> str | None:
    """The Python that the tool takes for a stack on this machine; None if there is none."""
    done = subprocess.run((*TOOL, "plan", "--stack", stack, "--json"), capture_output=True, text=True, check=False)
    return None if done.returncode else str(json.loads(done.stdout)["result"]["identity"]["python"].split()[1])


def installed(stack: str, python: str, folder: Path) -> Path:
    """A virtual environment with the locked packages of a stack, without Horovod; its Python."""
    minor = subprocess.run(
        (python, "-c", "import sys; print(*sys.version_info[:2], sep='')"), capture_output=True, text=True
    )
    lock = (REPOSITORY / "requirements" / f"{stack}-py{minor.stdout.strip()}.txt").read_text()
    pins = [pin for pin in re.findall(r"^\S+==\S+", lock, re.MULTILINE) if not pin.startswith("horovod==")]
    subprocess.run((python, "-m", "venv", folder), check=True)
    mine = folder / "bin" / "python"
    subprocess.run((mine, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps", *pins), check=True)
    return mine


def rows() -> list[Row]:
    """Train with both, in turns; nothing if this machine has no Python for them."""
    pythons = {stack: python_of(stack) for stack in (ONEDNN, EIGEN)}
    if None in pythons.values():
        print("math onednn: no Python here for TensorFlow 1.15", file=sys.stderr)
        return []
    print("training with oneDNN and with Eigen …", file=sys.stderr)
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="provision-bench-math-") as scratch:
        envs = {stack: installed(stack, python or "", Path(scratch) / stack) for stack, python in pythons.items()}
        for _ in range(2):
            for stack, python in envs.items():
                done = subprocess.run(
                    (python, "-c", TRAIN), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                best[stack] = min(best.get(stack, 1e9), float(done.stdout.split()[-1]))
    return [("math onednn", best[ONEDNN], best[EIGEN], "x TensorFlow 1.15.5 with Eigen", MOST)]


def main() -> int:
    """Print the row."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, seconds, against, meaning, most in rows():
        print(f"{name:<20} {seconds:>8.3f} {against:>8.3f} {seconds / against:>6.2f}   {most:g} {meaning}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
