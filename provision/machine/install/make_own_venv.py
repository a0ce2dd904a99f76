"""Make a user's virtual environment on top of a published environment or of modules of the site, and look into one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from provision.errors import CommandError, ConfigError
from provision.knowledge.frameworks import FRAMEWORKS
from provision.machine.files.disk import disk_error, disk_errors, read_given, read_json, write
from provision.machine.files.tables import read_combinations
from provision.machine.install.read_objects import linked_mpi, read_object
from provision.machine.probes.installed_packages import installed_in
from provision.machine.programs.run import capture
from provision.model import own_venv
from provision.model.quoting import bash

# Printed by the environment's Python: what it is, and where its packages are.
WHERE = (
    "import json, sys, sysconfig; paths = sysconfig.get_paths(); "
    "print(json.dumps(['%d.%d' % sys.version_info[:2], paths['purelib'], paths['platlib']]))"
)
# Printed by the venv's Python: the file of each package, without importing it.
ORIGINS = (
    "import importlib.util, json, sys; specs = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}; "
    "print(json.dumps({name: spec and spec.origin for name, spec in specs.items()}))"
)


def look_beneath(prefix: str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The Python minor of an environment, and its folders of packages, as its own Python says.

    Raises:
        CommandError: the Python does not start.
    """
    minor, *folders = json.loads(run_python(f"{prefix}/bin/python", WHERE, environ))
    return minor, tuple(dict.fromkeys(folders))


