"""EasyBuild's toolchains: which modules belong to the same generation and may therefore be loaded together.

Names are `Name/version-toolchain-suffix`: `TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0`, `Python/3.10.4-GCCcore-11.3.0`.
Sources: docs.easybuild.io, "Common toolchains" (the GCC of each generation); Sigma2's documentation of 2026 (generations
must not be mixed).
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
    """The generation of a module; None if its name contains no toolchain, or an unknown one."""
    toolchain = BY_NAME.search(module)
    if toolchain:
        return toolchain[1]
    gcc = BY_GCC.search(module)
    return GENERATION_OF.get(gcc[1]) if gcc else None


def mixture(modules: Iterable[str]) -> str | None:
    """The reason why these modules must not be loaded together; None if they may.

    Modules of different generations have libraries that different compilers built.
    """
    first_module: dict[str, str] = {}
    for module in modules:
        module_generation = generation(module)
        if module_generation is not None:
            first_module.setdefault(module_generation, module)
    if len(first_module) < 2:
        return None
    parts = ", ".join(f"`{module}` is of {name}" for name, module in first_module.items())
    return f"mixes toolchain generations: {parts}"
