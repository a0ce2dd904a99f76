"""The training script against the TensorFlow that the job loads, where a module's name tells which one that is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.versions import release
from provision.launch.rank_threads import INTER, INTRA
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault
from provision.lint.training import Training

# `tensorflow/2.15.1`, `TensorFlow/2.2.0-fosscuda-2019b`, `tensorflow/intel-1.15.0-py37`, `datascience/tensorflow-1.10`,
# `Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0`.
TENSORFLOW_MODULE = re.compile(r"tensorflow[/-](?:intel-)?(\d+\.\d+[\d.]*)", re.IGNORECASE)


def tensorflow_of(script: JobScript) -> tuple[str, tuple[int, ...], bool] | None:
    """The module by which a job has TensorFlow, its version, and whether Keras 2 comes as tf-keras; None: no name tells."""
    for _, name in script.modules():
        found = TENSORFLOW_MODULE.search(name)
        if found:
            legacy = script.variables.get("TF_USE_LEGACY_KERAS", ("", 0, False))[0]
            return name, release(found[1]), "tf-keras" in name or legacy in ("1", "true", "True")
    return None


def at_version(script: JobScript, training: Training) -> Iterator[Finding]:
    """What does not work with this TensorFlow, and readers that take the threads of the computation."""
    if training.needs.reads is not None and INTER in script.variables:
        line, reads = training.needs.reads
        value, number, _ = script.variables[INTER]
        if value.isdigit() and reads > 1 and int(value) < reads:
            yield fault(
                script,
                "parallel-reads",
                (number, f"{INTER}={value}"),
                f"{reads} parallel reads (line {line} of `{training.file}`) are {reads} threads more of this pool",
                f"`{INTER}={int(value) + reads}` with an {INTRA} that leaves them room, or `num_parallel_reads={value}`",
            )
    loaded = tensorflow_of(script)
    if loaded is None:
        return
    module, version, tf_keras = loaded
    needs = training.needs

    def finding(rule: str, line: int, message: str, fix: str) -> Finding:
        shown = f"`{module}` is loaded"
        return Finding(rule=rule, file=training.file, line=line, message=message, evidence=shown, fix=fix)

    if needs.old_name is not None and version >= (2,):
        line, name = needs.old_name
        yield finding(
            rule="tf1-names",
            line=line,
            message=f"`{name}` is TensorFlow 1's, and not in {version[0]}.{version[1]}",
            fix="`import tensorflow.compat.v1 as tf`, then `tf.disable_v2_behavior()`",
        )
    if needs.eager_placeholder is not None and version >= (2,):
        yield finding(
            rule="tf1-eager",
            line=needs.eager_placeholder,
            message="TensorFlow 2 runs eagerly, and a placeholder is for graphs: `RuntimeError`",
            fix="`tf.compat.v1.disable_v2_behavior()` behind the imports, or `with tf.Graph().as_default():`",
        )
    if needs.run_function is not None and version >= (2, 16) and not tf_keras:
        yield finding(
            rule="run-tf-function",
            line=needs.run_function,
            message="Keras 3 does not know `experimental_run_tf_function`: `TypeError`",
            fix="leave it out; from TensorFlow 2.2 on it does nothing",
        )
    if needs.compiles is not None and training.horovod and (2,) <= version < (2, 2):
        yield finding(
            rule="run-tf-function",
            line=needs.compiles,
            message="Keras of TensorFlow 2.0 and 2.1 goes round Horovod's optimizer: ranks train on their own",
            fix="`experimental_run_tf_function=False` in `compile`",
        )
