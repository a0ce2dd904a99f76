"""A user's own virtual environment, made by the real venv module and used by the real pip; the stack is two small packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pip
import pytest

from parts.cli import call, envelope
from parts.json_page import faults
from parts.records import ENVIRONMENT, put_published
from parts.tiny import make_wheel
from provision.machine.root.store import Store
from provision.model.layout import Layout

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published environment: a venv with a small "tensorflow", a small "numpy", and the pip of this Python."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    store = Store(Layout(PurePosixPath(tmp_path / "root")))
    prefix = Path(put_published(store, modules=()).prefix)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    for name, version in (("tensorflow", "2.15.1"), ("numpy", "1.26.4")):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f"__version__ = '{version}'\n")
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    source = Path(pip.__file__).parent
    (packages / "pip").symlink_to(source)
    (packages / f"pip-{pip.__version__}.dist-info").symlink_to(source.with_name(f"pip-{pip.__version__}.dist-info"))
    return prefix


def pip_install(venv: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the pip of a venv does, without network."""
    argv = [str(venv / "bin" / "pip"), "install", "--no-index", "--disable-pip-version-check", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_stack_imports_and_pip_adds_to_it_but_does_not_replace_it(
    prefix: Path, tmp_path: Path, capsys: Captured
) -> None:
    venv = tmp_path / "my-venv"
    assert call("venv", "create", str(venv), "--on", "tensorflow/2.15.1", "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv create") == []
    assert result["packages"] == {"numpy": "1.26.4", "pip": pip.__version__, "tensorflow": "2.15.1"}
    wheel = make_wheel(tmp_path, "mine", "1.0", {"mine.py": "import tensorflow\nprint(tensorflow.__file__)\n"})
    other = make_wheel(tmp_path, "numpy", "2.0.0", {"numpy/__init__.py": ""})
    added = pip_install(venv, str(wheel))
    assert added.returncode == 0, added.stderr
    imported = subprocess.run(
        [venv / "bin" / "python", "-c", "import mine"], capture_output=True, text=True, check=True
    )
    assert imported.stdout.startswith(f"{prefix}/lib/")
    refused = pip_install(venv, str(other))
    assert refused.returncode == 1
    assert "numpy==1.26.4" in refused.stdout + refused.stderr
    assert call("venv", "check", str(venv), "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "venv check") == []
    assert result["packages"] == {"mine": "1.0"}
    subprocess.run(
        [venv / "bin" / "pip", "install", "--no-index", "-q", other], env={"PIP_CONFIG_FILE": "/dev/null"}, check=True
    )
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
def test_a_folder_that_it_did_not_make_is_not_checked(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert call("venv", "check", str(tmp_path)) == 2
    assert "was not made by `provision venv create`" in capsys.readouterr().err
