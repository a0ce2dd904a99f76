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


def installed_frameworks(packages: Mapping[str, str]) -> dict[str, str]:
    """The titles and versions of the frameworks among these distributions."""
    versions = ((one.title, one.installed_version(packages)) for one in FRAMEWORKS.values())
    return {title: version for title, version in versions if version}


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
