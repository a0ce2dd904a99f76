"""The frameworks of stacks, and what is known about each: one file for each.

To add one, see docs/dev/add-framework.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.knowledge.frameworks.pytorch import PYTORCH
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.images import parse_reference

FRAMEWORKS: dict[str, FrameworkInterface] = {one.name: one for one in (TENSORFLOW, PYTORCH)}
TITLES = " or ".join(one.title for one in FRAMEWORKS.values())

# Minor versions of TensorFlow and PyTorch that one process cannot use together, and how it ends; measured on 2026-11-29 with the
# wheels for CPUs of 2.21.0, and 2.14.1 with triton 3.8.0. torch 2.7.1 with triton 3.3.1 works with them, in both orders.
CLASHES = {
    (
        "2.21",
        "2.14",
    ): "if TensorFlow is imported first, the first step of an optimizer of torch imports triton, and the "
    "process ends with a segmentation fault (both export the symbols of LLVM, probably the cause)",
}


def clash_of(versions: Mapping[str, str]) -> str | None:
    """How a process ends that uses these versions of TensorFlow and PyTorch, by their names; None if nothing is known."""
    minors = (".".join(versions.get(name, "").split(".")[:2]) for name in (TENSORFLOW.name, PYTORCH.name))
    return CLASHES.get((next(minors), next(minors)))


def installed_frameworks(packages: Mapping[str, str]) -> dict[str, str]:
    """The titles and versions of the frameworks among these distributions."""
    found = {
        one.title: [packages[name] for name in one.distributions if name in packages] for one in FRAMEWORKS.values()
    }
    return {title: versions[0] for title, versions in found.items() if versions}


def image_framework(image: str) -> FrameworkInterface | None:
    """The framework after which an image of a registry is named; None for other images and for files."""
    reference = parse_reference(image)
    name = reference.repository.rsplit("/", 1)[-1] if reference else ""
    return next((framework for framework in FRAMEWORKS.values() if name in framework.module_names), None)


def framework_module(modules: Iterable[str]) -> tuple[FrameworkInterface, str, tuple[int, ...]] | None:
    """The first module whose name has the version of a framework, with the framework and that version; None if there is none."""
    for name in modules:
        for framework in FRAMEWORKS.values():
            found = framework.module_of((name,))
            if found:
                return framework, *found
    return None
