"""Whether the Keras of an environment finds what `provision data fetch` put down, without a download."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

from provision.knowledge.keras_files import KerasFile
from provision.machine.network.data_files import fetch_keras

# The arguments are those of keras.datasets.mnist, of cifar10 (of Keras 2 and of Keras 3), and of keras.applications. Nothing
# answers at the address: a file that is not found ends the program.
PROGRAM = """\
import sys, keras
mnist, cifar, weights = sys.argv[1:]
nowhere = "http://127.0.0.1:9/nothing"
three = keras.__version__.startswith("3.")
paths = [
    keras.utils.get_file("mnist.npz", origin=nowhere, file_hash=mnist),
    keras.utils.get_file("cifar-10-batches-py-target", origin=nowhere, extract=True, file_hash=cifar) + "/cifar-10-batches-py"
    if three else keras.utils.get_file("cifar-10-batches-py", origin=nowhere, untar=True, file_hash=cifar),
    keras.utils.get_file("resnet50.h5", origin=nowhere, cache_subdir="models", file_hash=weights),
]
for path in (paths[0], paths[1] + "/data_batch_1", paths[2]):
    print("found", open(path).read())
"""


def found_by(python: Path, folder: Path, *, keras_home: bool = False) -> list[str]:
    """The contents that this Keras read. The files were fetched from `file:` addresses."""
    home, served = folder / "home", folder / "served"
    home.mkdir(parents=True)
    served.mkdir()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"batch"))
    contents = {"mnist.npz": b"digits", "cifar-10-batches-py.tar.gz": packed.getvalue(), "resnet50.h5": b"weights"}
    rows = []
    for name, content in contents.items():
        (served / name).write_bytes(content)
        digest = hashlib.md5(content) if name.endswith(".h5") else hashlib.sha256(content)
        where = "models" if name.endswith(".h5") else "datasets"
        rows.append(KerasFile(url=(served / name).as_uri(), hash=digest.hexdigest(), folder=where, file=name))
    kept = dict(os.environ)
    os.environ["HOME"] = str(home)
    os.environ.pop("KERAS_HOME", None)
    try:
        if keras_home:
            os.environ["KERAS_HOME"] = str(folder / "own")
        fetch_keras(rows, folder / "scratch")
        words = [python, "-c", PROGRAM, *(row.hash for row in rows)]
        environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("found ")]
