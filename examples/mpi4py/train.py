"""A program with mpi4py: each rank classifies its own part of the images by their nearest neighbours. For mpi4py 3.0 and newer.

    provision job mpi --site SITE --arch ARCH --script train.py

The job starts it with `python -m mpi4py`, which ends all ranks when one fails. Arrays go through `Bcast` and `Reduce` (capital
letters), which send NumPy's memory as it is; other objects through `bcast` and `gather`, which pickle them.
"""

import argparse
import json
import os
import time

import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--neighbours", type=int, default=3)
parser.add_argument("--most", type=int, default=5000, help="images to learn from, and at most as many to classify")
args = parser.parse_args()

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()

# One rank reads the files; the others learn the shape of the arrays, make room, and receive them.
arrays = {}
if rank == 0:
    files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
    with np.load(next(filter(os.path.exists, files), files[0])) as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            array = archive[name][: args.most]
            arrays[name] = array.reshape(len(array), -1).astype(np.float32)
shapes = comm.bcast({name: array.shape for name, array in arrays.items()}, root=0)
for name, shape in shapes.items():
    arrays.setdefault(name, np.empty(shape, np.float32))
    comm.Bcast(arrays[name], root=0)

comm.Barrier()
began = time.time()
images, labels = arrays["x_train"], arrays["y_train"][:, 0].astype(int)
mine = slice(rank, None, size)  # every rank has its own images, all together have each image once
right = 0
for image, label in zip(arrays["x_test"][mine], arrays["y_test"][mine, 0]):
    nearest = np.argsort(((images - image) ** 2).sum(axis=1))[: args.neighbours]
    right += int(np.bincount(labels[nearest]).argmax() == int(label))

counts = np.array([right, len(arrays["x_test"][mine])], np.int64)
totals = np.zeros(2, np.int64)
comm.Reduce(counts, totals, op=MPI.SUM, root=0)
names = comm.gather(MPI.Get_processor_name(), root=0)
seconds = comm.reduce(time.time() - began, op=MPI.MAX, root=0)
if rank == 0:
    accuracy = totals[0] / totals[1]
    print(f"test accuracy {accuracy:.3f} of {totals[1]} images, by {size} ranks on {len(set(names))} nodes", flush=True)
    os.makedirs(args.output_dir, exist_ok=True)
    with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
        json.dump({"seconds": seconds, "images_per_second": int(totals[1]) / seconds, "accuracy": accuracy}, stream)
