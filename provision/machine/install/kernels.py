"""The kernels of Jupyter that this tool installs: their folders, and the `ipykernel` that they need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from provision.errors import CommandError, ConfigError
from provision.machine.files.disk import disk_errors, names_in, read_json, write
from provision.machine.install.make_own_venv import run_python
from provision.machine.programs.run import capture
from provision.model.kernel import Kernel, kernel_json, read_kernel
from provision.model.quoting import bash

# An ipykernel and what it needs are some 40 packages.
INSTALL_S = 900


def kernels_folder(prefix: str | None, environ: Mapping[str, str]) -> Path:
    """Where Jupyter finds kernels: below a prefix, or the user's own.

    Source: `jupyter_data_dir` of jupyter_core 5.
    """
    if prefix is not None:
        return Path(prefix) / "share" / "jupyter" / "kernels"
    data = environ.get("JUPYTER_DATA_DIR")
    if not data:
        share = environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        data = os.path.join(share, "jupyter")
    return Path(data) / "kernels"


def installed_kernels(folder: Path) -> list[Kernel]:
    """Our kernels in a folder of kernels, by name."""
    found = (kernel_in(folder, name) for name in names_in(str(folder)))
    return [kernel for kernel in found if kernel]


def kernel_in(folder: Path, name: str) -> Kernel | None:
    """Our kernel of this name; None if there is none, or if it is not one of ours."""
    data = read_json(folder / name / "kernel.json")
    return read_kernel(name, data) if data else None


def refuse_kernel_folder(folder: Path, name: str) -> None:
    """Raise a `ConfigError` if there is a kernel of this name already."""
    path = folder / name
    if os.path.lexists(path):
        ours = kernel_in(folder, name)
        raise ConfigError(
            f"there is a kernel `{name}` already: {path}",
            evidence=[f"it starts in {ours.environment}"] if ours else ["this tool did not install it"],
            hint=f"`provision kernel remove {name}`, or another name with `--name`" if ours else "`--name OTHER`",
        )


def write_kernel(folder: Path, kernel: Kernel, script: str) -> Path:
    """Write `kernel.json` and the script that starts Python; returns the folder of the kernel.

    Raises:
        StoreError: the folder cannot be written.
    """
    path = folder / kernel.name
    write(path / "python", script, executable=True)
    write(path / "kernel.json", kernel_json(kernel, str(path / "python")))
    return path


def remove_kernel(folder: Path, name: str) -> Kernel:
    """Remove one of our kernels, with the venv that was made for it alone.

    Raises:
        ConfigError: there is none, or it is not one of ours.
        StoreError: it cannot be removed.
    """
    kernel = kernel_in(folder, name)
    if kernel is None:
        other = (folder / name / "kernel.json").exists()
        raise ConfigError(
            f"`{name}` is not a kernel of `provision kernel install`" if other else f"there is no kernel `{name}`",
            evidence=[f"looked in {folder}"],
            hint=f"`jupyter kernelspec remove {name}`" if other else "`provision kernel list`",
        )
    with disk_errors(folder / name):
        shutil.rmtree(folder / name)
    return kernel


def discard(folder: Path) -> None:
    """Remove what there is of a kernel that could not be installed."""
    shutil.rmtree(folder, ignore_errors=True)


def has_ipykernel(python: str, environ: Mapping[str, str]) -> bool:
    """Whether this Python finds the package with which Jupyter talks.

    Raises:
        CommandError: it does not start.
    """
    program = "import importlib.util; print(importlib.util.find_spec('ipykernel_launcher') is not None)"
    return run_python(python, program, environ).split()[-1:] == ["True"]


def install_ipykernel(venv: Path, environ: Mapping[str, str], where: str | None) -> None:
    """Install `ipykernel` into a user's venv with its pip, which leaves the packages of the stack as they are.

    `where` names the nodes that reach the package index, as a phrase to follow `on`.

    Raises:
        CommandError: pip failed; without network, its message says so.
    """
    # Without bytecode, which Python writes for what a notebook imports: homes have few files (here half of 10,000).
    options = ("--no-compile", "--disable-pip-version-check", "-q")
    argv = (str(venv / "bin" / "python"), "-m", "pip", "install", *options, "ipykernel")
    done = capture(argv, environ, timeout_s=INSTALL_S, needs="index")
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
        command = bash("%s -m pip install ipykernel", str(venv / "bin" / "python"))
        raise CommandError(
            f"pip could not install `ipykernel` into `{venv}`, but Jupyter needs it",
            evidence=said[-4:],
            hint=f"run the same command again on {where or 'a node'} that reaches the package index; "
            f"`{command}` shows the whole reason",
        )
