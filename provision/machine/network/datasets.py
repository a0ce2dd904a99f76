"""The data sets of the proof: MNIST if its file exists, otherwise the digits that are shipped with the tool."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from provision.machine.files.disk import has_sha256
from provision.machine.files.trusted_files import MIB

# The file that Keras downloads to ~/.keras/datasets.
MNIST_SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"
# The address from which Keras downloads it (keras/src/datasets/mnist.py).
MNIST_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set in MNIST's layout."""

    name: str
    path: Path


def mnist_places(cache: Path) -> tuple[Path, ...]:
    """The possible paths of `mnist.npz`: in the site's cache, then in the folder of Keras."""
    keras = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    return (cache / "mnist.npz", Path(keras) / "datasets" / "mnist.npz")


def choose_data(cache: Path, program: str) -> DataSet:
    """MNIST if one of its paths has the correct file, otherwise the digits next to the proof programs. Never downloads."""
    for path in mnist_places(cache):
        if has_sha256(path, MNIST_SHA256, limit=16 * MIB):
            return DataSet(name="mnist", path=path)
    return DataSet(name="digits", path=Path(program).parent / "data" / "digits.npz")
