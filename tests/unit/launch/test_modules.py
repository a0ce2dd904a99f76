"""Scripts that load modules: from a clean state, in the order that the site needs."""

from __future__ import annotations

import pytest

from provision.launch.modules import load_script
from provision.profile.module_system import ModuleSystem


@pytest.mark.parametrize(
    ("reset", "first"), [("purge", "module purge"), ("reset", "module reset"), ("none", "module --force unload")]
)
def test_loading_begins_as_the_site_has_it(reset: str, first: str) -> None:
    system = ModuleSystem(name="lmod", init="/i", path=(), reset=reset)  # type: ignore[arg-type]
    script = load_script(system, ("gcc/12",), unload=("atp", "it's"))
    steps = [line for line in script.splitlines() if line.startswith("module ")]
    assert steps[0].startswith(first)
    assert "module --force unload 'it'\"'\"'s'" in script
    assert script.index("module --force unload atp") < script.index("module load gcc/12")
    assert ("module purge" in script) is (reset == "purge")
