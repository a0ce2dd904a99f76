"""`provision kernel list` and `provision kernel remove NAME`: the kernels that `provision kernel install` installed."""

from __future__ import annotations

import argparse
from pathlib import Path

from provision.commands.shared.outcome import Outcome
from provision.machine.programs.shell import absolute, environ


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the folder of kernels."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="your own kernels, below `~/.local/share/jupyter` (default)")
    place.add_argument("--prefix", metavar="DIR", help="those of all users of a Jupyter whose Python is below DIR")


def kernels_of(args: argparse.Namespace) -> Path:
    """The folder of kernels that the options name."""
    from provision.machine.install.kernels import kernels_folder

    return kernels_folder(absolute(args.prefix) if args.prefix else None, environ())


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the place."""
    add_place(parser)


def run_list(args: argparse.Namespace) -> Outcome:
    """List them."""
    from provision.machine.install.kernels import installed_kernels

    folder = kernels_of(args)
    kernels = installed_kernels(folder)
    width = max((len(kernel.name) for kernel in kernels), default=0)
    lines = [f"{kernel.name.ljust(width)}  {kernel.environment}  ({kernel.display_name})" for kernel in kernels]
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


def add_remove_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name and the place."""
    parser.add_argument("kernel", metavar="NAME", help="a kernel of `provision kernel list`")
    add_place(parser)


def run_remove(args: argparse.Namespace) -> Outcome:
    """Remove it. A venv that the user made stays."""
    from provision.machine.install.kernels import remove_kernel
    from provision.model.kernel import refuse_kernel_name

    refuse_kernel_name(args.kernel)
    folder = kernels_of(args)
    kernel = remove_kernel(folder, args.kernel)
    kept = kernel.venv if kernel.venv and not kernel.venv.startswith(f"{folder / kernel.name}/") else None
    text = f"removed {folder / kernel.name}" + (f"; {kept} stays" if kept else "")
    return Outcome(text=text, result={"name": kernel.name, "folder": str(folder / kernel.name), "kept": kept})
