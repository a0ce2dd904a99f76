"""`provision venv create DIR --on ENVIRONMENT|MODULE`: a virtual environment on an environment or on the site's modules."""

from __future__ import annotations

import argparse
from pathlib import Path

from provision.commands.kernel.install import KernelWish, install_for_venv
from provision.commands.shared.beneath import beneath_of
from provision.commands.shared.environments import find_environment, read_store
from provision.commands.shared.on_modules import arch_of_modules, beneath_modules, make_on_modules, name_for_venv
from provision.commands.shared.outcome import Outcome
from provision.errors import CommandError, ConfigError
from provision.jobs.script import provided_lines
from provision.machine.configuration import shipped
from provision.machine.install import make_own_venv
from provision.machine.install.kernels import kernels_folder
from provision.machine.programs.shell import absolute, environ
from provision.machine.root.image_only import described_images, is_image_only, start_in_image
from provision.model.layout import DELIVER
from provision.model.own_venv import refuse_folder
from provision.model.quoting import bash
from provision.profile.arch import Arch
from provision.profile.site import Site


def run(args: argparse.Namespace) -> Outcome:
    """Make it."""
    folder = absolute(args.folder)
    refuse_folder(folder)
    site = shipped.load_site(args.site)
    arch = arch_of_modules(site, args.on, args.arch)
    if arch is not None:
        return _create_on_modules(args, folder, site, arch, name_for_venv(args.site, site))
    store = read_store(site)
    env = find_environment(store, _loaded() if args.on == "loaded" else args.on, args.arch, site=site)
    record, prefix = store.record(env), Path(store.layout.prefix(env))
    if is_image_only(prefix):
        raise ConfigError(
            f"the packages of `{env}` are only in its image, which is not mounted here",
            hint=f"`{bash('%s/%s provision venv create %s --on %s', str(store.layout.images(env)), DELIVER, folder, str(env))}`",
        )
    beneath = beneath_of(site, store, env, args.site, retry="--on %s")
    packages = make_own_venv.create(Path(folder), beneath, environ())
    if described_images(store, env).get("only"):
        start_in_image(Path(folder), prefix)
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


def _create_on_modules(args: argparse.Namespace, folder: str, site: Site, arch: Arch, typed: str) -> Outcome:
    """Make it on the modules of the site that bring TensorFlow."""
    beneath, python = beneath_modules(site, arch, typed)
    packages, names = make_on_modules(folder, beneath, python), beneath.module
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

    again = bash("provision kernel install %s", folder)
    try:
        return install_for_venv(folder, KernelWish(folder=kernels_folder(None, environ()), command=again)).text
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
