"""EasyBuild's toolchains: which modules belong to one generation, and so may be loaded together.

Names are `Name/version-toolchain-suffix`: `TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0`, `Python/3.10.4-GCCcore-11.3.0`.
Source: docs.easybuild.io, "Common toolchains" (the GCC of each); Sigma2's documentation of 2026 says that they do not mix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

GCC_OF = {
    "2019a": "8.2.0",
    "2019b": "8.3.0",
    "2020a": "9.3.0",
    "2020b": "10.2.0",
    "2021a": "10.3.0",
    "2021b": "11.2.0",
    "2022a": "11.3.0",
    "2022b": "12.2.0",
    "2023a": "12.3.0",
    "2023b": "13.2.0",
    "2024a": "13.3.0",
    "2025a": "14.2.0",
}
GENERATION_OF = {gcc: generation for generation, gcc in GCC_OF.items()}
BY_NAME = re.compile(r"-(?:foss|fosscuda|gfbf|gompi|gompic|intel|iimpi)-(\d{4}[ab])\b")
BY_GCC = re.compile(r"(?:-GCC(?:core)?-|^GCC(?:core)?/)(\d+\.\d+\.\d+)\b")


def generation(module: str) -> str | None:
    """The generation that a module belongs to, None for one that has no toolchain in its name, or an unknown one."""
    named = BY_NAME.search(module)
    if named:
        return named[1]
    compiled = BY_GCC.search(module)
    return GENERATION_OF.get(compiled[1]) if compiled else None


def mixture(modules: Iterable[str]) -> str | None:
    """Why these modules do not go together, if they do not: their libraries are built by different compilers."""
    first: dict[str, str] = {}
    for module in modules:
        found = generation(module)
        if found is not None:
            first.setdefault(found, module)
    if len(first) < 2:
        return None
    return "mixes toolchain generations: " + ", ".join(f"`{one}` is of {found}" for found, one in first.items())
