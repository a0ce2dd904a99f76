"""CPU targets: which compiler flags an archspec target needs, and whether a CPU can run what was built for one.

Source: archspec (its database of microarchitectures, features and compiler support). archspec is imported inside the
functions: it reads its database when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass

from provision.errors import ConfigError
from provision.wording import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Compiler flags for `target`; `used` is the ancestor that the compiler knows, where it does not know the target itself."""

    target: str
    used: str
    flags: str


def require_known_target(name: str) -> None:
    """Raise `ConfigError` unless archspec knows a target of this name."""
    import archspec.cpu

    if name != "native" and name not in archspec.cpu.TARGETS:
        raise ConfigError(
            f"archspec knows no target `{name}`{nearest(name, list(archspec.cpu.TARGETS))}",
            hint=f"list them: `{sys.executable} -c 'import archspec.cpu; print(*sorted(archspec.cpu.TARGETS))'`",
        )


def flags_for(target: str, compiler: str, version: str) -> Flags:
    """The flags by which `compiler` (`gcc`, `clang`) at `version` builds for `target`.

    A compiler that is older than the CPU gets the nearest ancestor that it knows: gcc 12 does not know zen5 and builds
    for zen3. That runs everywhere the target does.
    """
    import archspec.cpu

    wanted = archspec.cpu.TARGETS[target]
    for candidate in (wanted, *wanted.ancestors):
        try:
            flags = candidate.optimization_flags(compiler, version)
        except (archspec.cpu.UnsupportedMicroarchitecture, archspec.cpu.InvalidCompilerVersion):
            continue
        if flags:
            return Flags(target=target, used=candidate.name, flags=flags)
    return Flags(target=target, used="generic", flags="")


def is_foreign(target: str, cpu: str) -> bool:
    """Whether the two are of different families: nothing that is built for one runs on the other."""
    import archspec.cpu

    return bool(archspec.cpu.TARGETS[target].family != archspec.cpu.TARGETS[cpu].family)


def family_of(target: str, here: str) -> str:
    """The family of a target, which `uname -m` prints: `x86_64`, `aarch64`. `here` is this machine's, which is `native`."""
    import archspec.cpu

    return here if target == "native" else str(archspec.cpu.TARGETS[target].family.name)


def missing_features(target: str, features: Collection[str]) -> tuple[str, ...]:
    """The instruction sets that `target` may use and a CPU with these `features` lacks.

    Compared feature by feature and not by archspec's family tree: an AMD CPU runs what was built for haswell though it
    does not descend from it. Only what a compiler may emit counts: virtual machines hide flags such as `pku`, `rdseed`
    or `clwb` that `-march` allows and that generated code does not use by itself.
    """
    import archspec.cpu

    wanted = {
        feature for feature in archspec.cpu.TARGETS[target].features if feature.startswith(FEATURES_IN_GENERATED_CODE)
    }
    return tuple(sorted(wanted - set(features)))


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
