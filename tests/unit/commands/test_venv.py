"""A user's own virtual environment, made by the real venv module and used by the real pip; the stack is two small packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pip
import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.json_page import faults
from parts.modules import LMOD, needed
from parts.provision import Tool
from parts.records import ENVIRONMENT, load
from parts.small_environment import add_packages, add_pip, make_small_environment, packages_of
from parts.tiny import make_wheel
from provision.model.record import Record

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published environment: a venv with a small "tensorflow", a small "numpy", and the pip of this Python."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    return make_small_environment(tmp_path / "root")


def add_and_replace(venv: Path, folder: Path, pinned: str, environ: dict[str, str] | None = None) -> str:
    """Let pip, without network, add a package to a venv, but not another NumPy; the file of TensorFlow that is imported."""
    mine = make_wheel(folder, "mine", "1.0", {"mine.py": "import tensorflow\nprint(tensorflow.__file__)\n"})
    numpy = make_wheel(folder, "numpy", "2.0.0", {"numpy/__init__.py": ""})
    done = []
    for words in (("-m", "pip", "install", "--no-index", mine), ("-m", "pip", "install", "--no-index", numpy)):
        argv = [venv / "bin" / "python", *words]
        done.append(subprocess.run(argv, capture_output=True, text=True, check=False, env=environ))
    assert done[0].returncode == 0, done[0].stderr
    assert (done[1].returncode, pinned in done[1].stdout + done[1].stderr) == (1, True)
    python = [venv / "bin" / "python", "-c", "import mine"]
    return subprocess.run(python, capture_output=True, text=True, check=True, env=environ).stdout.strip()


def replace_numpy(venv: Path, folder: Path) -> None:
    """Install another NumPy into a venv, without the constraints of its pip."""
    numpy = make_wheel(folder, "numpy", "2.0.0", {"numpy/__init__.py": ""})
    argv = [venv / "bin" / "pip", "install", "--no-index", "-q", numpy]
    subprocess.run(argv, env={"PIP_CONFIG_FILE": "/dev/null"}, check=True)


@pytest.mark.real
def test_the_stack_imports_and_pip_adds_to_it_but_does_not_replace_it(
    prefix: Path, tmp_path: Path, capsys: Captured
) -> None:
    venv = tmp_path / "my-venv"
    assert call("venv", "create", str(venv), "--on", "tensorflow/2.15.1", "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv create") == []
    assert result["packages"] == {"numpy": "1.26.4", "pip": pip.__version__, "tensorflow": "2.15.1"}
    assert add_and_replace(venv, tmp_path, "numpy==1.26.4").startswith(f"{prefix}/lib/")
    assert call("venv", "check", str(venv), "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv check") == []
    assert result["packages"] == {"mine": "1.0"}
    replace_numpy(venv, tmp_path)
    assert call("venv", "check", str(venv), "--json") == 1
    checks = {check["name"]: check for check in envelope(capsys)["result"]["checks"]}
    assert [name for name, check in checks.items() if not check["passed"]] == ["shadowed packages"]
    assert "numpy 1.26.4 by 2.0.0" in checks["shadowed packages"]["message"]


def test_the_loaded_environment_is_taken(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prefix.is_dir()
    assert call("venv", "create", str(tmp_path / "none"), "--on", "loaded") == 2
    assert not (tmp_path / "none").exists()
    monkeypatch.setenv("PROVISION_ENVIRONMENT", str(ENVIRONMENT))
    assert call("venv", "create", str(tmp_path / "one"), "--on", "loaded") == 0
    assert f"provision-environment = {ENVIRONMENT}\n" in (tmp_path / "one" / "pyvenv.cfg").read_text()


def test_a_folder_with_files_and_an_unpublished_environment_are_refused(
    prefix: Path, tmp_path: Path, capsys: Captured
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("x")
    assert call("venv", "create", str(full), "--on", str(ENVIRONMENT)) == 2
    assert [path.name for path in full.iterdir()] == ["mine"]
    (prefix / ".provision" / "record.json").unlink()
    assert call("venv", "create", str(tmp_path / "new"), "--on", str(ENVIRONMENT)) != 0
    assert "is not published" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_an_environment_whose_python_cannot_make_a_venv_leaves_nothing(
    prefix: Path, tmp_path: Path, capsys: Captured
) -> None:
    python = prefix / "bin" / "python"
    real = python.resolve()
    python.unlink()
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -I ] && {{ mkdir -p {tmp_path}/new/bin; echo broken >&2; exit 1; }}\nexec {real} "$@"\n'
    )
    python.chmod(0o755)
    assert call("venv", "create", str(tmp_path / "new"), "--on", str(ENVIRONMENT)) == 1
    assert "broken" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("prefix")
def test_a_folder_that_it_did_not_make_is_not_checked(tmp_path: Path, capsys: Captured, words: Words) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert call("venv", "check", str(tmp_path)) == 2
    err = capsys.readouterr().err
    assert str(tmp_path) in err
    words("venv", err)


# On modules of the site

ARCH = """\
target = "x86_64_v3"
mpi = { provider = "site", family = "openmpi" }
node = { sockets = 2, cores = 32, threads = 32, memory_gb = 192 }
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile whose `provided` are modules of a real Lmod; the TensorFlow that they put on PYTHONPATH is a stand-in."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    packages, python = tmp_path / "of-site", tmp_path / "python"
    add_packages(packages, tensorflow="2.11.0", numpy="1.22.3")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True)
    add_pip(packages_of(python))
    for name, line in (
        ("Python/3.10.4", f'prepend_path("PATH", "{python}/bin")'),
        ("TensorFlow/2.11.0-foss-2022a", f'load("Python/3.10.4")\nprepend_path("PYTHONPATH", "{packages}")'),
        ("Empty/1.0", f'prepend_path("PATH", "{python}/bin")'),
    ):
        file = tmp_path / "modulefiles" / f"{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(line + "\n")
    path = tmp_path / "mine.toml"
    path.write_text(f"""\
name = "mine"
title = "My cluster"
root = "{tmp_path}/root"
stack = "tensorflow-2.15.1"
runtimes = ["venv", "modules"]
modules = {{ system = "lmod", init = "{needed(LMOD).init}", path = ["{tmp_path}/modulefiles"] }}
scheduler = {{ system = "slurm" }}
[archs.cpu]
provided = ["Python/3.10.4", "TensorFlow/2.11.0-foss-2022a"]
provided_setup = ["export OF_SETUP=done"]
{ARCH}
[archs.other]
provided = ["Empty/1.0"]
{ARCH}
[archs.none]
{ARCH}
""")
    return path


