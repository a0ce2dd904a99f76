#!/usr/bin/env python3
"""Make `provision/proof/programs/data/digits.npz`, the data set of the proof, from scikit-learn's handwritten digits.

A compute node seldom has network, and the proof must not depend on a download, so the tool ships a small data set.
This script made it. Equal input gives equal bytes: the split does not depend on a random number generator, and the
archive contains no times.

The script needs NumPy and scikit-learn, which `provision` itself does not need, so run it in a temporary environment:

    python3 -m venv /tmp/digits
    /tmp/digits/bin/pip install scikit-learn
    /tmp/digits/bin/python tools/make-digits.py provision/proof/programs/data/digits.npz
"""

import argparse
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TRAIN_IMAGES = 1500
ENLARGE = 3
BORDER = 2  # 8 * 3 + 2 * 2 = 28, the side of an MNIST image
FULL_INK = 16  # the value of a completely black pixel in the source
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can hold


def split_order(count: int) -> list[int]:
    """Shuffle 0..count-1 in an order that never changes: by the digest of each number, not with a random generator.

    The source is sorted by writer. Without shuffling, the test images would be from writers that are not in the training
    images, and the accuracy would vary from run to run by more than the faults that the proof looks for.
    """
    return sorted(range(count), key=lambda index: hashlib.sha256(str(index).encode()).digest())


def mnist_like(images: np.ndarray) -> np.ndarray:
    """Turn (n, 8, 8) of 0..16 into (n, 28, 28) of 0..255: each pixel becomes 3 by 3, with a border of 2."""
    scaled = np.rint(images * (255.0 / FULL_INK)).astype(np.uint8)
    enlarged = scaled.repeat(ENLARGE, axis=1).repeat(ENLARGE, axis=2)
    return np.pad(enlarged, ((0, 0), (BORDER, BORDER), (BORDER, BORDER)))


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Write the arrays as `numpy.savez_compressed` would, but with a fixed time and fixed permissions."""
    archive_bytes = io.BytesIO()
    with zipfile.ZipFile(archive_bytes, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", ZIP_EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return archive_bytes.getvalue()


def main() -> None:
    """Write the file named on the command line and print its digest."""
    parser = argparse.ArgumentParser(description="Make the digits data set of the proof.", allow_abbrev=False)
    parser.add_argument("output", type=Path, metavar="FILE.npz")
    output: Path = parser.parse_args().output

    digits = load_digits()
    order = split_order(len(digits.images))
    images, labels = mnist_like(digits.images)[order], digits.target.astype(np.uint8)[order]
    content = npz_bytes(
        {
            "x_train": images[:TRAIN_IMAGES],
            "y_train": labels[:TRAIN_IMAGES],
            "x_test": images[TRAIN_IMAGES:],
            "y_test": labels[TRAIN_IMAGES:],
        }
    )
    output.write_bytes(content)
    print(f"{hashlib.sha256(content).hexdigest()}  {output.name}  {len(content)} bytes")


if __name__ == "__main__":
    main()
