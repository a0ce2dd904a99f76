"""`provision job KIND --script`: the training script is linted before the job is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.examples import PROGRAMS
from provision.errors import EXIT_USAGE

Captured = pytest.CaptureFixture[str]
SAGA = ("--site", "sigma2-saga", "--arch", "normal", "--account", "tests")
WRONG = """\
import horovod.tensorflow.keras as hvd
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), loss="mse")
model.fit([1.0], [1.0])
"""


def test_a_script_with_errors_is_refused_unless_the_user_knows_better(
    tmp_path: Path, capsys: Captured, words: Words
) -> None:
    train = tmp_path / "train.py"
    train.write_text(WRONG)
    command = ("job", "horovod", *SAGA, "--script", str(train))
    assert call(*command) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert f"`{train}`" in err.splitlines()[0]
    words("job", err.splitlines()[0])
    assert "horovod-not-initialised" in err
    assert "`--no-lint`" in err.splitlines()[-1]
    assert call(*command, "--json") == EXIT_USAGE
    error = envelope(capsys)["error"]
    assert (error["kind"], error["checked"]["training"]) == ("lint", str(train))
    assert ("horovod-not-initialised", "error") in {(one["rule"], one["weight"]) for one in error["findings"]}
    assert call(*command, "--no-lint") == 0
    assert capsys.readouterr().out.startswith("#!/usr/bin/env bash\n")


def test_warnings_are_printed_and_the_job_is_written(tmp_path: Path, capsys: Captured) -> None:
    train = tmp_path / "train.py"
    train.write_text("import tensorflow as tf\nopen('/tmp/out/log', 'w').write(str(tf.constant(1)))\n")
    assert call("job", "single", *SAGA, "--script", str(train)) == 0
    out, err = capsys.readouterr()
    assert out.startswith("#!/usr/bin/env bash\n")
    assert "node-local-output" in err
    assert "threads-unread" not in err  # the thread numbers are those that we wrote
    assert "fix:" in err


def test_a_job_without_gpus_is_linted_for_the_nodes_that_it_gets(tmp_path: Path, capsys: Captured) -> None:
    train = tmp_path / "train.py"
    train.write_text(PROGRAMS["single/train.py"])
    words = ("job", "single", "--site", "sigma2-saga", "--arch", "accel", "--account", "tests", "--no-gpu")
    assert call(*words, "--script", str(train)) == 0
    out, err = capsys.readouterr()
    assert "--cpus-per-task=1 " in out
    assert "--partition=normal" in out
    assert err == ""
