"""A user's own virtual environment on a published environment, or on modules of the site: its files, and how it is judged. Pure.

The venv module of Python takes the base Python of an environment, so `--system-site-packages` would not show the stack.
A `.pth` file adds the environment's site-packages behind those of the venv; that works whichever backend built it. Modules of a
site put their packages on PYTHONPATH, which is before those of the venv: the same constraints keep pip from replacing them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from provision.errors import ConfigError
from provision.knowledge.frameworks import installed_frameworks
from provision.model.check import Check
from provision.model.quoting import bash

PTH = "provision-environment.pth"
CONSTRAINTS = "provision-constraints.txt"
# The paths that `provision job --venv` takes, without variables; the venv module of Python refuses `:`.
VALID = re.compile(r"/[A-Za-z0-9_./@%+=-]+", re.ASCII)
# pip may bring newer ones into the venv: only builds of packages use them.
FREE = ("pip", "setuptools", "wheel")
# Compiled against an MPI and a framework, so it has a check of its own.
HOROVOD = "horovod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beneath:
    """What a venv was made on: an environment below a root, or modules of a site, and its folders of packages."""

    environment: str | None
    """None: `modules` of the site, for one of its archs."""
    module: str
    """The one that loads the environment, or those of the site, with a blank between two."""
    prefix: str
    root: str
    site: str
    minor: str
    """Of the Python, such as `3.11`."""
    folders: tuple[str, ...]
    arch: str | None = None
    """The arch for which the modules are; None for an environment, whose name has it."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of the site; none if it is an environment."""
        return tuple(self.module.split()) if self.environment is None else ()

    @property
    def title(self) -> str:
        """What it is, for a message."""
        return self.environment or self.module

    def config(self) -> str:
        """The lines of `pyvenv.cfg`: Python and virtualenv ignore keys that they do not know. Job scripts read them too."""
        values = {**dataclasses.asdict(self), "folders": ":".join(self.folders)}
        if self.environment is None:
            values["modules"] = values.pop("module")
        return "".join(f"provision-{name} = {value}\n" for name, value in values.items() if value is not None)


def read_beneath(config: str) -> Beneath:
    """What the text of a `pyvenv.cfg` names.

    Raises:
        ValueError: `provision venv create` did not write it.
    """
    pairs = (line.partition("=") for line in config.splitlines())
    values = {
        name.strip().removeprefix("provision-"): value.strip() for name, _, value in pairs if "provision-" in name
    }
    what = ("modules", "arch") if "modules" in values else ("environment", "module")
    for name in (*what, "prefix", "root", "site", "minor", "folders"):
        if not values.get(name):
            raise ValueError(f"it has no `provision-{name}`")
    known: dict[str, Any] = {field.name: values.get(field.name) for field in dataclasses.fields(Beneath)}
    folders = tuple(values["folders"].split(":"))
    return Beneath(**{**known, "module": values.get("modules") or values["module"], "folders": folders})


def refuse_folder(path: str) -> None:
    """Raise for the path of a folder that cannot become a venv: programs of the venv, and job scripts, contain it.

    Raises:
        ConfigError: it has another character than letters, digits and `_./@%+=-`.
    """
    if not VALID.fullmatch(path):
        raise ConfigError(
            f"{path!r} is not a valid folder of a virtual environment: letters, digits and `_./@%+=-`",
            hint="`provision venv create ~/my-venv --on loaded`",
        )


def pth(folders: Iterable[str]) -> str:
    """The `.pth` file: `addsitedir` adds a folder and carries out its own `.pth` files, which a line with a path does not."""
    return "".join(f"import site; site.addsitedir({folder!r})\n" for folder in folders)


def constraints(environment: str, packages: Iterable[tuple[str, str]]) -> str:
    """The constraints file of pip: a package of the environment has exactly its version there."""
    lines = [f"{name}=={version}" for name, version in packages if name not in FREE]
    return "\n".join((f"# The packages of {environment}: pip refuses other versions of them.", *lines, ""))


def read_constraints(text: str) -> dict[str, str]:
    """Names and versions in a constraints file that `constraints` wrote."""
    pairs = (line.partition("==") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): version.strip() for name, equal, version in pairs if equal}


def pip_config(folder: str) -> str:
    """The `pip.conf` of a venv: pip reads it whenever the venv's own Python runs it."""
    return f"[install]\nconstraint = {PurePosixPath(folder, CONSTRAINTS).as_uri()}\n"


