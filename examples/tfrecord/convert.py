"""Converts mnist.npz or digits.npz to TFRecord files, once, before the job.

    python convert.py data records

A file system of a cluster reads a few large files well and many small files badly. The number of files should be a
multiple of the number of ranks, so that each rank reads its own files.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

SOURCE, FOLDER, FILES = sys.argv[1], sys.argv[2], 16


def feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


sources = [os.path.join(SOURCE, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, sources), sources[0])) as archive:
    images, labels = archive["x_train"], archive["y_train"]
    test_images, test_labels = archive["x_test"], archive["y_test"]
order = np.random.RandomState(1).permutation(len(images))  # once here: shuffling later sees a part of the data only
os.makedirs(FOLDER)
for number in range(FILES):
    path = os.path.join(FOLDER, f"train-{number:04d}-of-{FILES:04d}.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for index in order[number::FILES]:
            features = {"image": feature(images[index].tobytes()), "label": feature(bytes([int(labels[index])]))}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
np.savez(os.path.join(FOLDER, "test.npz"), images=test_images, labels=test_labels)
with open(os.path.join(FOLDER, "train.json"), "w") as stream:
    json.dump({"records": len(images), "shape": images.shape[1:]}, stream)
