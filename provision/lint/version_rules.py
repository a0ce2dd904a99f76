"""The rules about the TensorFlow version of the job, which is read from the names of the loaded modules."""

from __future__ import annotations

from collections.abc import Iterator

from provision.knowledge.tensorflow_modules import tensorflow_module
from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault
from provision.lint.training import Training


def tensorflow_of(script: JobScript) -> tuple[str, tuple[int, ...], bool] | None:
    """The module or environment with TensorFlow, its version, and whether Keras is tf-keras; None if no name gives a version."""
    activated = [
        script.filled(command.words[1])
        for command in script.commands
        if command.name in ("source", ".") and len(command.words) > 1
    ]
    found = tensorflow_module((*(name for _, name in script.modules()), *activated))
    if found is None:
        return None
    name, version = found
    legacy = script.variables.get("TF_USE_LEGACY_KERAS", ("", 0, False))[0]
    return name, version, "tf-keras" in name or legacy in ("1", "true", "True")


def check_versions(script: JobScript, training: Training) -> Iterator[Finding]:
    """The faults of a training script with this TensorFlow, and parallel reads that need more threads."""
    if training.needs.reads is not None and INTER in script.variables:
        line, reads = training.needs.reads
        value, number, _ = script.variables[INTER]
        threads = whole_number(value)
        if threads is not None and reads > 1 and threads < reads:
            yield fault(
                script,
                "parallel-reads",
                (number, f"{INTER}={value}"),
                f"the {reads} parallel reads in line {line} of `{training.file}` need {reads} more threads of this pool",
                f"set `{INTER}={threads + reads}` and lower {INTRA}, or set `num_parallel_reads={value}`",
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
            message=f"`{name}` is a name of TensorFlow 1, which {version[0]}.{version[1]} does not have",
            fix="`import tensorflow.compat.v1 as tf`, then `tf.disable_v2_behavior()`",
        )
    if needs.eager_placeholder is not None and version >= (2,):
        yield finding(
            rule="tf1-eager",
            line=needs.eager_placeholder,
            message="a placeholder needs a graph, but TensorFlow 2 runs eagerly: `RuntimeError`",
            fix="`tf.compat.v1.disable_v2_behavior()` after the imports, or `with tf.Graph().as_default():`",
        )
    if needs.run_function is not None and version >= (2, 16) and not tf_keras:
        yield finding(
            rule="run-tf-function",
            line=needs.run_function,
            message="Keras 3 does not know `experimental_run_tf_function`: `TypeError`",
            fix="remove it; from TensorFlow 2.2 on it has no effect",
        )
    if needs.compiles is not None and training.horovod and (2,) <= version < (2, 2):
        yield finding(
            rule="run-tf-function",
            line=needs.compiles,
            message="Keras of TensorFlow 2.0 and 2.1 bypasses Horovod's optimizer, so each rank trains alone",
            fix="pass `experimental_run_tf_function=False` to `compile`",
        )
    for line, name, ending in needs.names if version >= (2, 16) and not tf_keras else ():
        yield finding(
            rule="keras-3-names",
            line=line,
            message=f"Keras 3 refuses the name `{name}`: `ValueError`",
            fix=f"let the name end in `{ending}`"
            + ("; for a folder in the format of TensorFlow use `model.export(…)`" if ending == ".keras" else ""),
        )
    if needs.multiworker is not None and version < (2, 4):
        yield finding(
            rule="multiworker-version",
            line=needs.multiworker,
            message="`tf.distribute.MultiWorkerMirroredStrategy` came with TensorFlow 2.4: `AttributeError`",
            fix="`tf.distribute.experimental.MultiWorkerMirroredStrategy` (from 2.0 on), or a newer TensorFlow",
        )
    if needs.multiworker_fit is not None and version >= (2, 16) and not tf_keras:
        yield finding(
            rule="multiworker-keras-3",
            line=needs.multiworker_fit,
            message="`fit` of Keras 3 fails under MultiWorkerMirroredStrategy",
            fix="a module with tf-keras and `export TF_USE_LEGACY_KERAS=1`, or your own loop with `strategy.run`",
        )
