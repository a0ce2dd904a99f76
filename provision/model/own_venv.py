"""A user's own virtual environment on a published environment, or on modules of the site: its files, and how it is judged. Pure.

The venv module of Python takes the base Python of an environment, so `--system-site-packages` would not show the stack.
A `.pth` file adds the environment's site-packages behind those of the venv; that works whichever backend built it. Modules of a
site put their packages on PYTHONPATH, which is before those of the venv: the same constraints keep pip from replacing them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.errors import ConfigError
from provision.model.quoting import bash
from provision.model.verdict import Check

PTH = "provision-environment.pth"
CONSTRAINTS = "provision-constraints.txt"
# The paths that `provision job --venv` takes, without variables; the venv module of Python refuses `:`.
VALID = re.compile(r"/[A-Za-z0-9_./@%+=-]+", re.ASCII)
# pip may bring newer ones into the venv: only builds of packages use them.
FREE = ("pip", "setuptools", "wheel")
# The packages that have the folder `tensorflow`.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow")
# Compiled against an MPI and a TensorFlow, so it has a check of its own.
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
        values = {
            "environment": self.environment,
            "modules" if self.environment is None else "module": self.module,
            "arch": self.arch,
            "prefix": self.prefix,
            "root": self.root,
            "site": self.site,
            "minor": self.minor,
            "folders": ":".join(self.folders),
        }
        return "".join(f"provision-{name} = {value}\n" for name, value in values.items() if value is not None)


def read_beneath(config: str) -> Beneath:
    """What the text of a `pyvenv.cfg` names.

    Raises:
        ValueError: `provision venv create` did not write it.
    """
    pairs = (line.partition("=") for line in config.splitlines())
    values = {name.strip(): value.strip() for name, _, value in pairs}
    of_site = "provision-modules" in values
    what = ("modules", "arch") if of_site else ("environment", "module")
    names = (*what, "prefix", "root", "site", "minor", "folders")
    missing = [name for name in names if not values.get(f"provision-{name}")]
    if missing:
        raise ValueError(f"it has no `provision-{missing[0]}`")
    first, second, prefix, root, site, minor, folders = (values[f"provision-{name}"] for name in names)
    module = first if of_site else second
    return Beneath(
        environment=None if of_site else first,
        arch=second if of_site else None,
        module=module,
        prefix=prefix,
        root=root,
        site=site,
        minor=minor,
        folders=tuple(folders.split(":")),
    )


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
    tensorflow: str | None
    """The TensorFlow against which it was compiled, from its `metadata.json`."""
    mpi: tuple[str, ...]
    mpi_of_stack: tuple[str, ...]
    families: tuple[str, ...] = ()
    """Of these MPI libraries, as far as they are known; the site's launcher starts ranks of `family`."""
    family: str = ""


def judge_venv(
    beneath: Beneath,
    *,
    published: str | None,
    recorded: Mapping[str, str],
    installed: Mapping[str, str],
    own: Mapping[str, str],
    origins: Mapping[str, str | None],
    constrained: bool,
    horovod: OwnHorovod | None,
) -> tuple[Check, ...]:
    """The checks of a venv.

    `published` is the environment that the module loads now; of modules of the site, those that load. `recorded` are the
    packages beneath the venv when it was made, `installed` those that are there now, `own` those of the venv. `origins` says
    from which file each package that must come from the stack is imported. `constrained` is whether pip still reads the
    constraints.
    """
    on = beneath.module if beneath.environment else "modules"
    again = f"`{bash('provision venv create DIR --on %s', on)}` makes a new one; install your packages there"
    checks = [_check_beneath(beneath, published, again)]
    changed = sorted(name for name in recorded if installed.get(name) != recorded[name])
    checks.append(
        Check(
            name="packages of the environment",
            passed=not changed,
            message=f"{len(recorded)} packages have the versions of when this was made"
            if not changed
            else f"changed since this was made: {_changes(changed, recorded, installed)}",
            hint=again,
        )
    )
    shadows = sorted(name for name in own if name in installed and name not in (*FREE, HOROVOD))
    checks.append(
        Check(
            name="shadowed packages",
            passed=not shadows,
            message="no package of the stack is hidden by one of yours"
            if not shadows
            else f"hidden by yours: {_changes(shadows, installed, own)}",
            hint=f"`python -m pip uninstall {' '.join(shadows)}`",
        )
    )
    foreign = sorted(name for name, path in origins.items() if not _is_below(path, beneath.folders))
    foreign = [name for name in foreign if name not in shadows and not (name == HOROVOD and horovod)]
    checks.append(
        Check(
            name="imports",
            passed=not foreign,
            message=f"{', '.join(origins)} come from the environment"
            if not foreign
            else "; ".join(f"`{name}` is imported from {origins[name] or 'nowhere'}" for name in foreign),
            hint=f"`env -u PYTHONPATH provision venv check DIR`; if it still fails: {again}",
        )
    )
    checks.append(
        Check(
            name="pip",
            passed=constrained,
            message="pip refuses other versions of the stack's packages"
            if constrained
            else f"pip does not read `{CONSTRAINTS}` anymore",
            hint=again,
        )
    )
    return (*checks, *([judge_horovod(horovod, installed)] if horovod else []))


def judge_horovod(horovod: OwnHorovod, installed: Mapping[str, str]) -> Check:
    """Whether a Horovod of the venv was compiled against the stack's TensorFlow and finds the MPI of the stack's own."""
    wanted = next((installed[name] for name in TENSORFLOW if name in installed), None)
    wrong = []
    if wanted is None or horovod.tensorflow != wanted:
        wrong.append(f"compiled for TensorFlow {horovod.tensorflow or '(not known)'}, the stack has {wanted or 'none'}")
    if not horovod.mpi:
        wrong.append("it links no MPI library that is found in this shell")
    elif not horovod.mpi_of_stack:
        if horovod.families != (horovod.family,):
            families = ", ".join(horovod.families) or "an MPI that is not known"
            wrong.append(f"it links {families} ({', '.join(horovod.mpi)}), the site starts ranks of {horovod.family}")
    elif set(horovod.mpi) != set(horovod.mpi_of_stack):
        wrong.append(f"it links {', '.join(horovod.mpi)}, the stack's Horovod {', '.join(horovod.mpi_of_stack)}")
    return Check(
        name="your Horovod",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{horovod.version}, compiled for TensorFlow {wanted}, links {', '.join(horovod.mpi)}",
        hint="load the module first; if it still fails: `python -m pip uninstall horovod`",
    )


def _check_beneath(beneath: Beneath, published: str | None, again: str) -> Check:
    """Whether what a venv was made on is still what is loaded."""
    if beneath.environment is None:
        passed = published == beneath.module
        message = (
            f"the site's modules {beneath.module} load"
            if passed
            else f"the site's modules {beneath.module} do not load"
        )
        return Check(name="environment", passed=passed, message=message, hint=again)
    return Check(
        name="environment",
        passed=published == beneath.environment,
        message=f"`{beneath.environment}` is published as `{beneath.module}`"
        if published == beneath.environment
        else f"made on `{beneath.environment}`, but `{beneath.module}` loads `{published}`"
        if published
        else f"`{beneath.environment}` is not published anymore",
        hint=again,
    )


def _changes(names: Sequence[str], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name} {before[name]} by {after[name]}" if name in after else f"{name} {before[name]}, which is gone"
        for name in names
    )


def _is_below(path: str | None, folders: Sequence[str]) -> bool:
    return path is not None and any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
