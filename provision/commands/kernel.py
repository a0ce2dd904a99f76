"""`provision kernel`: installs kernels that start in an environment, an own venv or the site's container, and removes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from provision.commands.shared.environments import find_environment, site_and_store
from provision.commands.shared.ground import (
    Ground,
    ground_of_environment,
    ground_of_modules,
    ground_of_venv,
)
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.jobs.environment_script import EnvironmentScript, in_container
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists
from provision.machine.install import kernels
from provision.machine.programs.shell import absolute, environ, expand_variables
from provision.machine.submission.render_jobs import render_environment_script
from provision.model.kernel import Kernel, kernel_json, kernel_name, refuse_kernel_name
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


def run_install(args: Args) -> Outcome:
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
    if args.where == MODULES:
        site = shipped.load_site(args.site)
        ground = ground_of_modules(args, site, MODULES)
        assert ground is not None, "a site without such modules was refused"
        modules = ground.beneath.modules
        return _install_on(wish, ground, modules[0] if len(modules) == 1 else f"{site.name}-modules")
    site, store = site_and_store(args)
    env = find_environment(store, args.where, args.arch, site=site)
    ground = ground_of_environment(args, site, store, env, retry="provision kernel install %s")
    return _install_on(wish, ground, ground.beneath.module)


def install_for_venv(folder: str, wish: KernelWish) -> Outcome:
    """Install a kernel for a venv of `provision venv create`, in which `ipykernel` is installed if it is missing.

    Raises:
        ConfigError: it is another venv, or the kernel exists.
        CommandError: pip cannot install `ipykernel`.
    """
    ground = ground_of_venv(Path(folder))
    made = _kernel_on(wish, ground, Path(folder).name, venv=folder)
    if not wish.dry_run and not kernels.has_ipykernel(f"{folder}/bin/python", ground.environ):
        kernels.install_ipykernel(Path(folder), ground.environ, ground.site.network.where_to_download)
    return _written(wish, made, ground.script(folder), f"`{folder}/bin/pip install PACKAGE` adds packages to it")


def _install_on(wish: KernelWish, ground: Ground, name: str) -> Outcome:
    """A kernel on an environment or modules. If they have no `ipykernel`, a venv of the kernel on top of them has it."""
    made = _kernel_on(wish, ground, name)
    if kernels.has_ipykernel(ground.python, ground.environ):
        what = "the modules themselves have" if ground.provided else "the environment itself has"
        return _written(wish, made, ground.script(None), f"{what} `ipykernel`")
    venv = wish.folder / made.name / "venv"
    if not wish.dry_run:
        try:
            ground.make_venv(venv)
            kernels.install_ipykernel(venv, ground.environ, ground.site.network.where_to_download)
        except BaseException:
            kernels.discard(venv.parent)
            raise
    note = f"`ipykernel` is in {venv}; `%pip install PACKAGE` in a notebook adds packages there"
    return _written(wish, dataclasses.replace(made, venv=str(venv)), ground.script(str(venv)), note)


def _for_container(args: Args, wish: KernelWish) -> Outcome:
    """A kernel for the site's container, in the form of Open OnDemand."""
    site = shipped.load_site(args.site)
    overlays = tuple(path if path.startswith("$") else absolute(path) for path in args.overlay)
    script = in_container(site, image=args.image, overlays=overlays)
    title = f"TensorFlow in a container ({site.name})"
    made = _kernel(wish, f"{site.name}-container", title, environment=script.image or "", site=site.typed)
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


def _kernel_on(wish: KernelWish, ground: Ground, default: str, *, venv: str | None = None) -> Kernel:
    """The kernel on an environment or modules, or for a venv on them; by default, its names are made from this text."""
    beneath = ground.beneath
    arch = beneath.environment.split("/")[0] if beneath.environment else beneath.arch
    title = f"{default} ({ground.site.name}, {arch})"
    return _kernel(wish, default, title, environment=beneath.title, site=beneath.site, venv=venv)


def _kernel(wish: KernelWish, name: str, title: str, *, environment: str, site: str, venv: str | None = None) -> Kernel:
    """The kernel, with these names if none were typed.

    Raises:
        ConfigError: the name is not valid, or is taken.
    """
    made = Kernel(
        name=kernel_name(name) if wish.name is None else wish.name,
        display_name=wish.display_name or title,
        environment=environment,
        site=site,
        venv=venv,
    )
    refuse_kernel_name(made.name)
    kernels.refuse_kernel_folder(wish.folder, made.name)
    return made


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
    kernels.write_kernel(wish.folder, made, text)
    shown = f"Jupyter shows it as `{made.display_name}`; reload its page"
    return Outcome(text=f"installed {path}\n{note}\n\n{shown}", result=result)


def kernels_of(args: Args) -> Path:
    """The folder of kernels that the options name."""
    return kernels.kernels_folder(absolute(args.prefix) if args.prefix else None, environ())


def run_list(args: Args) -> Outcome:
    """List them."""
    folder = kernels_of(args)
    there = kernels.installed_kernels(folder)
    lines = columns([(kernel.name, f"{kernel.environment}  ({kernel.display_name})") for kernel in there])
    return Outcome(
        text="\n".join(lines or [f"no kernel of `provision kernel install` in {folder}"]),
        result={
            "folder": str(folder),
            "kernels": [
                {"name": one.name, "display_name": one.display_name, "environment": one.environment, "venv": one.venv}
                for one in there
            ],
        },
    )


def run_remove(args: Args) -> Outcome:
    """Remove it. A venv that the user made stays."""
    refuse_kernel_name(args.kernel)
    folder = kernels_of(args)
    kernel = kernels.remove_kernel(folder, args.kernel)
    kept = kernel.venv if kernel.venv and not kernel.venv.startswith(f"{folder / kernel.name}/") else None
    text = f"removed {folder / kernel.name}" + (f"; {kept} stays" if kept else "")
    return Outcome(text=text, result={"name": kernel.name, "folder": str(folder / kernel.name), "kept": kept})
