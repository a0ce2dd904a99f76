"""Kernels of Jupyter: installed for a small environment, and started by the real client of Jupyter."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.containers import container_program, no_namespaces
from parts.json_page import faults
from parts.notebook import run_notebook, why_not
from parts.provision import site_file
from parts.records import ENVIRONMENT
from parts.small_environment import make_small_environment, packages_of

Captured = pytest.CaptureFixture[str]

CODE = "import os, sys, tensorflow; print(tensorflow.__version__, os.environ['PROVISION_ENVIRONMENT'], sys.executable)"


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published environment. Jupyter's folder is `jupyter` beside its root."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return make_small_environment(tmp_path / "root")


def give_ipykernel(python_packages: Path) -> None:
    """The packages of this Python, among them `ipykernel`, behind those of a folder of packages."""
    (python_packages / "jupyter.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")


@pytest.mark.real
def test_a_real_client_runs_a_notebook_in_an_environment_that_has_ipykernel(
    prefix: Path, tmp_path: Path, capsys: Captured
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    give_ipykernel(packages_of(prefix))
    assert call("kernel", "install", "tensorflow/2.15.1", "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "kernel install") == []
    assert (result["name"], result["venv"]) == ("tensorflow-2.15.1", None)
    printed = run_notebook("tensorflow-2.15.1", CODE, tmp_path / "jupyter")
    assert printed.split() == ["2.15.1", str(ENVIRONMENT), f"{prefix}/bin/python"]
    assert call("kernel", "list", "--json") == 0
    listed = envelope(capsys)["result"]
    assert faults(listed, "kernel list") == []
    assert [one["environment"] for one in listed["kernels"]] == [str(ENVIRONMENT)]
    assert call("kernel", "remove", "tensorflow-2.15.1", "--json") == 0
    assert faults(envelope(capsys)["result"], "kernel remove") == []
    assert not (tmp_path / "jupyter" / "kernels" / "tensorflow-2.15.1").exists()


def test_a_venv_of_a_user_gets_a_kernel_and_stays_when_that_is_removed(
    prefix: Path, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    venv = tmp_path / "my-venv"
    assert call("venv", "create", str(venv), "--on", "tensorflow/2.15.1") == 0
    (packages_of(venv) / "ipykernel_launcher.py").write_text("")
    assert call("kernel", "install", str(venv), "--name", "mine", "--display-name", "Mine & co") == 0
    folder = tmp_path / "jupyter" / "kernels" / "mine"
    data = json.loads((folder / "kernel.json").read_text())
    assert data["display_name"] == "Mine & co"
    assert data["argv"] == [f"{folder}/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    program = "import sys, shutil, tensorflow; print(sys.executable, shutil.which('pip'), tensorflow.__file__)"
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/of/jupyter", "PYTHONHOME": "/of/jupyter"}
    done = subprocess.run([folder / "python", "-c", program], env=environ, capture_output=True, text=True, check=True)
    tensorflow = packages_of(prefix) / "tensorflow" / "__init__.py"
    assert done.stdout.split() == [f"{venv}/bin/python", f"{venv}/bin/pip", str(tensorflow)]
    capsys.readouterr()
    assert call("kernel", "install", str(venv), "--name", "mine") == 2
    err = capsys.readouterr().err
    assert "`mine`" in err
    words("kernel", err)
    assert call("kernel", "remove", "mine") == 0
    assert f"{venv} stays" in capsys.readouterr().out
    assert (venv / "bin" / "python").exists()


def test_a_kernel_for_which_ipykernel_cannot_be_had_leaves_nothing(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    assert prefix.is_dir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert call("kernel", "install", "tensorflow/2.15.1") == 1
    said = capsys.readouterr().err
    assert "`ipykernel`" in said
    words("kernel", "\n".join(line for line in said.splitlines() if "ERROR" not in line))
    assert not (tmp_path / "jupyter" / "kernels" / "tensorflow-2.15.1").exists()


def test_a_kernel_of_an_environment_that_is_not_loaded_stops_and_names_the_way_out(
    prefix: Path, tmp_path: Path, words: Words
) -> None:
    (packages_of(prefix) / "ipykernel_launcher.py").write_text("")
    assert call("kernel", "install", "tensorflow/2.15.1", "--prefix", str(tmp_path / "hub")) == 0
    folder = tmp_path / "hub" / "share" / "jupyter" / "kernels" / "tensorflow-2.15.1"
    (prefix / ".provision" / "activate.sh").write_text("export PROVISION_ENVIRONMENT=knl/tensorflow/9-0\n")
    done = subprocess.run([folder / "python", "-c", ""], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "knl/tensorflow/9-0" in done.stderr and "`provision kernel remove tensorflow-2.15.1`" in done.stderr
    words("kernel", done.stderr)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("tensorflow/2.15.1", "--name", "a b"), "'a b'"),
        (("tensorflow/2.15.1", "--overlay", "x"), "`--overlay`"),
        (("container",), "`local`"),
        (("container", "--site", "nyu-torch"), "`/share/apps/images/"),
        (("container", "--site", "nyu-torch", "--arch", "l40s"), "`--arch`"),
        (("tensorflow/9",), "`tensorflow/9`"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    prefix: Path, tmp_path: Path, capsys: Captured, command: tuple[str, ...], says: str, words: Words
) -> None:
    assert prefix.is_dir()
    assert call("kernel", "install", *command) == 2
    err = capsys.readouterr().err
    assert says in err
    words("kernel", err.splitlines()[0])
    assert not (tmp_path / "jupyter").exists()


@pytest.mark.usefixtures("prefix")
def test_a_dry_run_prints_both_files_and_writes_nothing(tmp_path: Path, capsys: Captured) -> None:
    assert call("kernel", "install", "tensorflow/2.15.1", "--dry-run") == 0
    printed = capsys.readouterr().out
    assert '"language": "python"' in printed
    assert f"exec {tmp_path}/jupyter/kernels/tensorflow-2.15.1/venv/bin/python" in printed
    assert not (tmp_path / "jupyter").exists()


@pytest.mark.usefixtures("prefix")
def test_a_kernel_that_others_installed_is_not_removed(tmp_path: Path, capsys: Captured, words: Words) -> None:
    other = tmp_path / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text('{"argv": [], "display_name": "Other"}')
    assert call("kernel", "remove", "other") == 2
    assert "`jupyter kernelspec remove other`" in capsys.readouterr().err
    assert call("kernel", "remove", "gone") == 2
    err = capsys.readouterr().err
    assert "`gone`" in err
    words("kernel", err)
    assert other.is_dir()


@pytest.mark.real
def test_a_kernel_in_a_container_is_run_by_the_real_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """In Open OnDemand's form. The stand-in for apptainer has a root of its own with this machine's folders."""
    if reason := why_not() or no_namespaces():
        pytest.skip(reason)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "runtime").mkdir()
    image, setup, overlay = tmp_path / "image.sif", tmp_path / "env.sh", tmp_path / "my.ext3"
    image.write_text("")
    overlay.write_bytes(bytes(1080) + b"\x53\xef")  # where an ext3 file system has its mark
    setup.write_text(f"export PATH={Path(sys.executable).parent}:$PATH IN_CONTAINER=$0\n")
    site = site_file(
        tmp_path,
        "nyu-torch",
        ("/share/apps/images/cuda-13.3.1-ubuntu-26.04.sif", str(image)),
        ("/scratch/$USER/tensorflow/tensorflow.ext3", str(overlay)),
        ('setup = "/ext3/env.sh"', f'setup = "{setup}"\nbind = ["{tmp_path}"]'),
        ('scratch = "/scratch/$USER"', f'scratch = "{tmp_path}"'),
    )
    program = container_program("apptainer", tmp_path)
    monkeypatch.setenv("PATH", f"{program}:/usr/bin:/bin")
    assert call("kernel", "install", "container", "--site", site, "--name", "ood") == 0
    capsys.readouterr()
    code = "import os; print(os.environ['IN_CONTAINER'], os.path.isdir('/ext3'), os.path.isdir('/.singularity.d'))"
    assert run_notebook("ood", code, tmp_path / "jupyter").split() == ["python", "True", "True"]
