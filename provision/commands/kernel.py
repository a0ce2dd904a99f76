"""`provision kernel`: installs kernels that start in an environment, an own venv or the site's container, and removes them."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from provision.commands.shared.beneath import (
    arch_of_modules,
    beneath_modules,
    beneath_of,
    make_on_modules,
    site_for_venv,
)
from provision.commands.shared.environments import find_environment, read_store, site_and_store
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.jobs.environment_script import EnvironmentScript, in_container, in_environment, on_modules
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists
from provision.machine.install import kernels, make_own_venv
from provision.machine.install.kernels import (
    installed_kernels,
    kernels_folder,
    refuse_kernel_folder,
    remove_kernel,
    write_kernel,
)
from provision.machine.install.make_own_venv import read_venv
from provision.machine.probes.provided import provided_python
from provision.machine.programs.shell import absolute, environ, expand_variables
from provision.machine.submission.render_jobs import render_environment_script
from provision.model.kernel import Kernel, kernel_json, kernel_name, refuse_kernel_name
from provision.model.layout import EnvironmentId
from provision.model.own_venv import Beneath
from provision.profile.site import Site
from provision.wording import columns

CONTAINER, MODULES = "container", "modules"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KernelWish:
    """How a kernel is to be installed: in which folder of kernels, under which names, by which command, or only shown."""

    folder: Path
    command: str
    name: str | None = None
    display_name: str | None = None
    dry_run: bool = False


def run_install(args: argparse.Namespace) -> Outcome:
    """Install it."""
    wish = KernelWish(
        folder=kernels_of(args),
        command=command_line(args),
        name=args.name,
        display_name=args.display_name,
        dry_run=args.dry_run,
    )
    if args.where == CONTAINER:
        refuse_unused(args, "a container is the same on all kinds of node", "--arch")
        return _for_container(args, wish)
    refuse_unused(args, "only `container` has images and overlays", "--image", "--overlay")
    if exists(f"{absolute(args.where)}/pyvenv.cfg"):
        return install_for_venv(absolute(args.where), wish)
    return _for_modules(args, wish) if args.where == MODULES else _for_environment(args, wish)


def install_for_venv(folder: str, wish: KernelWish) -> Outcome:
    """Install a kernel for a venv of `provision venv create`, in which `ipykernel` is installed if it is missing.

    Raises:
        ConfigError: it is another venv, or the kernel exists.
        CommandError: pip cannot install `ipykernel`.
    """
    beneath = read_venv(Path(folder))
    site = dataclasses.replace(shipped.load_site(beneath.site), root=beneath.root)
    made = _kernel(wish, site, beneath, Path(folder).name, venv=folder)
    if not wish.dry_run:
        variables = _variables(site, beneath)
        if not kernels.has_ipykernel(f"{folder}/bin/python", variables):
            kernels.install_ipykernel(Path(folder), variables, site.network.where_to_download)
    return _written(
        wish, made, _script(site, beneath, folder), f"`{folder}/bin/pip install PACKAGE` adds packages to it"
    )


def _variables(site: Site, beneath: Beneath) -> Mapping[str, str]:
    """The variables with which the Python of a venv starts: with the modules on which it was made."""
    if beneath.environment is not None:
        return environ()
    return provided_python(site, dataclasses.replace(site.arch(beneath.arch), provided=beneath.modules)).environ


def _for_environment(args: argparse.Namespace, wish: KernelWish) -> Outcome:
    """A kernel for a published environment."""
    site, store = site_and_store(args)
    env = find_environment(store, args.where, args.arch, site=site)
    beneath = beneath_of(site, store, env, args.site, retry="provision kernel install %s")

    def make(venv: Path) -> None:
        make_own_venv.create(venv, beneath, environ())

    return _on(wish, site, beneath, beneath.module, f"{beneath.prefix}/bin/python", environ(), make)


def _for_modules(args: argparse.Namespace, wish: KernelWish) -> Outcome:
    """A kernel for the site's own modules.

    Raises:
        ConfigError: the site has no such modules, or several archs have.
    """
    site = shipped.load_site(args.site)
    arch = arch_of_modules(site, MODULES, args.arch)
    assert arch is not None, "a site without such modules was refused"
    beneath, python = beneath_modules(site, arch, site_for_venv(args.site, site))
    name = arch.provided[-1] if len(arch.provided) == 1 else f"{site.name}-modules"

    def make(venv: Path) -> None:
        make_on_modules(str(venv), beneath, python)

    return _on(wish, site, beneath, name, python.executable, python.environ, make)


def _on(
    wish: KernelWish,
    site: Site,
    beneath: Beneath,
    name: str,
    python: str,
    variables: Mapping[str, str],
    make: Callable[[Path], None],
) -> Outcome:
    """A kernel on what has this Python. If that has no `ipykernel`, `make` makes a venv of the kernel on top of it for that."""
    made = _kernel(wish, site, beneath, name)
    if kernels.has_ipykernel(python, variables):
        what = "the environment itself has" if beneath.environment else "the modules themselves have"
        return _written(wish, made, _script(site, beneath, None), f"{what} `ipykernel`")
    venv = wish.folder / made.name / "venv"
    if not wish.dry_run:
        try:
            make(venv)
            kernels.install_ipykernel(venv, variables, site.network.where_to_download)
        except BaseException:
            kernels.discard(venv.parent)
            raise
    note = f"`ipykernel` is in {venv}; `%pip install PACKAGE` in a notebook adds packages there"
    return _written(wish, dataclasses.replace(made, venv=str(venv)), _script(site, beneath, str(venv)), note)


def _for_container(args: argparse.Namespace, wish: KernelWish) -> Outcome:
    """A kernel for the site's container, in the form of Open OnDemand."""
    site = shipped.load_site(args.site)
    overlays = tuple(path if path.startswith("$") else absolute(path) for path in args.overlay)
    script = in_container(site, image=args.image, overlays=overlays)
    made = Kernel(
        name=wish.name or kernel_name(f"{site.name}-container"),
        display_name=wish.display_name or f"TensorFlow in a container ({site.name})",
        environment=script.image or "",
        site=site.typed,
    )
    refuse_kernel_name(made.name)
    refuse_kernel_folder(wish.folder, made.name)
    shifter = script.container is not None and script.container.command == "shifter"
    files = (*([] if shifter else [made.environment]), *script.overlays)
    missing = [path for path in files if not exists(expand_variables(path))]
    if missing and not wish.dry_run:
        raise ConfigError(
            f"there is no file `{expand_variables(missing[0])}`",
            evidence=[f"it is the image or an overlay of site `{site.name}`, as the profile or your option names it"],
            hint=f"run this at the site; `provision job overlay --site {site.typed}` writes the job that makes its overlay",
        )
    return _written(
        wish, made, script, "the image or an overlay must contain `ipykernel`; one of `provision job overlay` does"
    )


