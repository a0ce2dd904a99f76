"""Data sets of the proof: real MNIST where somebody put it, else the digits that come with the tool."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

# The file that Keras' own download puts into ~/.keras/datasets.
MNIST_SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"
# Where Keras downloads it from (keras/src/datasets/mnist.py).
MNIST_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set in MNIST's layout."""

    name: str
    path: Path


def mnist_places(cache: Path) -> tuple[Path, ...]:
    """Where `mnist.npz` may be: the site's cache, then where Keras keeps it."""
    keras = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    return (cache / "mnist.npz", Path(keras) / "datasets" / "mnist.npz")


def choose_data(cache: Path, program: str) -> DataSet:
    """MNIST if a place has the real file, else the digits beside the proof programs. Never a download."""
    for path in mnist_places(cache):
        try:
            if hashlib.sha256(path.read_bytes()).hexdigest() == MNIST_SHA256:
                return DataSet(name="mnist", path=path)
        except OSError:
            continue
    return DataSet(name="digits", path=Path(program).parent / "data" / "digits.npz")