@pytest.mark.real
def test_a_venv_on_the_sites_modules_imports_their_stack_and_pip_adds_to_it(
    site: Path, tmp_path: Path, capsys: Captured
) -> None:
    venv, on = tmp_path / "my-venv", "TensorFlow/2.11.0-foss-2022a"
    assert call("venv", "create", str(venv), "--on", on, "--site", str(site), "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv create") == []
    assert (result["environment"], result["module"]) == (None, f"Python/3.10.4 {on}")
    assert result["packages"] == {"numpy": "1.22.3", "pip": pip.__version__, "tensorflow": "2.11.0"}
    environ = {"PYTHONPATH": str(tmp_path / "of-site"), "PATH": "/usr/bin:/bin"}  # as the modules set it
    imported = add_and_replace(venv, tmp_path, "numpy==1.22.3", environ)
    assert imported == f"{tmp_path}/of-site/tensorflow/__init__.py"
    assert call("venv", "check", str(venv), "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv check") == []
    assert (result["environment"], result["packages"]) == (None, {"mine": "1.0"})

    assert call("job", "single", "--venv", str(venv), "--site", str(site), "--arch", "cpu") == 0
    text = capsys.readouterr().out
    assert f"module load Python/3.10.4\nmodule load {on}\n" in text, "the venv decides what is loaded"
    (tmp_path / "modulefiles" / f"{on}.lua").unlink()
    assert call("venv", "check", str(venv)) == 1
    assert f"module `{on}`" in capsys.readouterr().err


