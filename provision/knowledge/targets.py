"""CPU targets: the compiler flags of an archspec target, and whether a CPU can run programs that were built for it.

Source: archspec (its database of microarchitectures, features and compiler support). archspec is imported inside the
functions: it reads its database when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from provision.errors import ConfigError
from provision.wording import nearest

if TYPE_CHECKING:
    import archspec.cpu


def require_known_target(name: str) -> None:
    """Raise `ConfigError` unless archspec knows a target of this name."""
    if name != "native":
        _target(name)


def _target(name: str) -> archspec.cpu.Microarchitecture:
    """The target of this name.

    Raises:
        ConfigError: archspec knows none: the name is from a profile, or from a newer archspec.
    """
    import archspec.cpu

    if name not in archspec.cpu.TARGETS:
        raise ConfigError(
            f"`{name}` is not a CPU target that archspec knows{nearest(name, list(archspec.cpu.TARGETS))}",
            hint=f"list them: `{sys.executable} -c 'import archspec.cpu; print(*sorted(archspec.cpu.TARGETS))'`",
        )
    return archspec.cpu.TARGETS[name]


def flags_for(target: str, compiler: str, version: str) -> str:
    """The flags with which `compiler` (`gcc`, `clang`) at `version` builds for `target`.

    A compiler that is older than the CPU gets the flags of the nearest ancestor that it supports: gcc 12 does not know
    zen5 and builds for zen3. A program for the ancestor runs on every CPU of the target.
    """
    import archspec.cpu

    wanted = _target(target)
    for candidate in (wanted, *wanted.ancestors):
        try:
            flags = candidate.optimization_flags(compiler, version)
        except (archspec.cpu.UnsupportedMicroarchitecture, archspec.cpu.InvalidCompilerVersion):
            continue
        if flags:
            return str(flags)
    return ""


def is_foreign(target: str, cpu: str) -> bool:
    """Whether the two targets are of different families: a program that is built for one does not run on the other."""
    return bool(_target(target).family != _target(cpu).family)


def family_of(target: str, here: str) -> str:
    """The family of a target, as `uname -m` prints it: `x86_64`, `aarch64`. For `native` it is `here`, this machine's."""
    return here if target == "native" else str(_target(target).family.name)


def missing_features(target: str, features: Collection[str]) -> tuple[str, ...]:
    """The instruction sets that `target` may use but that a CPU with these `features` lacks.

    The comparison is feature by feature, not by archspec's family tree: an AMD CPU runs programs for haswell although
    it does not descend from haswell. Only instructions that a compiler generates count: virtual machines hide flags such
    as `pku`, `rdseed` or `clwb`, which `-march` allows but which generated code does not use by itself.
    """
    wanted = {feature for feature in _target(target).features if feature.startswith(FEATURES_IN_GENERATED_CODE)}
    return tuple(sorted(wanted - set(features)))


def features_of(target: str) -> frozenset[str]:
    """All instruction sets that CPUs of this target have."""
    return frozenset(map(str, _target(target).features))


FEATURES_IN_GENERATED_CODE = (
    "sse",
    "ssse",
    "avx",
    "fma",
    "bmi",
    "f16c",
    "movbe",
    "popcnt",
    "abm",
    "lzcnt",
    "xop",
    "amx",
    "neon",
    "sve",
    "asimd",
)
