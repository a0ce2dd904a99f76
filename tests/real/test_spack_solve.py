"""A real Spack reads and solves what the tool writes: the environments of every profile, GPUs and foreign CPUs too."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.paths import REPOSITORY
from parts.provision import Tool
from parts.spack import RealSpack, plain_spack
from provision.machine.configuration.shipped import load_patches
from provision.model.patch import select_patches

pytestmark = pytest.mark.real

# One with GPUs and one of an old TensorFlow on a foreign CPU are solved in `make test`, all of them in `make test-all`.
SOLVED_ALWAYS = ("sigma2-saga/tensorflow-2.11.1-gpu/accel", "nersc-cori/tensorflow-1.15.2-intel/knl")
ENVIRONMENTS = [
    pytest.param(name, marks=[] if str(name) in SOLVED_ALWAYS else pytest.mark.long, id=str(name))
    for name in sorted(
        path.parent.relative_to(REPOSITORY / "spack-envs") for path in REPOSITORY.glob("spack-envs/*/*/*/spack.yaml")
    )
]


@pytest.fixture(scope="module")
def tool(spack: RealSpack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A root with Spack set up."""
    folder = tmp_path_factory.mktemp("spack")
    tool = Tool(folder / "root")
    said = tool.good("spack", "setup", str(spack.checkout), *spack.words)
    assert said.startswith("Spack ")
    yield tool
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_plain_spack_solves_the_shipped_environment(
    name: Path, tool: Tool, spack: RealSpack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Within seconds: the four packages to build, each external with its prefix and the target of the arch."""
    folder = tmp_path_factory.mktemp("envs")
    shutil.copytree(REPOSITORY / "spack-envs", folder / "envs")
    environment = folder / "envs" / name
    done = plain_spack(
        spack.checkout, tool.root / "spack" / "python" / "bin" / "python", folder / "home", environment, "concretize"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lock = json.loads((environment / "spack.lock").read_text())
    nodes = {node["name"]: node for node in lock["concrete_specs"].values()}
    built = {name for name, node in nodes.items() if "external" not in node}
    assert built == {"py-pip", "py-tensorflow", "py-horovod", "py-mpi4py"}
    target = re.search(r"    all:\n.*\n +require: \[\"target=(\w+)\"\]", (environment / "spack.yaml").read_text())
    assert target is not None
    for package in ("py-horovod", "py-mpi4py", "gcc"):
        solved = nodes[package]["arch"]["target"]  # a generic target is only a name
        assert (solved if isinstance(solved, str) else solved["name"]) == target[1]
    assert nodes["gcc"]["external"]["path"] == "/PREFIX-OF-GCC"
    gpu = "gpu" in str(name.parent)
    assert {"cuda", "nccl"} & set(nodes) == ({"cuda", "nccl"} if gpu else set())
    tensorflow = nodes["py-tensorflow"]
    assert tensorflow["parameters"]["lock"].startswith(f"{name.parent.name}-py")
    assert f"-{tensorflow['version']}-" in f"{name.parent.name}-"
    patches = select_patches(load_patches("0.28.1"), {"tensorflow": tensorflow["version"]}, gpu=gpu)
    files = {hashlib.sha256(patch.text.encode()).hexdigest() for patch in patches}
    assert set(nodes["py-horovod"]["parameters"]["patches"]) == files


def test_plain_spack_solves_the_wheels_of_pytorch(
    tool: Tool, spack: RealSpack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, python = tmp_path_factory.mktemp("envs"), tool.root / "spack" / "python" / "bin" / "python"
    words = ("--site", "example-slurm", "--arch", "haswell", "--stack", "pytorch-2.14.1", "--profile")
    tool.good("spack", "show", *words, "--into", str(folder), EXAMPLE_SITE="/example")
    environment = folder / "example-slurm/pytorch-2.14.1/haswell"
    done = plain_spack(spack.checkout, python, folder / "home", environment, "concretize")
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = json.loads((environment / "spack.lock").read_text())["concrete_specs"].values()
    assert {node["name"] for node in nodes if "external" not in node} == {"py-pip", "py-torch"}


def test_the_packages_of_one_environment_are_those_that_all_share(
    tool: Tool, spack: RealSpack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By Spack's hashes, in which the locks and patches of other environments have no part."""
    folder, python = tmp_path_factory.mktemp("envs"), tool.root / "spack" / "python" / "bin" / "python"
    shutil.copytree(REPOSITORY / "spack-envs", folder / "shared")
    name = Path("example-slurm/tensorflow-2.15.1/haswell")
    words = ("--site", "example-slurm", "--arch", "haswell", "--profile", "--into", str(folder / "own"))
    tool.good("spack", "show", *words, EXAMPLE_SITE="/example")
    locks = []
    for kind in ("shared", "own"):
        done = plain_spack(spack.checkout, python, folder / f"home-{kind}", folder / kind / name, "concretize")
        assert done.returncode == 0, done.stdout + done.stderr
        locks.append(json.loads((folder / kind / name / "spack.lock").read_text())["concrete_specs"])
    assert locks[0] == locks[1]


def test_plain_spack_gets_its_sources_as_the_comment_says(
    tool: Tool, spack: RealSpack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """pip downloads the two files, from the index that it is configured for; the recipes name no host."""
    folder = tmp_path_factory.mktemp("envs")
    shutil.copytree(REPOSITORY / "spack-envs", folder / "envs")
    environment = folder / "envs" / "example-slurm" / "tensorflow-2.15.1" / "haswell"
    download = next(
        line for line in (environment / "spack.yaml").read_text().splitlines() if " -m pip download " in line
    )
    subprocess.run(shlex.split(download.replace("python3", sys.executable))[1:], cwd=environment, check=True)
    python = tool.root / "spack" / "python" / "bin" / "python"
    # What was fetched stays in both folders.
    cache = ("-c", f"config:source_cache:{folder / 'cache'}", "-c", f"config:build_stage:{folder / 'cache' / 'stage'}")
    first = (*cache, "concretize"), (*cache, "fetch")
    for words in first:
        done = plain_spack(
            spack.checkout,
            python,
            folder / "home",
            environment,
            *words,
            PROVISION_SOURCES=str(environment / "sources"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(folder / "cache")
    done = plain_spack(spack.checkout, python, folder / "another-home", environment, *first[1])
    assert done.returncode != 0
    assert "PROVISION_SOURCES-is-not-set" in done.stdout + done.stderr


def test_what_spack_says_to_a_build_is_an_error_with_a_hint(tool: Tool, tmp_path: Path) -> None:
    """A wheelhouse that cannot be filled: the index does not answer."""
    environ = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_RETRIES": "0",
        "PIP_CONFIG_FILE": "/dev/null",
        "UV_CACHE_DIR": str(tmp_path),
    }
    done = tool.run("build", "--site", "local", "--stack", "tensorflow-2.15.1", "--backend", "spack", **environ)
    assert done.returncode == 1
    assert "[2/" in done.stderr and "concretize: done" in done.stderr
    assert "the download failed" in done.stderr
    assert "hint:" in done.stderr
    (lock,) = tool.root.glob("envs/*/tensorflow/*/spack.lock")
    assert "py-horovod@0.28.1" in [root["spec"] for root in json.loads(lock.read_text())["roots"]]


def test_a_stale_lock_is_refused_before_anything_is_installed(tool: Tool) -> None:
    """The lock of another spec, in place of the one that was solved."""
    (lock,) = tool.root.glob("envs/*/tensorflow/*/spack.lock")
    text = lock.read_text()
    lock.write_text(text.replace("py-horovod@0.28.1", "py-horovod@0.27.0"))
    done = tool.run("build", "--site", "local", "--stack", "tensorflow-2.15.1", "--backend", "spack")
    lock.write_text(text)
    assert done.returncode == 1
    assert "the lock does not belong to this spack.yaml" in done.stderr
