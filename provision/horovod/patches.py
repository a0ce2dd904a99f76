"""Which of our patches a build of Horovod needs, by the framework's version. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.patch import Patch


def select_patches(patches: Sequence[Patch], tensorflow: str, *, gpu: bool = False) -> tuple[Patch, ...]:
    """The patches that a build against this version of TensorFlow needs, in the order in which they apply.

    `gpu`: the build is for GPUs. A CPU build does without the patches for GPUs, so that one of those changes no CPU plan.
    """
    from packaging.specifiers import SpecifierSet

    return tuple(
        patch
        for patch in sorted(patches, key=lambda one: one.name)
        if SpecifierSet(patch.applies_to).contains(tensorflow, prereleases=True) and (gpu or not patch.gpu_only)
    )
