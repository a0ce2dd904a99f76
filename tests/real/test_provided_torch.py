"""A site's own module of PyTorch, real: Debian's, behind a modulefile. It is proved, and users make venvs on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parts.debian_torch import PYTHON, torch_environ
from parts.modules import LMOD, needed
from parts.provision import Tool

pytestmark = pytest.mark.real
MODULE = "PyTorch/1.13.1"
SITE = """\
name = "own"
root = "{root}"
stack = "pytorch-2.7.1"
runtimes = ["modules", "venv"]

[modules]
system = "lmod"
init = "{init}"
path = ["{modules}"]

[archs.cpu]
target = "native"
provided = ["{module}"]
mpi = {{ provider = "site", family = "mpich", cxx = "mpicxx.mpich" }}
launcher = {{ name = "mpiexec" }}
"""


def test_a_sites_own_module_of_pytorch_is_proved_and_carries_venvs(tmp_path: Path) -> None:
    if shutil.which("mpiexec.mpich") is None:
        pytest.skip("there is no mpiexec.mpich here (`.ci/install` brings it)")
    lines, programs, modules = [f"prepend-path PATH {tmp_path}/bin"], tmp_path / "bin", tmp_path / "modules"
    lines += [f"prepend-path {name} {value}" for name, value in torch_environ().items()]
    for name, body in (("python", PYTHON), ("python3", PYTHON), ("mpiexec", "/usr/bin/mpiexec.mpich")):
        programs.mkdir(exist_ok=True)
        (programs / name).write_text(f'#!/bin/sh\nexec {body} "$@"\n')
        (programs / name).chmod(0o755)
    (modules / MODULE).parent.mkdir(parents=True)
    (modules / MODULE).write_text("#%Module\n" + "\n".join(lines) + "\n")
    site = tmp_path / "own.toml"
    values = {"root": tmp_path / "root", "init": needed(LMOD).init, "modules": modules, "module": MODULE}
    site.write_text(SITE.format(**values))
    tool, where = Tool(tmp_path / "root"), ("--site", str(site))
    assert MODULE in tool.good("modules", "pytorch", *where)
    said = tool.good("test", "--provided", *where)
    assert "passed: 2 ranks of DDP on 1 node trained" in said
    (verdict,) = (tmp_path / "root").glob("provided/*/*/verdict.json")
    assert '"torch": "1.13' in verdict.read_text()
    venv = tmp_path / "venv"
    tool.good("venv", "create", str(venv), "--on", "modules", *where)
    assert "torch==1.13" in (venv / "provision-constraints.txt").read_text()
