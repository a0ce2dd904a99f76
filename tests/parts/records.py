"""A record of an environment that passed its proof, for tests that need one on the disk or as a value."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from provision.machine.root.store import Store
from provision.model.check import Check
from provision.model.layout import EnvironmentId, Layout
from provision.model.plan import Description, Modulefile
from provision.model.record import Receipt, Record
from provision.model.verdict import Figures, ProofResult, Verdict
from provision.planning import publication as planning

ENVIRONMENT = EnvironmentId("knl", "tensorflow", "2.15.1", "0123456789")
PREFIX = "/site/root/envs/knl/tensorflow/2.15.1-0123456789"

FIGURES = Figures(
    ranks=2,
    hosts=("n1",),
    gpus=0,
    accuracy=0.95,
    loss_before=2.3,
    loss_last=0.2,
    images_per_second=1234.5,
    seconds=12.5,
    versions={"tensorflow": "2.15.1"},
    weights_sha256="ab" * 32,
)
PROOF = ProofResult(
    verdict=Verdict(
        checks=(
            Check(name="reports", passed=True, message="2 of 2 processes finished without an error"),
            Check(name="weights", passed=True, message="all ranks hold the weights abababababab", figure=0.0),
        ),
        figures=FIGURES,
    ),
    data="digits",
    trained_by="2 ranks",
    command=("mpiexec", "-n", "2", "python"),
    modules=("gcc/12.2.0", "mpich/4.0.2", "tensorflow/2.15.1"),
    seconds=12.5,
    date="2026-11-22",
)


DESCRIPTION = Description(
    site="cluster",
    stack="tensorflow-2.15.1",
    wheel="horovod-0.28.1-abc",
    modulefile=Modulefile(
        name="tensorflow",
        version="2.15.1",
        summary="TensorFlow 2.15.1 with Horovod 0.28.1",
        environment=str(ENVIRONMENT),
        prefix=PREFIX,
        modules=(),
        prepend=(("PATH", f"{PREFIX}/bin"),),
        environ=(("VIRTUAL_ENV", PREFIX), ("PROVISION_ENVIRONMENT", str(ENVIRONMENT))),
        facts=(("python", "3.11.7"),),
        packages=(("horovod", "0.28.1"), ("keras", "2.15.0")),
    ),
)


def make_record(**changes: Any) -> Record:
    """A record, with these values in place of its own."""
    good = Record(
        environment=str(ENVIRONMENT),
        site="cluster",
        stack="tensorflow-2.15.1",
        module="tensorflow/2.15.1",
        prefix=PREFIX,
        modules=("gcc/12.2.0", "mpich/4.0.2"),
        identity={"python": "3.11.7", "module environment": "OMP_NUM_THREADS=68"},
        wheel="horovod-0.28.1-abc",
        versions={"tensorflow": "2.15.1"},
        checks=(Check(name="imports", passed=True, message="TensorFlow and Horovod import"),),
        seconds={"create": 1.5, "proof": 12.5},
        verdict=PROOF,
        proof=PROOF.summary,
        built="2026-11-22T01:02:03+00:00",
        host="n1",
        job="42",
        provision="0.1.0",
    )
    return dataclasses.replace(good, **changes)


def store_here() -> Store:
    """The store below `PROVISION_ROOT`, a folder of the test's own."""
    return Store(Layout(PurePosixPath(os.environ["PROVISION_ROOT"])))


def put_published(store: Store, **changes: Any) -> Record:
    """An environment in this store that looks as if it was built, proved and published; its packages are not there."""
    record = make_record(**changes)
    env = EnvironmentId.parse(record.environment)
    record = dataclasses.replace(record, prefix=str(store.layout.prefix(env)))
    records = Path(store.layout.records_folder(env))
    records.mkdir(parents=True)
    (records / "record.json").write_text(json.dumps(record.to_dict()))
    (records / "activate.sh").write_text("export PROVISION_ENVIRONMENT=x\n")
    for step in ("create", "proof"):
        store.write_receipt(env, Receipt(step=step, seconds=1.5, host="n1"))
    (records / "description.json").write_text(json.dumps(DESCRIPTION.to_dict()))
    publish(store, env, {f"lua/{record.module}.lua": "-- a modulefile\n"})
    return record


def load(record: Record, virtual_env: str, patch: pytest.MonkeyPatch) -> None:
    """Let this process be a shell that has loaded the environment, or a venv on it."""
    patch.setenv("PROVISION_ENVIRONMENT", record.environment)
    patch.setenv("VIRTUAL_ENV", virtual_env)
    patch.setenv("LOADEDMODULES", ":".join(record.verdict.modules or record.modules))
    patch.setenv("PATH", f"{virtual_env}/bin:{os.environ['PATH']}")
    for word in shlex.split(record.identity.get("module environment", "")):
        name, _, value = word.partition("=")
        patch.setenv(name, value)


def publish(store: Store, env: EnvironmentId, files: Mapping[str, str]) -> None:
    """Let users load this environment by these modulefiles."""
    store.generations.change(
        env.arch, lambda now: planning.publish(now, env, planning.Marks()), lambda before, after: files
    )
