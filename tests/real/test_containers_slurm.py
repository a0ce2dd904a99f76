"""Greene's container jobs under a real Slurm with its nodes emulated: the overlay is made, and jobs run on it.

Named stand-ins (`parts/containers.py`): singularity, Miniforge's installer, TensorFlow and the packages that build others,
and `module`. The installs are pip's own, by hash; the overlay is a real ext3 image.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parts.containers import TENSORFLOW, container_program, installer, lock_of_wheels, no_namespaces, template
from parts.jobs import EXPORTED_MODULE, render_user_job
from parts.profiles import profile
from parts.slurm import NodeGroup, Partition, SlurmCluster
from parts.tiny import make_wheel
from provision.jobs.overlay_job import OverlayJob
from provision.jobs.user_job import UserJob
from provision.knowledge import miniforge
from provision.machine.submission.render_jobs import render_overlay_job
from provision.model.lock import Lock
from provision.model.requirements_file import read_requirements
from provision.profile.container import Template
from provision.profile.site import Site
from provision.profile.stack import Framework
from provision.profile.strategy import StrategyName

pytestmark = pytest.mark.slurm

MODULE = {**EXPORTED_MODULE, "BASH_FUNC_which%%": "() { /no/such/which; }"}
TRAIN = """\
import json, os, sys
import tensorflow
out = os.environ["PROVISION_OUTPUT"]
seen = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "PROVISION_REPLICAS", "OMP_NUM_THREADS")}
seen["python"], seen["words"], seen["tensorflow"] = sys.executable, sys.argv[1:], tensorflow.__version__
seen["nv"] = os.path.exists("/.singularity.d/libs/libcuda.so.1")
try:
    open("/ext3/written", "w")
except OSError as error:
    seen["writing"] = error.strerror
