"""The numerical proof that Horovod trains correctly in a candidate environment, as named checks with figures.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts, like `horovod_keras.py`.
It imports TensorFlow and Horovod, never `provision`, parses on Python 3.6, and writes one JSON report per process, which
it rewrites at each stage. It needs no data. `bench.py` says how a check compares; the checks are in `gradient_checks.py`,
`keras_checks.py` and `graph_checks.py`.

A check that this TensorFlow or Horovod cannot run is reported as skipped, with the reason. All ranks run the checks in
the same order. If a rank stops in the middle of a check, the others wait until the time limit of the launcher.

Works with TensorFlow 1.15 to 2.21, with Keras 2, tf-keras and Keras 3. On TensorFlow 1.15 the checks in graphs run
without version 2 behaviour, the others after `tf.compat.v1.enable_v2_behavior()`.
"""

import argparse
import os
import shutil
import sys
import time
import traceback

import gradient_checks as gradients
import graph_checks as graphs
import keras_checks as keras
from bench import Bench, Skip
from rank import add_gpu_argument, run, seconds_since_start
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

IN_GRAPHS = (graphs.check_graph, graphs.check_keras_graph)


def parse_args(argv=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Prove by numbers that Horovod averages gradients; write one JSON report per process.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the reports; should be empty")
    parser.add_argument("--seed", type=int, default=1)
    add_gpu_argument(parser)
    parser.add_argument("--only", action="append", metavar="CHECK", help="run only this check; may be repeated")
    return parser.parse_args(argv)


def run_check(bench, function):
    """Run one check and return its record."""
    started = time.time()
    bench.figures = []
    record = {"proves": function.__doc__.strip(), "status": "passed", "reason": None}
    try:
        function(bench)
    except Skip as skip:
        record.update(status="skipped", reason=str(skip))
    except Exception as error:
        record.update(
            status="failed", reason="{}: {}".format(type(error).__name__, error), traceback=traceback.format_exc()
        )
    if any(not figure["passed"] for figure in bench.figures):
        record["status"] = "failed"
        wrong = [figure["what"] for figure in bench.figures if not figure["passed"]]
        record["reason"] = record["reason"] or "wrong: " + ", ".join(wrong)
    record.update(figures=bench.figures, seconds=round(time.time() - started, 3))
    return record


def prove(args, report):
    """The whole proof, from the imports to the finished report; returns the number of failed checks."""
    fields = report.fields
    fields["checks"] = {}
    os.environ.setdefault("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    # If a rank stops in the middle of a check, the others must not wait for ever.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30")
    np, tf, hvd = join_horovod(report, args.gpu)
    fields["start_seconds"] = seconds_since_start()
    import horovod.tensorflow.keras as hvd_keras

    bench = Bench(np, tf, hvd, hvd_keras, args.seed, report)
    try:
        for name, function in CHECKS:
            if args.only and name not in args.only:
                continue
            if function not in IN_GRAPHS:
                bench.behave_as_2()
            report.stage("check " + name)
            record = fields["checks"][name] = run_check(bench, function)
            if bench.rank == 0:
                differences = [figure["difference"] for figure in bench.figures if "difference" in figure]
                worst = "  worst difference {:.1e}".format(max(differences)) if differences else ""
                reason = "  " + record["reason"] if record["reason"] else ""
                print("{:<16} {:<8} {:6.1f} s{}{}".format(name, record["status"], record["seconds"], worst, reason))
                sys.stdout.flush()
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)
    failed = [name for name, record in fields["checks"].items() if record["status"] == "failed"]
    fields["failed"] = failed
    report.stage("done")
    return len(failed)


def main(argv=None):
    """Run the proof; the exit code is 0 or 1."""
    args = parse_args(argv)
    return run("the proof", args.out, lambda report: prove(args, report))


if __name__ == "__main__":
    sys.exit(main())
