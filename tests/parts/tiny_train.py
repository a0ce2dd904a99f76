"""The proof of the tiny stack: ranks of a real MPI train a linear classifier of digits, and report as `horovod_keras.py` does.

Every number in the report is measured: what the ranks exchanged, the digests of their weights, losses, accuracy. The judge is
the tool's own. It runs as a copy beside the shipped programs, whose `rank.py` it imports, and parses on Python 3.6.
"""

import argparse
import array
import hashlib
import importlib
import json
import math
import os
import platform
import random
import sys
import time
import zipfile

from horovod_rank import comes_first, import_mpi4py
from rank import mpi_library_version, run

SIDE, CELL, CLASSES = 28, 4, 10
STEP = 4.0


def images(path, part):
    """The images of a file in the layout of mnist.npz, each as sums over squares of 4 by 4, and their labels."""
    with zipfile.ZipFile(path) as archive:
        pixels, labels = (archive.read("{}_{}.npy".format(name, part)) for name in "xy")
    labels = labels[len(labels) - labels_of(pixels) :]
    pixels, size = pixels[len(pixels) - len(labels) * SIDE * SIDE :], SIDE // CELL
    cells = []
    for number in range(len(labels)):
        sums = [0] * (size * size)
        for row in range(SIDE):
            at = (number * SIDE + row) * SIDE
            for column, value in enumerate(pixels[at : at + SIDE]):
                if value:
                    sums[row // CELL * size + column // CELL] += value
        cells.append([value / (255.0 * CELL * CELL) for value in sums] + [1.0])
    return cells, list(labels)


def labels_of(pixels):
    """The number of images: the first number of the shape in NumPy's header."""
    return int(pixels[:128].split(b"(")[1].split(b",")[0])


def scores(weights, cells):
    """The probabilities of the classes of one image."""
    sums = [sum(a * b for a, b in zip(row, cells)) for row in weights]
    top = max(sums)
    powers = [math.exp(value - top) for value in sums]
    total = sum(powers)
    return [power / total for power in powers]


def digest(weights):
    """A digest of every bit."""
    return hashlib.sha256(array.array("d", [value for row in weights for value in row]).tobytes()).hexdigest()


def loss_of(weights, cells, labels):
    """The mean cross entropy."""
    return sum(-math.log(max(scores(weights, one)[label], 1e-12)) for one, label in zip(cells, labels)) / len(labels)


def restart(hvd, fields, weights, epoch, path):
    """Continue with the weights that rank 0 saves and reads back, as the programs with a restart do."""
    fields["restart"] = {"began_at": epoch}
    if hvd.rank() == 0:
        with open(path, "w") as file:
            json.dump(weights, file)
        fields["restart"].update(saved_at=epoch, saved_sha256=digest(weights))
        with open(path) as file:
            weights = json.load(file)
    width = len(weights[0])
    flat = hvd.broadcast([value for row in weights for value in row])
    weights = [flat[at : at + width] for at in range(0, len(flat), width)]
    fields["restart"]["began_sha256"] = digest(weights)
    return weights


def train(args, report):
    """From the imports to the finished report."""
    fields = report.fields
    tf, horovod = importlib.import_module("tensorflow"), importlib.import_module("horovod")
    first = import_mpi4py() if comes_first(os.environ) else None
    import horovod.tensorflow as hvd

    fields["versions"] = {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "horovod": horovod.__version__,
    }
    report.stage("hvd.init")
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    fields.update(rank=rank, size=size, local_rank=hvd.local_rank(), local_size=hvd.local_size())
    fields["versions"]["mpi"] = mpi_library_version()
    mpi = first or import_mpi4py()
    if mpi:
        fields["mpi4py"] = {"rank": mpi.rank(), "size": mpi.size(), "first": first is not None, "threads": True}
        fields["mpi4py"]["sum"] = mpi.allreduce([float(number * (mpi.rank() + 1)) for number in range(1, 9)])
    fields["gpu"] = {"visible": 0, "used": None, "bus_id": None}
    fields["threads"] = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "NUM_INTRA_THREADS")}

    report.stage("allreduce")
    mine = [float((rank + 1) * number) for number in range(1, 9)]
    expected = [size * (size + 1) / 2.0 * number for number in range(1, 9)]
    large = hvd.allreduce(mine * 4096)
    summed = hvd.allreduce(mine)
    fields["allreduce"] = {
        "inputs": [mine],
        "expected": expected,
        "sum": summed,
        "average": [value / size for value in summed],
        "large_elements": len(large),
        "large_wrong": sum(seen != wanted for seen, wanted in zip(large, expected * 4096)),
    }
    fields["peers"] = hvd.allgather_object([rank, report.host, os.getpid()])

    report.stage("data")
    cells, labels = images(args.data, "train")
    order = list(range(len(labels)))
    random.Random(1).shuffle(order)
    length = len(order) // size
    own = order[rank * length : (rank + 1) * length]
    fields["shard"] = {
        "start": rank * length,
        "stop": (rank + 1) * length,
        "sha256": hashlib.sha256(json.dumps(sorted(own)).encode()).hexdigest(),
    }
    cells, labels = [cells[number] for number in own], [labels[number] for number in own]

    report.stage("training")
    width = len(cells[0])
    chance = random.Random(100003 + rank)
    weights = [[chance.uniform(-0.1, 0.1) for _ in range(width)] for _ in range(CLASSES)]
    fields["weights_sha256_initial"] = digest(weights)
    flat = hvd.broadcast([value for row in weights for value in row])
    weights = [flat[at : at + width] for at in range(0, len(flat), width)]
    fields["loss_before"], fields["loss"], began = loss_of(weights, cells, labels), [], time.time()
    for epoch in range(args.epochs):
        if epoch == max(1, args.epochs // 2):
            weights = restart(hvd, fields, weights, epoch, os.path.join(args.out, "checkpoint.json"))
        for first in range(0, length, args.batch_size):
            batch = list(zip(cells, labels))[first : first + args.batch_size]
            gradient = [[0.0] * width for _ in range(CLASSES)]
            for one, label in batch:
                for row, probability in enumerate(scores(weights, one)):
                    error = (probability - (row == label)) / len(batch)
                    gradient[row] = [old + error * value for old, value in zip(gradient[row], one)]
            flat = hvd.allreduce([value for row in gradient for value in row])
            for row in range(CLASSES):
                part = flat[row * width : (row + 1) * width]
                weights[row] = [weight - STEP / size * value for weight, value in zip(weights[row], part)]
        fields["loss"].append(loss_of(weights, cells, labels))
    fields["seconds"] = time.time() - began
    fields["images_per_second"] = args.epochs * length * size / fields["seconds"]

    report.stage("evaluation")
    fields["weights_sha256"] = digest(weights)
    flat = [value for row in weights for value in row]
    fields["weights_max_difference"] = max(abs(a - b) for a, b in zip(flat, hvd.broadcast(flat)))
    cells, labels = images(args.data, "test")
    guesses = [max(range(CLASSES), key=scores(weights, one).__getitem__) for one in cells]
    fields["accuracy"] = sum(guess == label for guess, label in zip(guesses, labels)) / len(labels)
    report.stage("done")


def main():
    """Train; the exit code is 0 or 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--gpu", action="store_true")
    args = parser.parse_args()
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