def create(
    folder: Path,
    beneath: own_venv.Beneath,
    environ: Mapping[str, str],
    *,
    python: str | None = None,
    packages: Mapping[str, str] | None = None,
    shown: Sequence[str] | None = None,
) -> dict[str, str]:
    """Make the venv; returns the packages beneath it and their versions. A venv that fails is removed again.

    `python` makes it (default: that of the prefix), with `packages` beneath it (default: those of the folders). `shown` are the
    folders that the venv must add to its path (default: all of them).

    Raises:
        ConfigError: the folder has a wrong name, or is not empty.
        CommandError: Python cannot make a venv.
        StoreError: the folder cannot be written.
    """
    own_venv.refuse_folder(str(folder))
    with disk_errors(folder):
        if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigError(f"`{folder}` already exists and is not an empty folder", hint="name a new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
    if packages is None:
        packages = installed_in(Path(path) for path in beneath.folders)
    try:
        # Without pip: ensurepip is missing on some systems, and the environment has one, which installs into the venv.
        python = python or f"{beneath.prefix}/bin/python"
        without_pip = () if "pip" not in packages else ("--without-pip",)
        done = capture((python, "-I", "-m", "venv", *without_pip, str(folder)), environ)
        if done.returncode != 0:
            raise CommandError(
                f"`{python}` could not make a virtual environment",
                evidence=(done.stderr or done.stdout).strip().splitlines()[-5:],
                hint=f"`{bash('%s -I -m venv --without-pip %s', python, str(folder))}`",
            )
        write(_site_packages(folder, beneath) / own_venv.PTH, own_venv.pth(beneath.folders if shown is None else shown))
        write(folder / own_venv.CONSTRAINTS, own_venv.constraints(beneath.title, packages.items()))
        write(folder / "pip.conf", own_venv.pip_config(str(folder)))
        for name in ("pip", "pip3") if without_pip else ():
            write(folder / "bin" / name, own_venv.pip_script(str(folder)), executable=True)
        config = (folder / "pyvenv.cfg").read_text(encoding="utf-8")
        write(folder / "pyvenv.cfg", config + beneath.config())
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise disk_error(error, folder) from error
        raise
    return dict(packages)


def read_venv(folder: Path) -> own_venv.Beneath:
    """What a venv that `create` made was made on.

    Raises:
        ConfigError: it is not such a venv.
    """
    text = read_given(str(folder / "pyvenv.cfg"), "file")
    try:
        return own_venv.read_beneath(text)
    except ValueError as error:
        raise not_made_here(folder, error) from error


def not_made_here(folder: Path, error: Exception) -> ConfigError:
    """The error for a folder that is not a venv that `create` made."""
    return ConfigError(
        f"`{folder}` was not made by `provision venv create`",
        evidence=[str(error)],
        hint="`provision venv create DIR --on loaded` makes one",
    )


def look_into(
    folder: Path, environ: Mapping[str, str], *, installed: Mapping[str, str] | None = None, family: str = ""
) -> own_venv.Contents:
    """What is in a venv that `create` made.

    `environ` are the variables with what is beneath it loaded; `installed` are the packages beneath it (default: those of its
    folders), and `family` is the MPI whose ranks the site starts.

    Raises:
        ConfigError: it is not such a venv.
        CommandError: its Python does not start.
    """
    beneath = read_venv(folder)
    try:
        recorded = own_venv.read_constraints((folder / own_venv.CONSTRAINTS).read_text(encoding="utf-8"))
        config = (folder / "pip.conf").read_text(encoding="utf-8") if (folder / "pip.conf").exists() else ""
    except (OSError, ValueError) as error:
        raise not_made_here(folder, error) from error
    if installed is None:
        installed = installed_in(Path(path) for path in beneath.folders)
    own = installed_in([_site_packages(folder, beneath)])
    names = [
        name
        for name in (*(one.package for one in FRAMEWORKS.values()), "keras", "numpy", own_venv.HOROVOD)
        if any(Path(path, name).is_dir() for path in beneath.folders)
    ]
    origins = json.loads(run_python(str(folder / "bin" / "python"), ORIGINS, environ, *names))
    return own_venv.Contents(
        beneath=beneath,
        recorded=recorded,
        installed=installed,
        own=own,
        origins=origins,
        constrained=config == own_venv.pip_config(str(folder)),
        horovod=_own_horovod(folder, beneath, own[own_venv.HOROVOD], environ, family)
        if own_venv.HOROVOD in own
        else None,
    )


def _own_horovod(
    folder: Path, beneath: own_venv.Beneath, version: str, environ: Mapping[str, str], family: str
) -> own_venv.OwnHorovod:
    """The Horovod that is installed in a venv, and the MPI libraries that it and the stack's find in this shell."""
    package = _site_packages(folder, beneath) / own_venv.HOROVOD
    built_for = read_json(package / "metadata.json") or {}
    mpi = _mpi_of(package, environ)
    return own_venv.OwnHorovod(
        version=version,
        built_for={
            one.title: built_for[name] for name, one in FRAMEWORKS.items() if isinstance(built_for.get(name), str)
        },
        families=tuple(sorted({_family_of(path) for path in mpi} - {""})),
        family=family,
        mpi=mpi,
        mpi_of_stack=next(
            filter(None, (_mpi_of(Path(path, own_venv.HOROVOD), environ) for path in beneath.folders)), ()
        ),
    )


def _mpi_of(package: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The MPI libraries that the loader finds for the extensions of a Horovod."""
    return tuple(sorted(set().union(*(linked_mpi(file, environ) for file in package.glob("*/mpi_lib*.so")))))


def _family_of(path: str) -> str:
    """The family of an MPI library, from its symbols; empty if it is not known."""
    try:
        row = read_combinations().mpi_family(read_object(path).symbols)
    except (ImportError, OSError, ValueError):
        return ""
    return row.name if row else ""


def _site_packages(folder: Path, beneath: own_venv.Beneath) -> Path:
    """The folder of a venv's own packages: that of the venv module of Python, without asking it."""
    return folder / "lib" / f"python{beneath.minor}" / "site-packages"


def run_python(python: str, program: str, environ: Mapping[str, str], *words: str) -> str:
    """What a Python prints.

    Raises:
        CommandError: it does not start, or fails.
    """
    done = capture((python, "-c", program, *words), environ)
    if done.returncode != 0:
        raise CommandError(
            f"`{python}` does not run",
            evidence=(done.stderr or done.stdout).strip().splitlines()[-5:],
            hint="load the module of the environment, then run the same command again",
        )
    return done.stdout
