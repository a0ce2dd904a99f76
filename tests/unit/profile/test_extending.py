"""A profile takes what it lacks from the one that it extends: a vendor's, or that of another site."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts.cli import call, envelope
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.profile.document import join, layer_of

VENDOR = {
    "modules": {"system": "lmod", "path": ["/a", "/b"]},
    "every_arch": {"mpi": {"family": "mpich", "cxx": "CC"}, "environ": {"A": 1}},
}
SITE = {
    "name": "snowy",
    "extends": "vendor",
    "modules": {"path": ["/c"]},
    "every_arch": {"environ": {"B": 2}},
    "archs": {"cpu": {"target": "zen3"}, "gpu": {"mpi": {"family": "openmpi"}}},
}


def test_tables_are_joined_and_all_else_is_replaced() -> None:
    joined = join([SITE, VENDOR])
    assert joined["modules"] == {"path": ["/c"], "system": "lmod"}
    assert "every_arch" not in joined
    assert joined["archs"] == {
        "cpu": {"target": "zen3", "environ": {"B": 2, "A": 1}, "mpi": {"family": "mpich", "cxx": "CC"}},
        "gpu": {"mpi": {"family": "openmpi", "cxx": "CC"}, "environ": {"B": 2, "A": 1}},
    }


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("modules.path", 0),
        ("modules.system", 1),
        ("archs.cpu.environ.A", 1),
        ("archs.cpu.environ.B", 0),
        ("archs.gpu.mpi.family", 0),
        ("archs.gpu.mpi.cxx", 1),
    ],
)
def test_each_value_has_its_file(path: str, layer: int) -> None:
    assert layer_of(path, [SITE, VENDOR]) == layer


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's own profiles."""
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    (tmp_path / "sites").mkdir()
    return tmp_path / "sites"


def test_a_profile_of_three_lines_is_a_shipped_site_with_another_root(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config / "ours.toml").write_text('name = "ours"\nextends = "nersc-perlmutter"\nroot = "/ours"\n')
    ours, theirs = shipped.load_site("ours"), shipped.load_site("nersc-perlmutter")
    assert (ours.root, ours.archs) == ("/ours", theirs.archs)
    assert call("site", "show", "ours", "--values", "--json") == 0
    values = {row["key"]: row for row in envelope(capsys)["result"]["values"]}
    files = {key: Path(values[key]["file"]).name for key in ("root", "network.host", "archs.gpu.compiler.cxx")}
    assert files == {
        "root": "ours.toml",
        "network.host": "nersc-perlmutter.toml",
        "archs.gpu.compiler.cxx": "cray-ex.toml",
    }
    assert "NERSC documentation" in values["network.host"]["source"]
    assert call("__complete", "archs", "ours") == 0
    assert capsys.readouterr().out.split() == ["cpu", "gpu"]


@pytest.mark.parametrize(
    ("text", "message"), [('extends = "b"', "extends itself"), ('extends = "nosuch"', "`nosuch`"), ("extends = 3", "")]
)
def test_what_cannot_be_extended_is_refused(config: Path, text: str, message: str) -> None:
    (config / "a.toml").write_text(f'name = "a"\n{text}\n')
    (config / "b.toml").write_text('name = "b"\nextends = "a"\n')
    with pytest.raises(ConfigError) as caught:
        shipped.load_site("a")
    assert message in caught.value.message
    assert message or any(line.startswith("extends: must be ") for line in caught.value.evidence)


def test_what_a_profile_extends_is_named_among_the_files_that_do_not_come_with_the_tool(config: Path) -> None:
    (config / "base.toml").write_text('name = "base"\nextends = "local"\n')
    (config / "mine.toml").write_text('name = "mine"\nextends = "base"\n')
    found = shipped.own_files(shipped.load_site("mine"), "tensorflow-2.21.0", [], None)
    assert [Path(path).name for path in found] == ["mine.toml", "base.toml"]