def test_a_kernel_of_the_sites_modules_loads_them_and_runs_their_setup(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    (tmp_path / "of-site" / "ipykernel_launcher.py").write_text("")
    words = ("kernel", "install", "modules", "--site", str(site), "--arch", "cpu")
    assert call(*words, "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "kernel install") == []
    assert (result["name"], result["venv"]) == ("mine-modules", None)
    program = "import os, sys, tensorflow; print(os.environ['OF_SETUP'], sys.executable, tensorflow.__file__)"
    done = subprocess.run([f"{result['folder']}/python", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "done",
        f"{tmp_path}/python/bin/python",
        f"{tmp_path}/of-site/tensorflow/__init__.py",
    ]
    assert call("kernel", "install", "modules", "--site", str(site)) == 2
    assert "--arch" in capsys.readouterr().err


def test_the_sites_modules_load_where_the_init_file_of_the_profile_is_a_wrong_guess(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    init = str(needed(LMOD).init)
    site.write_text(site.read_text().replace(init, "/no/such/init"))
    words = ("--site", str(site))
    for name in ("LMOD_PKG", "MODULESHOME"):
        monkeypatch.delenv(name, raising=False)
    assert call("venv", "create", str(tmp_path / "v"), "--on", "modules", "--arch", "cpu", *words) != 0
    assert "/no/such/init" in capsys.readouterr().err
    monkeypatch.setenv("LMOD_PKG", init.removesuffix("/init/bash"))
    assert call("venv", "create", str(tmp_path / "v"), "--on", "modules", "--arch", "cpu", *words) == 0
    assert call("modules", "tensorflow", *words) == 0
    assert "TensorFlow/2.11.0-foss-2022a" in capsys.readouterr().out


def test_tensorboard_of_the_sites_modules_is_started_where_nothing_is_published(
    site: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "summaries").mkdir()
    main = tmp_path / "of-site" / "tensorboard" / "main.py"
    main.parent.mkdir()
    main.write_text("import os, sys\nopen(sys.argv[2] + '/started', 'a').write(os.environ['OF_SETUP'] + ' ')\n")
    words = ("tensorboard", str(tmp_path / "summaries"), "--site", str(site))
    assert call(*words, "--print") == 0
    assert "--on modules" in capsys.readouterr().out
    tool = Tool(tmp_path / "root")
    for more in ((), ("--on", "modules", "--arch", "cpu")):
        assert "stopped" in tool.good(*words, *more)
    assert (tmp_path / "summaries" / "started").read_text() == "done done "


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("modules",), "`--on modules`"),
        (("modules", "--arch", "none"), "`none`"),
        (("Empty/1.0",), "Empty/1.0"),
        (("TensorFlow/9",), "`TensorFlow/9`"),
    ],
)
def test_modules_on_which_no_venv_can_be_made_are_refused(
    command: tuple[str, ...], message: str, site: Path, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    assert call("venv", "create", str(tmp_path / "new"), "--site", str(site), "--on", *command) in (1, 2)
    first = capsys.readouterr().err.splitlines()[0]
    assert message in first
    words("venv", first)
    assert not (tmp_path / "new").exists()


def test_a_kernel_without_network_is_refused_but_the_venv_stays(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    assert prefix.is_dir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    venv = tmp_path / "my-venv"
    assert call("venv", "create", str(venv), "--on", "tensorflow/2.15.1", "--kernel") == 1
    said = capsys.readouterr().err
    assert f"`ipykernel` into `{venv}`" in said and f"`provision kernel install {venv}`" in said
    words("venv", "\n".join(line for line in said.splitlines() if "ERROR" not in line))
    assert (venv / "bin" / "python").exists()
    assert not (tmp_path / "jupyter").exists()


def test_verify_loaded_looks_below_a_venv_and_at_what_it_hides(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    venv = tmp_path / "my-venv"
    assert call("venv", "create", str(venv), "--on", "tensorflow/2.15.1") == 0
    record = Record.from_dict(json.loads((prefix / ".provision/record.json").read_text()))
    load(record, str(venv), monkeypatch)
    capsys.readouterr()
    assert call("verify", "--loaded") == 0, capsys.readouterr()
    replace_numpy(venv, tmp_path)
    assert call("verify", "--loaded") == 1
    assert "shadowed packages" in capsys.readouterr().out
