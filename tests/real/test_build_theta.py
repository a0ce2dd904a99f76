"""Theta from `fetch` to a published module: Cobalt and aprun are stand-ins, all behind them is real.

The job's script runs on a service node; what needs the arch's CPU goes by aprun, which forwards the environment. MPICH's launcher
stands behind the aprun stand-in, so that two ranks of a real MPI train, with the small packages of `parts/tiny.py`. Cori gets
TensorFlow 1.15 itself (`test_profiles_slurm.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from parts.modules import ENVIRONMENT_MODULES, ModuleTree, bash, needed
from parts.provision import module_init, site_file
from parts.site_modules import SiteModules
from parts.standins import stand_ins
from parts.tiny import add_stack, make_site

pytestmark = pytest.mark.real


def test_theta_builds_by_aprun_and_proves_tensorflow_1_15(module_tree: ModuleTree, tmp_path: Path) -> None:
    """On Python 3.6, as its modules had."""
    system = needed(ENVIRONMENT_MODULES)
    if reason := module_tree.missing.get("python/3.6"):
        pytest.skip(reason)
    modules = SiteModules(tmp_path / "modules", module_tree, system, loaded=["PrgEnv-intel/6.0.5"])
    modules.add("PrgEnv-intel/6.0.5", CC="icc", MPICH_CXX="icpc")
    modules.add_cray_compilers("PrgEnv-gnu/6.0.7")
    modules.add("gcc/8.3.0", "gcc")
    modules.add("cray-python/3.6.1.1", "python/3.6")
    changes = [
        module_init(modules.init),
        ('target = "mic_knl"', 'target = "x86_64_v3"'),
        # One machine is one host, whatever stands in for aprun.
        ("proof = { nodes = 2, ranks_per_node = 1,", "proof = { nodes = 1, ranks_per_node = 2,"),
    ]
    site = site_file(tmp_path, "alcf-theta", *changes)
    hydra = module_tree.modules[module_tree.mpich] / "bin" / "mpiexec.hydra"
    path = f"{stand_ins('cobalt', tmp_path, hydra)}:/usr/bin:/bin"
    environ = {"PATH": f"{path}:{os.environ['PATH']}"}
    tiny = make_site(tmp_path / "tiny")
    add_stack(tiny, "tensorflow-1.15.2-intel", "py36")
    tool, module = tiny.tool(**environ), "tensorflow/1.15.2-intel"
    root = tool.root
    tool.good("fetch", "--site", site, "--arch", "knl")
    (tmp_path / "build.sh").write_text(tool.good("job", "build", "--site", site, "--arch", "knl", "--account", "tests"))
    (tmp_path / "build.sh").chmod(0o755)
    done = subprocess.run(
        ["qsub", "build.sh"],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path), "USER": "ada"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Cobalt writes stdout and stderr to files of their own, and the progress of a build goes to stderr.
    said = "\n".join(path.read_text() for path in (root / "jobs").glob("*/*.error"))
    assert (done.returncode, done.stdout) == (0, "77\n"), done.stderr
    assert "publish: done" in said, said
    assert "2 ranks on 1 node" in said
    record = tool.json("show", f"knl/{module}", "--site", site)["result"]
    assert "PrgEnv-gnu/6.0.7" in json.dumps(record["modules"])
    assert record["versions"]["python"].startswith("3.6.")
    kept = next((root / "envs" / record["environment"] / ".provision").glob("verdict.json")).read_text()
    assert json.loads(kept)["passed"]
    loaded = bash(
        f"set -e\nsource {modules.init}\nmodule unload PrgEnv-intel\nmodule use {root}/modules/knl/tcl\n"
        f"module load {module}\npython -c 'import tensorflow; print(tensorflow.__version__)'",
        system,
        modules.path,
    )
    assert loaded.stdout.strip() == "1.15.2", loaded.stderr