with open(os.path.join(out, "seen.json"), "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """Nodes of Greene: with four GPUs, and without."""
    if reason := no_namespaces():
        pytest.skip(reason)
    groups = (
        NodeGroup(name="gv", cpus=48, memory_mb=384 * 1024, gres={"gpu:4": "/dev/tty[1-4]"}),
        NodeGroup(name="cm", count=1, cpus=48, memory_mb=192 * 1024),
    )
    with SlurmCluster(node_groups=groups, partitions=(Partition(name="all", groups=("gv", "cm")),)) as one:
        yield one


@dataclasses.dataclass
class Greene:
    """Greene with its paths below a folder, and what its overlay is made of."""

    cluster: SlurmCluster
    folder: Path
    site: Site
    lock: Lock
    made_by: miniforge.Miniforge

    @property
    def overlay(self) -> Path:
        """Where the overlay is once it is made."""
        return self.folder / "scratch/env/tensorflow.ext3"

    def submit(self, name: str, text: str, **environ: str) -> str:
        """Submit a script of this text; its output goes to the folder."""
        (self.folder / f"{name}.sh").write_text(text)
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        more = {
            **MODULE,
            "HOME": str(home),
            "SCRATCH": str(self.folder / "scratch"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.folder / "wheels"),
            **environ,
        }
        return self.cluster.run("sbatch", "--parsable", f"{name}.sh", cwd=self.folder, environ=more).stdout.strip()

    def end(self, state: str, number: str) -> str:
        """See a job end in this state; what it said."""
        ended = self.cluster.wait(number, timeout_s=180)
        (path,) = self.folder.glob(f"*-{number}.out")
        said = path.read_text()
        assert ended == state, said
        return said

    def overlay_script(self, **changes: Any) -> str:
        """The job that makes the overlay."""
        asked = OverlayJob(
            site=self.site,
            arch=self.site.arch("gpu"),
            command="a test",
            framework=Framework(name="tensorflow", package="tensorflow", version="2.15.1"),
            lock=self.lock,
            miniforge=self.made_by,
        )
        return render_overlay_job(dataclasses.replace(asked, **changes))

    def job(self, kind: StrategyName, **more: Any) -> str:
        """A user's job."""
        asked = UserJob(
            kind=kind,
            site=self.site,
            arch=self.site.arch("gpu"),
            command="a test",
            module="tensorflow/2.15.1",
            modulepath="/site/modules",
            runtime="container",
            **more,
        )
        return render_user_job(asked)

    def seen(self, number: str) -> dict[str, Any]:
        """What the training script of a job wrote down."""
        found: dict[str, Any] = json.loads((self.folder / f"scratch/runs/{number}/seen.json").read_text())
        return found


def make_greene(cluster: SlurmCluster, folder: Path, patch: pytest.MonkeyPatch) -> Greene:
    """Greene below a folder, with no overlay yet."""
    container_program("singularity", folder)
    (folder / "image.sif").touch()
    (folder / "train.py").write_text(TRAIN)
    found = template(folder / "overlay-10GB-400K.ext3.gz")
    patch.setattr(miniforge, "URL", f"file://{folder}/miniforge.sh")
    made_by = miniforge.Miniforge(
        version="stand-in", python="3.11", sha256={"x86_64": installer(folder / "miniforge.sh")}
    )
    wheels = folder / "wheels"
    wheels.mkdir()
    lock = lock_of_wheels(
        folder / "lock.txt",
        make_wheel(wheels, "tensorflow", "2.15.1", {"tensorflow/__init__.py": TENSORFLOW}),
        make_wheel(wheels, "setuptools", "80.10.2", {"setuptools/__init__.py": ""}),
    )
    site = profile("nyu-greene")
    assert site.container is not None
    container = dataclasses.replace(
        site.container,
        image=str(folder / "image.sif"),
        overlay="$SCRATCH/env/tensorflow.ext3",
        overlay_templates=(Template(gb=10, files=400_000, path=str(found)),),
    )
    files = dataclasses.replace(site.files, scratch="$SCRATCH")
    return Greene(
        cluster=cluster,
        folder=folder,
        site=dataclasses.replace(site, container=container, files=files),
        lock=lock,
        made_by=made_by,
    )


@pytest.fixture
def greene(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Greene:
    """Greene, with no overlay yet."""
    return make_greene(cluster, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def equipped(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Greene]:
    """Greene with its overlay, which no test writes to."""
    with pytest.MonkeyPatch.context() as patch:
        greene = make_greene(cluster, tmp_path_factory.mktemp("greene"), patch)
        said = greene.end("COMPLETED", greene.submit("overlay", greene.overlay_script()))
        assert "TensorFlow 2.15.1 on Python" in said
        assert said.endswith(f"made: {greene.overlay}\n")
        names = sorted(path.name for path in greene.overlay.parent.iterdir())
        assert names == [f"packages-{greene.lock.sha256[:12]}", "tensorflow.ext3"], "nothing half-made stays"
        yield greene


def test_an_overlay_is_made_once_and_jobs_of_one_and_four_gpus_run_on_it_read_only(equipped: Greene) -> None:
    greene = equipped
    assert "already exists; move it away" in greene.end("FAILED", greene.submit("overlay", greene.overlay_script()))

    number = greene.submit("single", greene.job("single", arguments=("--say", "it's $x")))
    greene.end("COMPLETED", number)
    one = greene.seen(number)
    assert one["python"] == "/ext3/tensorflow/bin/python"
    assert (one["tensorflow"], one["words"]) == ("2.15.1", ["--say", "it's $x"])
    assert (one["nv"], one["writing"], one["OMP_NUM_THREADS"]) == (True, "Read-only file system", "8")
    assert len(one["CUDA_VISIBLE_DEVICES"].split(",")) == 1

    number = greene.submit("mirrored", greene.job("mirrored"))
    greene.end("COMPLETED", number)
    one = greene.seen(number)
    assert (one["PROVISION_REPLICAS"], len(one["CUDA_VISIBLE_DEVICES"].split(","))) == ("4", 4)


def test_own_packages_are_added_in_a_second_overlay_and_the_first_stays_as_it_is(equipped: Greene) -> None:
    greene = equipped
    before = greene.overlay.read_bytes()
    wheels = greene.folder / "wheels"
    extra = make_wheel(
        wheels, "extra", "1.0", {"extra/__init__.py": "import helper\n"}, "helper>=2", "tensorflow>=2.15"
    )
    make_wheel(wheels, "helper", "1.0", {"helper/__init__.py": ""})
    helper = make_wheel(wheels, "helper", "2.0", {"helper/__init__.py": "import tensorflow\n"})
    make_wheel(wheels, "clash", "1.0", {"clash/__init__.py": ""}, "tensorflow<2")
    path, own = greene.folder / "own.txt", greene.overlay.with_name("own.ext3")

    def script(text: str) -> str:
        path.write_text(text)
        requirements = read_requirements(text, str(path), greene.lock, "3.11")
        return greene.overlay_script(requirements=requirements, path="$SCRATCH/env/own.ext3", gb=1, files=1000)

    said = greene.end("FAILED", greene.submit("clash", script("clash")))
    assert "clash 1.0 depends on tensorflow<2" in said
    assert "tensorflow==2.15.1" in said
    assert "error: pip cannot add the packages of" in said
    assert not own.exists()

    wrong = f"extra==1.0 --hash=sha256:{'0' * 64}"
    said = greene.end("FAILED", greene.submit("hash", script(wrong)))
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in said

    first, second = (hashlib.sha256(one.read_bytes()).hexdigest() for one in (extra, helper))
    text = f"extra==1.0 --hash=sha256:{first}\nhelper==2.0 --hash=sha256:{second}\n"
    said = greene.end("COMPLETED", greene.submit("own", script(text)))
    assert "added: extra==1.0\nadded: helper==2.0\n" in said
    assert "added: tensorflow" not in said
    assert said.endswith(f"use it: provision job KIND --overlay {own}\n")
    assert greene.overlay.read_bytes() == before

    (greene.folder / "with_extra.py").write_text(
        "import extra, helper, tensorflow\nprint(tensorflow.__file__, extra.__file__)\n"
    )
    words = {"script": "with_extra.py"}
    said = greene.end("COMPLETED", greene.submit("job", greene.job("single", overlays=(str(own),), **words)))
    assert "/ext3/tensorflow/lib/python3.11/site-packages/extra/__init__.py" in said
    assert "No module named 'extra'" in greene.end("FAILED", greene.submit("alone", greene.job("single", **words)))

    said = greene.end("FAILED", greene.submit("horovod", greene.job("horovod", overlays=(str(own),))))
    assert "error: the container has no Horovod for TensorFlow or PyTorch" in said
    said = greene.end("FAILED", greene.submit("ddp", greene.job("ddp", overlays=(str(own),))))
    assert "error: the container has no PyTorch" in said


def test_what_is_not_what_was_asked_for_gets_no_name(greene: Greene) -> None:
    bad = Framework(name="tensorflow", package="tensorflow", version="2.15.0")
    said = greene.end("FAILED", greene.submit("overlay", greene.overlay_script(framework=bad)))
    assert "error: TensorFlow 2.15.0 was requested" in said
    assert not greene.overlay.exists()
    other = dataclasses.replace(greene.made_by, sha256={"x86_64": "0" * 64})
    (packages,) = greene.overlay.parent.iterdir()
    packages.rename(greene.folder / "away")
    said = greene.end("FAILED", greene.submit("overlay", greene.overlay_script(miniforge=other)))
    assert "the downloaded file is not the released Miniforge stand-in" in said
    assert list(greene.overlay.parent.iterdir()) == [], "neither packages nor a beginning of an overlay"


def test_where_jobs_have_no_network_they_say_where_to_fetch_and_go_on_with_what_was_fetched(greene: Greene) -> None:
    network = dataclasses.replace(greene.site.network, compute="no")
    site = dataclasses.replace(greene.site, network=network)
    text = greene.overlay_script(site=site)
    said = greene.end("FAILED", greene.submit("overlay", text))
    assert "and this node has no network; first run on gdtn (ssh gdtn): bash FILE fetch" in said
    assert not greene.overlay.parent.exists()
    environ = {**os.environ, "SCRATCH": str(greene.folder / "scratch"), "PIP_NO_INDEX": "1"}
    environ["PIP_FIND_LINKS"] = str(greene.folder / "wheels")
    words = ["bash", str(greene.folder / "overlay.sh"), "fetch"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (greene.folder / "miniforge.sh").unlink()
    said = greene.end("COMPLETED", greene.submit("overlay", text, PIP_FIND_LINKS="/no/such/folder"))
