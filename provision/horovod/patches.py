"""Chooses the patches that a build of Horovod needs, by the versions of its frameworks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from provision.model.patch import Patch


def select_patches(patches: Sequence[Patch], versions: Mapping[str, str], *, gpu: bool = False) -> tuple[Patch, ...]:
    """The patches that a build against these versions of frameworks needs, in the order in which they apply.

    `gpu`: the build is for GPUs. A CPU build leaves out the patches for GPUs, so that a change of those does not change
    any CPU plan.
    """
    from packaging.specifiers import SpecifierSet

    return tuple(
        patch
        for patch in sorted(patches, key=lambda patch: patch.name)
        if (gpu or not patch.gpu_only)
        and any(
            name in patch.applies_to and SpecifierSet(patch.applies_to[name]).contains(version, prereleases=True)
            for name, version in versions.items()
        )
    )
