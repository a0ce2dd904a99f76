"""Chooses the patches that a build of Horovod needs, by the version of the framework. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.patch import Patch


def select_patches(patches: Sequence[Patch], tensorflow: str, *, gpu: bool = False) -> tuple[Patch, ...]:
    """The patches that a build against this version of TensorFlow needs, in the order in which they apply.

    `gpu`: the build is for GPUs. A CPU build leaves out the patches for GPUs, so that a change of those does not change
    any CPU plan.
    """
    from packaging.specifiers import SpecifierSet

    return tuple(
        patch
        for patch in sorted(patches, key=lambda patch: patch.name)
        if SpecifierSet(patch.applies_to).contains(tensorflow, prereleases=True) and (gpu or not patch.gpu_only)
    )
