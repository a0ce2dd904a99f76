"""Spack environments through Slurm, with a real Spack: both module systems, a kill, a build cache, and venvs.

The cluster is emulated as in `test_build_slurm.py`, whose downloads and compiled wheel are used if it ran before. haswell's
build compiles Horovod and fills the build cache, from which haswell is installed below another root with a longer path. In
`make test-all` the first build is killed while Horovod compiles, and continued. That each arch gets its own target is in
`test_spack_solve.py`, and that a second environment installs nothing again in `test_spack_store.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parts.fixtures import share
from parts.modules import ENVIRONMENT_MODULES, LMOD, ModuleSystem, ModuleTree, bash, needed
from parts.provision import Tool, real_modules, site_file
from parts.slurm import SlurmCluster
from parts.spack import RealSpack

pytestmark = [pytest.mark.real, pytest.mark.slurm]

MODULE = "tensorflow/2.15.1"
# A job that asks these for a package fails: everything was fetched before.
NO_NETWORK = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_RETRIES": "0",
    "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
}
SOLVED = "haswell is solved"
PROVED = "2 ranks on 2 nodes trained digits"


@dataclass(frozen=True)
class Cluster:
    """The site under test, with Spack set up."""

    slurm: SlurmCluster
    tree: ModuleTree
    tool: Tool
    spack: RealSpack
    site: str
    folder: Path

    def root(self, name: str, *setup: str) -> Tool:
        """A root of the site, with Spack set up and nothing built."""
        tool = Tool(self.folder / name, self.tool.environ)
        tool.good("spack", "setup", str(self.spack.checkout), *self.spack.words, "--site", self.site, *setup)
        return tool

    def start(self, tool: Tool, *options: str) -> str:
        """Submit a build that cannot reach a package index; the number of its job."""
        done = tool.run(
            "build", "--site", self.site, "--arch", "haswell", "--submit", "--no-wait", *options, **NO_NETWORK
        )
        assert done.returncode == 4, done.stdout + done.stderr
        return done.stdout.strip()

    def finish(self, tool: Tool, job: str) -> None:
        """Follow a job to its end, which is a good one."""
        done = tool.run("job", "follow", job, "--site", self.site)
        assert done.returncode == 0, done.stdout + done.stderr

    def good(self, *words: str) -> str:
        """Run the tool for the site below the first root; it must end well."""
        return self.tool.good(*words, "--site", self.site)

    def proof(self, environment: str, tool: Tool | None = None) -> str:
        """What `show` says of the proof of an environment."""
        lines = (tool or self.tool).good("show", environment, "--site", self.site).splitlines()
        return next(line for line in lines if line.startswith("proof "))

    def result(self, *words: str) -> Any:
        """The same, as a program reads it."""
        return self.tool.json(*words, "--site", self.site)["result"]


@pytest.fixture(scope="module")
def cluster(
    slurm_cluster: SlurmCluster,
    module_tree: ModuleTree,
    shared_cache: Path,
    spack: RealSpack,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """One root for all tests of this file; everything that the builds need is fetched."""
    needed(LMOD)
    needed(ENVIRONMENT_MODULES)
    folder = tmp_path_factory.mktemp("spack")
    unpacked = share(folder / "root", shared_cache)
    environ = {**slurm_cluster.environ, **unpacked, "EXAMPLE_SITE": str(module_tree.root)}
    same_cpu = ('target = "x86_64_v3"', 'target = "haswell"')
    site = site_file(folder, "example-slurm", *real_modules(module_tree), same_cpu, name="site-spack")
    one = Cluster(slurm_cluster, module_tree, Tool(folder / "root", environ), spack, site, folder)
    one.root("root")
    one.good("fetch", "--arch", "haswell", "--backend", "spack")
    yield one
    shutil.rmtree(folder, ignore_errors=True)  # environments are large


@pytest.fixture(scope="module")
def killed(cluster: Cluster) -> dict[str, float]:
    """A build of haswell, killed while Horovod compiles: the packages that were installed, with their times."""
    job = cluster.start(cluster.tool, "--backend", "spack")
    compiling = cluster.tool.root / "build" / "haswell"
    # Not a glob, which fails if a folder is removed meanwhile.
    wait_for(lambda: any(name.endswith(".o") for *_, names in os.walk(compiling) for name in names), 600, "an object")
    cluster.slurm.run("scancel", "--signal=KILL", "--full", job)
    assert cluster.slurm.wait(job, timeout_s=60) != "COMPLETED"
    return installed(cluster.tool)


@pytest.fixture(scope="module")
def haswell(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    """haswell, published; if a test wants that, continued after a kill."""
    if any("killed" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("killed")
    cluster.finish(cluster.tool, cluster.start(cluster.tool, "--backend", "spack"))


@pytest.fixture(scope="module")
def other_root(cluster: Cluster, haswell: None) -> Tool:
    """haswell below another root, from the build cache of the first one."""
    cache = cluster.tool.root / "cache" / "spack" / "buildcache"
    other = cluster.root("another-root-with-a-much-longer-path", "--cache", str(cache))
    cluster.finish(other, cluster.start(other, "--backend", "spack"))
    return other


@pytest.fixture(scope="module")
def venv(cluster: Cluster, haswell: None) -> None:
    """haswell by the backend `venv`, proved below the same root and not published."""
    cluster.finish(cluster.tool, cluster.start(cluster.tool, "--no-publish"))


def wait_for(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    """Until something is so."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s} s for {what}"
        time.sleep(0.5)


