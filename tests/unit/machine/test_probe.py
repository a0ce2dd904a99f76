"""Facts of this machine: what is kept of a shell, what a program says, and what is missing."""

from __future__ import annotations

import dataclasses

import pytest

from provision.machine.probe import unloaded
from provision.profile.module_system import ModuleSystem


@pytest.mark.parametrize("reset", ["reset", "none"])
def test_what_a_login_shell_has_is_kept_where_modules_are_not_purged(
    reset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMOD_SYSTEM_DEFAULT_MODULES", "StdEnv")
    monkeypatch.setenv("MODULEPATH", "/site/modules")
    system = ModuleSystem(name="lmod", init="/i", path=(), reset=reset)  # type: ignore[arg-type]
    environ = unloaded(system)
    assert (environ["LMOD_SYSTEM_DEFAULT_MODULES"], environ["MODULEPATH"]) == ("StdEnv", "/site/modules")
    assert "MODULEPATH" not in unloaded(dataclasses.replace(system, reset="purge"))
