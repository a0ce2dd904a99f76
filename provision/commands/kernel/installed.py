"""`provision kernel list` and `provision kernel remove NAME`: the kernels that `provision kernel install` installed."""

from __future__ import annotations

import argparse
from pathlib import Path

from provision.commands.shared.outcome import Outcome
from provision.machine.install.kernels import installed_kernels, kernels_folder, remove_kernel
from provision.machine.programs.shell import absolute, environ
from provision.model.kernel import refuse_kernel_name
from provision.wording import columns


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
