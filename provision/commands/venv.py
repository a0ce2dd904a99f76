"""`provision venv`: makes a user's own virtual environment on an environment or on the site's modules, and checks one."""

from __future__ import annotations

from pathlib import Path

from provision.commands.kernel import KernelWish, install_for_venv
from provision.commands.shared.environments import find_environment, read_store, set_by_module
from provision.commands.shared.ground import check_venv, ground_of_environment, ground_of_modules
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import EXIT_FAILED, EXIT_OK, CommandError, ConfigError
from provision.jobs.script import provided_lines
from provision.machine.configuration import shipped
from provision.machine.install.kernels import kernels_folder
from provision.machine.programs.shell import absolute, environ
from provision.machine.root.image_only import described_images, is_image_only, start_in_image
from provision.model.layout import DELIVER
from provision.model.own_venv import refuse_folder
from provision.model.quoting import bash


def run_create(args: Args) -> Outcome:
    """Make it."""
    folder = absolute(args.folder)
    refuse_folder(folder)
    site = shipped.load_site(args.site)
    ground = ground_of_modules(args, site, args.on)
    if ground is not None:
        beneath = ground.beneath
        arch = site.arch(beneath.arch)
        on, load = f"the modules {beneath.module}", provided_lines(site, arch)
        packages = ground.make_venv(Path(folder))
        job = bash("provision job KIND --venv %s --arch %s --site %s", folder, arch.name, beneath.site)
    else:
        store = read_store(site)
        env = find_environment(
            store, set_by_module("PROVISION_ENVIRONMENT") if args.on == "loaded" else args.on, args.arch, site=site
        )
        prefix = Path(store.layout.prefix(env))
        if is_image_only(prefix):
            again = bash(
                "%s/%s provision venv create %s --on %s", str(store.layout.images(env)), DELIVER, folder, str(env)
            )
            raise ConfigError(
                f"the packages of `{env}` are only in its image, which is not mounted here", hint=f"`{again}`"
            )
        ground, on = ground_of_environment(args, site, store, env, retry="--on %s"), str(env)
        beneath, packages = ground.beneath, ground.make_venv(Path(folder))
        if described_images(store, env).get("only"):
            start_in_image(Path(folder), prefix)
        by_module = site.modules.name != "none"
        load = (
            bash("module load %s", beneath.module) if by_module else bash('eval "$(provision activate %s)"', str(env)),
        )
        job = bash("provision job KIND --venv %s", folder)
    lines = [
        f"made {folder} on {on}: {len(packages)} packages",
        "",
        "use it, in this order:",
        *(f"  {line}" for line in load),
        f"  {bash('source %s', f'{folder}/bin/activate')}",
        "  pip install PACKAGE",
        "",
        f"in jobs: {job}",
    ]
    if args.kernel:
        lines += ["", _install_kernel(folder)]
    result = {"folder": folder, "environment": beneath.environment, "module": beneath.module, "packages": packages}
    return Outcome(text="\n".join(lines), result=result)


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


def run_check(args: Args) -> Outcome:
    """Check; exit 1 if something is wrong."""
    folder = Path(absolute(args.folder))
    contents, checks = check_venv(folder)
    beneath = contents.beneath
    lines = [f"folder       {folder}", f"environment  {beneath.title}"]
    lines += [line for check in checks for line in check.to_lines(named=True)]
    own = ", ".join(f"{name} {version}" for name, version in contents.own.items())
    lines.append(f"your packages: {own or 'none'}")
    return Outcome(
        text="\n".join(lines),
        result={
            "folder": str(folder),
            "environment": beneath.environment,
            "checks": [check.to_dict() for check in checks],
            "packages": dict(contents.own),
        },
        exit_code=EXIT_OK if all(check.passed for check in checks) else EXIT_FAILED,
    )
