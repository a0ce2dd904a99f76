"""The processor of this machine."""

from __future__ import annotations

from provision.model.facts import Cpu


def cpu() -> Cpu:
    """This machine's processor, detected by archspec."""
    import archspec.cpu
    from archspec.cpu.detect import detected_info

    return Cpu(target=archspec.cpu.host().name, features=frozenset(detected_info().features))


def cpu_family() -> str:
    """The family of this machine's processor, which `uname -m` prints: `x86_64`, `aarch64`."""
    import archspec.cpu

    return str(archspec.cpu.host().family.name)
