"""The version of TensorFlow in the name of a module."""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.knowledge.versions import release

# `tensorflow/2.15.1`, `TensorFlow/2.2.0-fosscuda-2019b`, `tensorflow/intel-1.15.0-py37`, `datascience/tensorflow-1.10`,
# `Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0`.
TENSORFLOW_MODULE = re.compile(r"tensorflow[/-](?:intel-)?(\d+\.\d+[\d.]*)", re.IGNORECASE)


def tensorflow_module(modules: Iterable[str]) -> tuple[str, tuple[int, ...]] | None:
    """The first module whose name has the version of a TensorFlow, and that version; None if no name has one."""
    for name in modules:
        version = TENSORFLOW_MODULE.search(name)
        if version:
            return name, release(version[1])
    return None