def _kernel(wish: KernelWish, site: Site, beneath: Beneath, default: str, *, venv: str | None = None) -> Kernel:
    """The kernel for a published environment, or for a venv on one.

    Raises:
        ConfigError: the name is not valid, or is taken.
    """
    arch = beneath.environment.split("/")[0] if beneath.environment else beneath.arch
    made = Kernel(
        name=kernel_name(default) if wish.name is None else wish.name,
        display_name=wish.display_name or f"{default} ({site.name}, {arch})",
        environment=beneath.title,
        site=beneath.site,
        venv=venv,
    )
    refuse_kernel_name(made.name)
    refuse_kernel_folder(wish.folder, made.name)
    return made


def _script(site: Site, beneath: Beneath, venv: str | None) -> EnvironmentScript:
    """The script for a published environment, or for a venv on one."""
    if beneath.environment is None:
        return on_modules(site, site.arch(beneath.arch), modules=beneath.modules, venv=venv)
    env = EnvironmentId.parse(beneath.environment)
    layout = read_store(site).layout
    return in_environment(
        site,
        environment=beneath.environment,
        module=beneath.module,
        modulepath=f"{layout.modules(env.arch)}/{site.modules.module_kind}",
        activate=f"{layout.records_folder(env)}/activate.sh",
        prefix=beneath.prefix,
        venv=venv,
    )


def _written(wish: KernelWish, made: Kernel, script: EnvironmentScript, note: str) -> Outcome:
    """Write the kernel, or print its files."""
    again = f"`provision kernel remove {made.name}`, then install it again"
    text = render_environment_script(script, command=wish.command, again=again)
    path = wish.folder / made.name
    result = {
        "name": made.name,
        "display_name": made.display_name,
        "folder": str(path),
        "environment": made.environment,
        "venv": made.venv,
        "written": not wish.dry_run,
    }
    if wish.dry_run:
        files = {path / "kernel.json": kernel_json(made, str(path / "python")), path / "python": text}
        lines = [f"{name}:\n{content}" for name, content in files.items()]
        return Outcome(text="\n".join((*lines, "nothing was written")), result=result)
    write_kernel(wish.folder, made, text)
    shown = f"Jupyter shows it as `{made.display_name}`; reload its page"
    return Outcome(text=f"installed {path}\n{note}\n\n{shown}", result=result)


def kernels_of(args: argparse.Namespace) -> Path:
    """The folder of kernels that the options name."""
    return kernels_folder(absolute(args.prefix) if args.prefix else None, environ())


def run_list(args: argparse.Namespace) -> Outcome:
    """List them."""
    folder = kernels_of(args)
    kernels = installed_kernels(folder)
    lines = columns([(kernel.name, f"{kernel.environment}  ({kernel.display_name})") for kernel in kernels])
    return Outcome(
        text="\n".join(lines or [f"no kernel of `provision kernel install` in {folder}"]),
        result={
            "folder": str(folder),
            "kernels": [
                {"name": one.name, "display_name": one.display_name, "environment": one.environment, "venv": one.venv}
                for one in kernels
            ],
        },
    )


def run_remove(args: argparse.Namespace) -> Outcome:
    """Remove it. A venv that the user made stays."""
    refuse_kernel_name(args.kernel)
    folder = kernels_of(args)
    kernel = remove_kernel(folder, args.kernel)
    kept = kernel.venv if kernel.venv and not kernel.venv.startswith(f"{folder / kernel.name}/") else None
    text = f"removed {folder / kernel.name}" + (f"; {kept} stays" if kept else "")
    return Outcome(text=text, result={"name": kernel.name, "folder": str(folder / kernel.name), "kept": kept})
