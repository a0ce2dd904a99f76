"""TensorFlow 2.15.1, the last of Keras 2, for real through Slurm and Lmod: built by sbatch, proved on two nodes, used by jobs.

The cluster is emulated (several slurmd on one machine); all else is real. The ways in which such a build can go wrong are in
`test_build_slurm.py`, with small packages.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from parts.examples import Place
from parts.fetched_data import found_by
from parts.fixtures import share
from parts.modules import LMOD, ModuleTree, needed
from parts.provision import Tool, messages_of, real_modules, site_file
from parts.slurm import SlurmCluster

pytestmark = [pytest.mark.real, pytest.mark.slurm]

MODULE = "tensorflow/2.15.1"


@dataclass(frozen=True)
class Cluster:
    """The example site: its Slurm, its modules, and the tool with the variables of a login shell there."""

    slurm: SlurmCluster
    tree: ModuleTree
    tool: Tool
    folder: Path
    site: str

    def user_job(self, body: str, *options: str) -> str:
        """Run a job script that a user wrote; returns its output."""
        out = self.folder / f"user-{time.monotonic_ns()}.out"
        script, words = f"#!/bin/bash\nset -eo pipefail\n{body}\n", ("sbatch", "--parsable", f"--output={out}")
        job = self.slurm.run(*words, *options, stdin=script, environ=self.tool.env()).stdout.strip()
        state = self.slurm.wait(job, timeout_s=600)
        assert state == "COMPLETED", out.read_text()
        return out.read_text()


@pytest.fixture(scope="module")
def cluster(
    slurm_cluster: SlurmCluster, module_tree: ModuleTree, shared_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """The site, for which everything was fetched."""
    folder = tmp_path_factory.mktemp("tensorflow")
    environ = {**slurm_cluster.environ, **share(folder / "root", shared_cache), "EXAMPLE_SITE": str(module_tree.root)}
    init = ("/usr/share/lmod/lmod/init/bash", str(needed(LMOD).init))
    site = site_file(folder, "example-slurm", *real_modules(module_tree), init, name="site-lmod")
    tool = Tool(folder / "root", environ)
    tool.good("fetch", "--site", site, "--arch", "knl")
    yield Cluster(slurm=slurm_cluster, tree=module_tree, tool=tool, folder=folder, site=site)
    shutil.rmtree(folder, ignore_errors=True)  # environments are large


@pytest.fixture(scope="module")
def knl(cluster: Cluster) -> Path:
    """The prefix of knl, built by a script that was written to a file and given to sbatch."""
    script = cluster.tool.good("job", "build", "--site", cluster.site, "--arch", "knl")
    job = cluster.slurm.submit(script)
    state = cluster.slurm.wait(job, timeout_s=900)
    said = next((cluster.tool.root / "jobs").glob(f"*/*-{job}.out")).read_text()
    assert state == "COMPLETED", said
    assert "publish: done" in said and "2 ranks on 2 nodes" in said
    return Path(cluster.tool.json("show", f"knl/{MODULE}", "--site", cluster.site)["result"]["prefix"])


def test_sbatch_builds_proves_and_publishes_against_the_mpi_of_the_site(cluster: Cluster, knl: Path) -> None:
    record = cluster.tool.json("show", f"knl/{MODULE}", "--site", cluster.site)["result"]
    assert record["modules"] == [cluster.tree.gcc, cluster.tree.mpich, cluster.tree.python]
    linked = next(check for check in record["checks"] if check["name"] == "linked MPI")
    assert "libmpich.so.12" in linked["message"]
    verdict = record["verdict"]
    assert verdict["passed"] and len(verdict["figures"]["hosts"]) == 2
    assert verdict["figures"]["versions"]["tensorflow"] == "2.15.1"


def test_a_user_trains_on_two_nodes_from_the_published_module(cluster: Cluster, knl: Path) -> None:
    """A user's own job script: module load, srun."""
    out = cluster.user_job(
        f"""
        source {needed(LMOD).init}
        export MODULEPATH={cluster.tree.modulepath}
        module use {cluster.tool.root}/modules/knl/lua
        module load {MODULE}
        cat >train.py <<'PY'
import numpy as np, tensorflow as tf, horovod.tensorflow.keras as hvd
hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())), "mse")
data = np.random.RandomState(hvd.rank()).rand(64, 4)
model.fit(data, data.sum(1), epochs=2, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
gathered = hvd.allgather(model.get_weights()[0].reshape(1, 4)).numpy()
print("rank", hvd.rank(), "of", hvd.size(), "agree" if (gathered == gathered[0]).all() else "differ", flush=True)
PY
        srun --mpi=pmi2 --nodes=2 --ntasks=2 python train.py
        """,
        *("--partition=knl", "--nodes=2", "--ntasks-per-node=1", f"--chdir={cluster.folder}"),
    )
    assert sorted(line for line in out.splitlines() if line.startswith("rank")) == [
        "rank 0 of 2 agree",
        "rank 1 of 2 agree",
    ]


@pytest.mark.long
def test_the_examples_of_keras_train_and_continue_by_jobs_on_the_last_keras_2(
    cluster: Cluster, knl: Path, tmp_path: Path
) -> None:
    """The published module, started by srun on two nodes."""
    words = ("--site", cluster.site, "--arch", "knl")
    place = Place(slurm=cluster.slurm, tool=cluster.tool, folder=tmp_path, job_options=words, python=knl / "bin/python")
    for name, again in (
        *(("single", ""), ("mirrored", ""), ("tfrecord", ""), ("graph-horovod", "")),
        *(("horovod-keras", "requeue"), ("horovod-loop", "resume")),
    ):
        place.check(name, again=again)


def test_keras_2_finds_what_was_fetched(cluster: Cluster, knl: Path, tmp_path: Path) -> None:
    assert found_by(knl / "bin/python", tmp_path / "data", keras_home=True) == ["digits", "batch", "weights"]


@pytest.mark.long
def test_the_last_tensorflow_of_keras_2_is_proved_by_numbers_through_srun(cluster: Cluster, knl: Path) -> None:
    """The numerical proof, in a job on two nodes, of the environment of this file."""
    found = cluster.folder / "numbers.json"
    words = ("test", f"knl/{MODULE}", "--site", cluster.site, "--thorough", "--json")
    cluster.user_job(
        f"{shlex.join(cluster.tool.argv(*words))} >{found}",
        *("--partition=knl", "--nodes=2", "--ntasks-per-node=1", f"--chdir={cluster.folder}"),
    )
    said = messages_of(json.loads(found.read_text()))
    for name in ("tape", "fit", "training"):
        assert said[name].startswith("passed on 2 ranks, worst difference")