def pip_script(folder: str) -> str:
    """The program `bin/pip`: the environment's own pip, run by the venv's Python, which installs into the venv."""
    return f'#!/bin/sh\nexec {bash("%s", f"{folder}/bin/python")} -m pip "$@"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHorovod:
    """A Horovod that is installed in a venv; `mpi` and `mpi_of_stack` are the MPI libraries that are found for each now."""

    version: str
    built_for: Mapping[str, str]
    """The titles and versions of the frameworks against which it was compiled, from its `metadata.json`."""
    mpi: tuple[str, ...]
    mpi_of_stack: tuple[str, ...]
    families: tuple[str, ...] = ()
    """Of these MPI libraries, as far as they are known; the site's launcher starts ranks of `family`."""
    family: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a venv and beneath it, now."""

    beneath: Beneath
    recorded: Mapping[str, str]
    """The packages that were beneath it when it was made."""
    installed: Mapping[str, str]
    """Those that are beneath it now."""
    own: Mapping[str, str]
    """Those of the venv."""
    origins: Mapping[str, str | None]
    """From which file each package that must come from the stack is imported."""
    constrained: bool
    """Whether pip still reads the constraints."""
    horovod: OwnHorovod | None


def judge_venv(venv: Contents, published: str | None) -> tuple[Check, ...]:
    """The checks of a venv. `published` is the environment that the module loads now; of modules, those that load."""
    beneath, installed, own = venv.beneath, venv.installed, venv.own
    create = bash("provision venv create DIR --on %s", beneath.module if beneath.environment else "modules")
    again = f"`{create}` makes a new one; install your packages there"
    changed = sorted(name for name in venv.recorded if installed.get(name) != venv.recorded[name])
    shadows = sorted(name for name in own if name in installed and name not in (*FREE, HOROVOD))
    foreign = [
        f"`{name}` is imported from {path or 'nowhere'}"
        for name, path in sorted(venv.origins.items())
        if not (_is_below(path, beneath.folders) or name in shadows or (name == HOROVOD and venv.horovod))
    ]
    checks = (
        _check_beneath(beneath, published, again),
        _check(
            "packages of the environment",
            f"{len(venv.recorded)} packages have the versions of when this was made",
            f"changed since this was made: {_changes(changed, venv.recorded, installed)}" if changed else "",
            again,
        ),
        _check(
            "shadowed packages",
            "no package of the stack is hidden by one of yours",
            f"hidden by yours: {_changes(shadows, installed, own)}" if shadows else "",
            f"`python -m pip uninstall {' '.join(shadows)}`",
        ),
        _check(
            "imports",
            f"{', '.join(venv.origins)} come from the environment",
            "; ".join(foreign),
            f"`env -u PYTHONPATH provision venv check DIR`; if it still fails: {again}",
        ),
        _check(
            "pip",
            "pip refuses other versions of the stack's packages",
            "" if venv.constrained else f"pip does not read `{CONSTRAINTS}` anymore",
            again,
        ),
    )
    return (*checks, *([_check_horovod(venv.horovod, installed)] if venv.horovod else []))


def _check(name: str, good: str, wrong: str, hint: str) -> Check:
    """A check with these words, which has passed if there are none about what is wrong."""
    return Check(name=name, passed=not wrong, message=wrong or good, hint=hint)


def _check_beneath(beneath: Beneath, published: str | None, again: str) -> Check:
    """Whether what a venv was made on is still what is loaded."""
    wrong = ""
    if beneath.environment is None:
        if published != beneath.module:
            wrong = f"the site's modules {beneath.module} do not load"
        return _check("environment", f"the site's modules {beneath.module} load", wrong, again)
    if published is None:
        wrong = f"`{beneath.environment}` is not published anymore"
    elif published != beneath.environment:
        wrong = f"made on `{beneath.environment}`, but `{beneath.module}` loads `{published}`"
    return _check("environment", f"`{beneath.environment}` is published as `{beneath.module}`", wrong, again)


def _check_horovod(horovod: OwnHorovod, installed: Mapping[str, str]) -> Check:
    """Whether a Horovod of the venv was compiled against the stack's frameworks and finds the MPI of the stack's own."""
    there, built_for = installed_frameworks(installed), horovod.built_for
    libraries, wrong = ", ".join(horovod.mpi), []
    if not built_for or not built_for.items() <= there.items():
        wrong.append(
            f"compiled for {_versions(built_for) or 'no known framework'}, the stack has {_versions(there) or 'none'}"
        )
    if not horovod.mpi:
        wrong.append("it links no MPI library that is found in this shell")
    elif not horovod.mpi_of_stack and horovod.families != (horovod.family,):
        families = ", ".join(horovod.families) or "an MPI that is not known"
        wrong.append(f"it links {families} ({libraries}), the site starts ranks of {horovod.family}")
    elif horovod.mpi_of_stack and set(horovod.mpi) != set(horovod.mpi_of_stack):
        wrong.append(f"it links {libraries}, the stack's Horovod {', '.join(horovod.mpi_of_stack)}")
    return _check(
        "your Horovod",
        f"{horovod.version}, compiled for {_versions(built_for)}, links {libraries}",
        "; ".join(wrong),
        "load the module first; if it still fails: `python -m pip uninstall horovod`",
    )


def _versions(frameworks: Mapping[str, str]) -> str:
    return " and ".join(f"{title} {version}" for title, version in frameworks.items())


def _changes(names: Sequence[str], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name} {before[name]} by {after[name]}" if name in after else f"{name} {before[name]}, which is gone"
        for name in names
    )


def _is_below(path: str | None, folders: Sequence[str]) -> bool:
    return path is not None and any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
