"""The numerical proof that Horovod trains correctly in a candidate environment, as named checks with figures.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts, like `horovod_keras.py`.
It imports TensorFlow and Horovod, never `provision`, parses on Python 3.6, and writes one JSON report per process, which
it rewrites at each stage. It needs no data. `bench.py` says how a check compares, and is the course of the proof; the checks
are in `gradient_checks.py`, `keras_checks.py` and `graph_checks.py`. For PyTorch there is `thorough_torch.py`.

A check that this TensorFlow or Horovod cannot run is reported as skipped, with the reason. All ranks run the checks in
the same order. If a rank stops in the middle of a check, the others wait until the time limit of the launcher.

Works with TensorFlow 1.15 to 2.21, with Keras 2, tf-keras and Keras 3. On TensorFlow 1.15 the checks in graphs run
without version 2 behaviour, the others after `tf.compat.v1.enable_v2_behavior()`.
"""

import sys

import gradient_checks as gradients
import graph_checks as graphs
import keras_checks as keras
from bench import main
from tensorflow_bench import TensorFlowBench
from tensorflow_rank import join_horovod

# The checks in graphs come first: after a process has enabled version 2 behaviour, it no longer behaves like 1.15.
CHECKS = (
    ("graph", graphs.check_graph),
    ("keras_graph", graphs.check_keras_graph),
    ("tape", gradients.check_tape),
    ("fit", gradients.check_fit),
    ("loop", gradients.check_loop),
    ("ranks", gradients.check_ranks),
    ("training", gradients.check_training),
    ("broadcast", gradients.check_broadcast),
    ("metrics", keras.check_metrics),
    ("warmup", keras.check_warmup),
    ("schedule", keras.check_schedule),
    ("sync_batch_norm", keras.check_sync_batch_norm),
    ("load_model", keras.check_load_model),
    ("resume", keras.check_resume),
    ("checkpoint", keras.check_checkpoint),
    ("process_sets", gradients.check_process_sets),
    ("fp16", gradients.check_fp16),
    ("grouped", gradients.check_grouped),
    ("accumulation", gradients.check_accumulation),
    ("local_layers", gradients.check_local_layers),
    ("elastic", keras.check_elastic),
    ("loss_scale", gradients.check_loss_scale),
    ("refusals", gradients.check_refusals),
)


def make_bench(args, report):
    """Join the ranks of Horovod."""
    np, tf, hvd = join_horovod(report, args.gpu)
    import horovod.tensorflow.keras as hvd_keras

    return TensorFlowBench(np, tf, hvd, hvd_keras, args.seed, report)


if __name__ == "__main__":
    sys.exit(main(CHECKS, make_bench))
