"""The files that Keras downloads: data sets and the weights of networks, and the names under which it looks for them. Pure.

`keras_files.json` has addresses and hashes from the source of Keras 3.15.1; `tools/keras-files.py` writes it. Each of the hashes
is in the source of Keras 2.15.0, too.

Where Keras looks (`get_file`): Keras 2 and tf-keras below `~/.keras`, whatever `KERAS_HOME` is (tensorflow/python/keras/
utils/data_utils.py of TensorFlow 1.15.5, keras/utils/data_utils.py of Keras 2.11.0 and 2.15.0, tf-keras 2.18.0); Keras 3
below `KERAS_HOME`, else `~/.keras` (keras/src/backend/config.py of 3.10.0, 3.12.4 and 3.15.1). If that folder does not
exist or cannot be written, all of them take `/tmp/.keras`, which is empty on a node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

WEIGHTS = "imagenet-weights:"
TFDS = "tfds:"


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasFile:
    """A file of a data set or network. `hash` is a sha256, or an MD5 where Keras's source has no other.

    `folder` is `datasets` or `models`.
    """

    url: str
    hash: str
    folder: str
    file: str

    @property
    def archive_of(self) -> str | None:
        """The folder that the archive contains, or None."""
        return self.file[: -len(".tar.gz")] if self.file.endswith(".tar.gz") else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which Keras looks for it: Keras 3 calls an archive otherwise than Keras 2.

        Sources: keras/datasets/cifar10.py of 2.11.0 and 2.15.0, keras/src/datasets/cifar10.py of 3.10.0 to 3.15.1.
        """
        return (self.file, f"{self.archive_of}-target_archive") if self.archive_of else (self.file,)


def parse_keras_files(text: str) -> Mapping[str, tuple[KerasFile, ...]]:
    """The files of each name, such as `mnist` or `imagenet-weights:ResNet50`."""
    return {name: tuple(KerasFile(**row) for row in rows) for name, rows in json.loads(text)["files"].items()}