def installs(tool: Tool) -> list[dict[str, Any]]:
    """The records of Spack's database about what it installed itself."""
    (index,) = (tool.root / "spack" / "store").rglob(".spack-db/index.json")
    records = json.loads(index.read_text())["database"]["installs"].values()
    return [record for record in records if record["installed"] and "external" not in record["spec"]]


def installed(tool: Tool) -> dict[str, float]:
    """The packages in Spack's store by name and target, and when each was installed; and when haswell was solved.

    By the log of that step: `spack install` writes spack.lock again.
    """
    (log,) = tool.root.glob("logs/haswell/tensorflow-2.15.1-*/concretize.log")
    found = {f"{r['spec']['name']} {target_of(r['spec'])}": float(r["installation_time"]) for r in installs(tool)}
    return {SOLVED: log.stat().st_mtime, **found}


def target_of(spec: dict[str, Any]) -> str:
    """The target of a package; a generic target is only a name."""
    target = spec["arch"]["target"]
    return str(target if isinstance(target, str) else target["name"])


def load(cluster: Cluster, tool: Tool, system: ModuleSystem | None, script: str) -> str:
    """Run a script in a user's shell where the published modules are in use."""
    system = needed(system)
    kind = "lua" if system.name == "lmod" else "tcl"
    path = f"{tool.root}/modules/haswell/{kind}"
    done = bash(f"set -e\nmodule use {path}\n{script}\n", system, cluster.tree.modulepath, timeout_s=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_killed_build_continues_with_what_spack_had_installed(
    cluster: Cluster, killed: dict[str, float], haswell: None
) -> None:
    """The second job neither solves nor installs the framework again; two nodes prove it, and it is published."""
    assert set(killed) == {"py-pip x86_64", "py-tensorflow x86_64", SOLVED}
    now = installed(cluster.tool)
    assert {name: now[name] for name in killed} == killed
    assert "py-horovod haswell" in now
    assert PROVED in cluster.proof(f"haswell/{MODULE}")
    rows = cluster.result("list")["environments"]
    assert "published" in [row["state"] for row in rows if row["environment"].startswith("haswell/")]


def test_another_root_installs_from_the_build_cache_and_compiles_nothing(cluster: Cluster, other_root: Tool) -> None:
    """The same packages by their hashes, Horovod too, below a longer path; proved again, in less time."""
    assert PROVED in cluster.proof(f"haswell/{MODULE}", other_root)
    log = next(other_root.root.glob("logs/haswell/*/install.log")).read_text()
    assert "Executing phase" not in log
    assert log.count("Extracting py-") == 3
    locks, seconds = [], []
    for tool in (cluster.tool, other_root):
        prefix = next(path.parent for path in tool.root.glob("envs/haswell/tensorflow/*/spack.lock"))
        locks.append({root["hash"] for root in json.loads((prefix / "spack.lock").read_text())["roots"]})
        seconds.append(json.loads((prefix / ".provision" / "record.json").read_text())["seconds"]["install"])
    assert locks[0] == locks[1]
    assert seconds[1] < seconds[0]


@pytest.mark.parametrize("system", [LMOD, ENVIRONMENT_MODULES], ids=["lmod", "environment-modules"])
def test_the_module_loads_in_both_module_systems(cluster: Cluster, haswell: None, system: ModuleSystem | None) -> None:
    """Our modulefile, with the site's modules; Spack itself wrote none."""
    script = f"module load {MODULE}\necho loaded: $LOADEDMODULES\necho python: $(command -v python)\n"
    script += "python -c 'import horovod.tensorflow as hvd; hvd.init(); print(\"rank\", hvd.rank(), hvd.mpi_built())'"
    said = load(cluster, cluster.tool, system, script)
    loaded = said.split("loaded: ")[1].splitlines()[0].split(":")
    assert set(loaded) == {cluster.tree.gcc, cluster.tree.mpich, cluster.tree.python, MODULE}
    assert f"python: {cluster.tool.root}/envs/haswell/tensorflow/2.15.1-" in said
    assert "rank 0 True" in said
    assert not list((cluster.tool.root / "spack" / "store").rglob("modules"))


@pytest.mark.long
def test_both_backends_have_the_same_versions_and_pass_the_same_proof(cluster: Cluster, venv: None) -> None:
    """`show --diff` has no package of the lock: what differs is what built them, and when, and virtualenv's own pip."""
    rows = cluster.result("list")["environments"]
    here = {row["state"]: row["environment"] for row in rows if row["environment"].startswith("haswell/")}
    spack = cluster.result("show", here["published"])
    other = cluster.result("show", next(name for state, name in here.items() if state != "published"))
    assert all(PROVED in cluster.proof(record["environment"]) for record in (spack, other))
    assert "spack" in spack["identity"] and "spack" not in other["identity"]
    differences = cluster.result("show", spack["environment"], "--diff", other["environment"])["differences"]
    assert [row["name"] for row in differences if row["group"] == "package"] == ["pip"]
    same = ("compiler", "target", "horovod", "patches", "modules", "mpi", "lock", "python", "proof")
    assert {row["name"] for row in differences if row["group"] == "identity"}.isdisjoint(same), differences
    assert spack["versions"] == other["versions"]
    checks = [[check["name"] for check in record["verdict"]["checks"]] for record in (spack, other)]
    assert checks[0] == checks[1]
    assert all(check["passed"] for record in (spack, other) for check in record["verdict"]["checks"])


def test_a_users_venv_on_a_spack_environment_imports_the_stack(cluster: Cluster, haswell: None) -> None:
    """TensorFlow and Horovod, with the site's modules loaded, and what pip says of both."""
    folder = cluster.folder / "my-venv"
    cluster.good("venv", "create", str(folder), "--on", f"haswell/{MODULE}")
    script = f"module load {MODULE}\n{folder}/bin/python -c 'import horovod.tensorflow as h; print(h.mpi_built())'\n"
    said = load(cluster, cluster.tool, LMOD, f"{script}{folder}/bin/python -m pip list 2>/dev/null")
    assert "True" in said
    assert "horovod" in said and "tensorflow" in said
