"""What users read about Horovod's open servers: MPI only, no Gloo, no horovodrun, with the numbers of the advisories."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from parts.cli import call
from parts.published import SITE, put_proved
from parts.records import DESCRIPTION, store_here
from provision.machine.files.tables import advisories_line
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.profile.module_system import ModuleKind as Kind

ENV = EnvironmentId("knl", "tensorflow", "2.21.0", "1111111111")
SAID = ("CVE-2024-10190", "CVE-2026-31234", "use MPI", "no Gloo", "refuse horovodrun")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The root of site `local`, with an environment that has Horovod."""
    made = store_here()
    put_proved(made, ENV)
    info = Path(made.layout.prefix(ENV)) / SITE / "horovod-0.28.1.dist-info"
    info.parent.chmod(0o755)
    info.mkdir()
    (info / "INSTALLER").write_text("uv")
    return made


def missing(text: str) -> list[str]:
    """What a text does not say; lines may be broken anywhere."""
    return [part for part in SAID if part not in " ".join(text.split())]


@pytest.mark.usefixtures("store")
def test_show_and_audit_say_it(capsys: Captured) -> None:
    for verb, code in (("show", 0), ("audit", 1)):
        assert call(verb, str(ENV)) == code
        assert missing(capsys.readouterr().out) == []


@pytest.mark.parametrize("kind", ["lua", "tcl"])
def test_module_help_says_it(kind: Kind) -> None:
    line = advisories_line([("horovod", "0.28.1")])
    module = dataclasses.replace(DESCRIPTION.modulefile, facts=(("advisories", line),))
    assert missing(emit_modulefile(module, kind, "passed")) == []


def test_an_environment_without_horovod_has_nothing_to_say() -> None:
    assert missing(advisories_line([("numpy", "2.3.0")])) == list(SAID)
