"""`provision venv create DIR --on ENVIRONMENT|MODULE`: a virtual environment on an environment or on the site's modules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import beneath_of, find_environment, read_store
from provision.errors import ConfigError, PlanError
from provision.machine.programs.shell import absolute, environ
from provision.model.own_venv import TENSORFLOW

if TYPE_CHECKING:
    from provision.profile.arch import Arch
    from provision.profile.site import Site


def run(args: argparse.Namespace) -> Outcome:
    """Make it."""
    from pathlib import Path

    from provision.machine.configuration import shipped
    from provision.machine.install import make_own_venv
    from provision.model.own_venv import refuse_folder
    from provision.model.quoting import bash

    folder = absolute(args.folder)
    refuse_folder(folder)
    site = shipped.load_site(args.site)
    arch = _arch_of_modules(site, args.on, args.arch)
    if arch is not None:
        return _create_on_modules(args, folder, site, arch, absolute(args.site) if "/" in args.site else site.name)
    store = read_store(site)
    env = find_environment(store, _loaded() if args.on == "loaded" else args.on, args.arch, site=site)
    record = store.record(env)
    beneath = beneath_of(site, store, env, args.site, retry="--on %s")
    packages = make_own_venv.create(Path(folder), beneath, environ())
    if (record and record.modules) or site.modules.name != "none":
        load = bash("module load %s", beneath.module)
    else:
        load = bash('eval "$(provision activate %s)"', str(env))
    lines = [
        f"made {folder} on {env}: {len(packages)} packages",
        "",
        "use it, in this order:",
        f"  {load}",
        f"  {bash('source %s', f'{folder}/bin/activate')}",
        "  pip install PACKAGE",
        "",
        f"in jobs: {bash('provision job KIND --venv %s', folder)}",
    ]
    if args.kernel:
        lines += ["", _install_kernel(folder)]
    return Outcome(
        text="\n".join(lines),
        result={"folder": folder, "environment": str(env), "module": beneath.module, "packages": packages},
    )


def _arch_of_modules(site: Site, on: str, arch: str | None) -> Arch | None:
    """The arch whose own modules of the site `--on` names; None if it names an environment.

    Raises:
        ConfigError: several archs have such modules, or the arch has none.
    """
    from provision.profile.patterns import MODULE

    archs = [site.arch(arch)] if arch else site.archs
    found = [one for one in archs if on in one.provided or (on == "modules" and one.provided)]
    if not found and on != "modules":
        return None
    if not found:
        raise ConfigError(
            f"site `{site.name}` has no modules with TensorFlow" + (f" for arch `{arch}`" if arch else ""),
            evidence=[f"`archs.*.provided` in `{site.origin}` is empty"],
            hint="`provision list` shows the environments that `--on` can name",
        )
    if len({one.provided for one in found}) > 1:
        raise ConfigError(
            f"`--on {on}` matches the modules of several archs",
            evidence=[f"`{one.name}`: {' '.join(one.provided)}" for one in found],
            hint=f"add `--arch {found[0].name}`",
        )
    if any(not MODULE.fullmatch(name) for name in found[0].provided):
        raise ConfigError(
            f"`archs.{found[0].name}.provided` has a name that is not valid", hint=f"edit `{site.origin}`"
        )
    return found[0]


def _create_on_modules(args: argparse.Namespace, folder: str, site: Site, arch: Arch, typed: str) -> Outcome:
    """Make it on the modules of the site that bring TensorFlow.

    Raises:
        PlanError: they do not load here, or they contain no TensorFlow.
    """
    from pathlib import Path

    from provision.jobs.script import provided_lines
    from provision.machine.install import make_own_venv
    from provision.machine.probes.provided import provided_python
    from provision.model.own_venv import Beneath
    from provision.model.quoting import bash

    python = provided_python(site, arch)
    names = " ".join(arch.provided)
    if not any(name in python.packages for name in TENSORFLOW):
        raise PlanError(
            f"the modules {names} contain no TensorFlow",
            evidence=[
                f"`{python.executable}` finds {len(python.packages)} packages, and none of {', '.join(TENSORFLOW)}"
            ],
            hint=f"`provision modules tensorflow --site {site.typed}` lists the site's modules with TensorFlow",
        )
    beneath = Beneath(
        environment=None,
        module=names,
        arch=arch.name,
        prefix=python.prefix,
        root=str(site.root),
        site=typed,
        minor=python.minor,
        folders=(*python.added, *python.folders),
    )
    packages = make_own_venv.create(
        Path(folder),
        beneath,
        python.environ,
        python=python.executable,
        packages=python.packages,
        shown=python.folders,
    )
    lines = [
        f"made {folder} on the modules {names}: {len(packages)} packages",
        "",
        "use it, in this order:",
        *(f"  {line}" for line in provided_lines(site, arch)),
        f"  {bash('source %s', f'{folder}/bin/activate')}",
        "  pip install PACKAGE",
        "",
        f"in jobs: {bash('provision job KIND --venv %s --arch %s --site %s', folder, arch.name, typed)}",
    ]
    if args.kernel:
        lines += ["", _install_kernel(folder)]
    return Outcome(
        text="\n".join(lines), result={"folder": folder, "environment": None, "module": names, "packages": packages}
    )


def _install_kernel(folder: str) -> str:
    """Install a kernel for the new venv; what that prints.

    Raises:
        CommandError: `ipykernel` cannot be installed; the venv stays.
    """

    from provision.commands.kernel.install import Wish, install_for_venv
    from provision.errors import CommandError
    from provision.machine.install.kernels import kernels_folder
    from provision.model.quoting import bash

    again = bash("provision kernel install %s", folder)
    try:
        return install_for_venv(folder, Wish(folder=kernels_folder(None, environ()), command=again)).text
    except CommandError as error:
        error.hint = (
            f"the virtual environment is complete; for Jupyter run `{again}` where pip reaches the package index"
        )
        raise


def _loaded() -> str:
    """The environment whose module this shell has loaded.

    Raises:
        ConfigError: there is none.
    """
    name = environ().get("PROVISION_ENVIRONMENT")
    if not name:
        raise ConfigError(
            "no module of `provision` is loaded in this shell",
            evidence=[f"LOADEDMODULES: {environ().get('LOADEDMODULES') or 'nothing'}"],
            hint="`module load tensorflow/VERSION`, then this command; `provision list` lists the modules",
        )
    return name
