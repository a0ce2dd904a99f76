"""`verify --all`, `doctor` and `list` start from what users load: no record says what was purged or moved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from parts.cli import call, envelope
from parts.json_page import faults
from parts.published import put_proved
from parts.records import store_here
from provision.machine.root.observe import existing
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout

ENV = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
OTHER = EnvironmentId("knl", "tensorflow", "2.16.1", "1111111111")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of site `local`, with two published environments."""
    # Compilers and Pythons take most of the doctor's time, and are not looked at here.
    monkeypatch.setattr("provision.commands.doctor._arch", lambda target: [])
    store = store_here()
    for env in (ENV, OTHER):
        put_proved(store, env)
        Publisher(store).publish(env)
    return tmp_path / "root"


def prefix_of(root: Path) -> Path:
    """The prefix of the environment that is harmed."""
    return Path(Layout(PurePosixPath(root)).prefix(ENV))


def exchanged(root: Path) -> None:
    """Another folder is in the place of the prefix."""
    prefix = prefix_of(root)
    prefix.rename(prefix.with_name("away"))
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to("/bin/true")


def exchanged_for_another(root: Path) -> None:
    """Another environment is in the place of the prefix, with its record."""
    prefix = prefix_of(root)
    prefix.rename(prefix.with_name("away"))
    shutil.copytree(Layout(PurePosixPath(root)).prefix(OTHER), prefix, symlinks=True)


def python(target: str) -> Callable[[Path], None]:
    """A Python that is this."""

    def harm(root: Path) -> None:
        path = prefix_of(root) / "bin/python"
        path.parent.chmod(0o755)
        path.unlink()
        if target:
            path.symlink_to(target)

    return harm


def with_text(root: Path) -> None:
    """A Python that is an empty file."""
    python("")(root)
    path = prefix_of(root) / "bin/python"
    path.touch(mode=0o755)


HARMS: dict[str, Callable[[Path], object]] = {
    "the records are purged": lambda root: shutil.rmtree(prefix_of(root) / ".provision"),
    "the record is purged": lambda root: (prefix_of(root) / ".provision/record.json").unlink(),
    "the prefix is gone": lambda root: prefix_of(root).rename(root / "away"),
    "the prefix is exchanged": exchanged,
    "the prefix is exchanged for another environment": exchanged_for_another,
    "the Python is gone": python(""),
    "the Python does not start": python("/bin/false"),
    "the Python is empty": with_text,
    "the pointer leads nowhere": lambda root: shutil.rmtree(root / "modules/.generations/knl"),
    "the name of its environment is purged": lambda root: shutil.rmtree(root / "modules/knl/environments"),
    "its modulefile is purged": lambda root: (root / "modules/knl/lua/tensorflow/2.15.1.lua").unlink(),
}


LATER = ("the Python does not start", "the Python is empty", "its modulefile is purged")
"""What a list, which must be fast, does not look at."""


def verified(capsys: Captured) -> tuple[int, dict[str, object]]:
    """The exit code and the result of `verify --all`."""
    capsys.readouterr()
    code = call("verify", "--all", "--json")
    result = envelope(capsys)["result"]
    assert faults(result, "verify") == []
    return code, result


def doctor_on_modules(capsys: Captured) -> tuple[int, list[dict[str, object]]]:
    """The exit code of the doctor, and what is bad about modules and the root."""
    capsys.readouterr()
    code = call("doctor", "--json")
    seen = envelope(capsys)["result"]["observations"]
    return code, [one for one in seen if one["group"] in ("modules", "root") and one["state"] == "bad"]


def test_what_is_whole_is_fresh(root: Path, capsys: Captured) -> None:
    assert verified(capsys)[0] == 0
    assert doctor_on_modules(capsys)[1] == []
    assert call("list", "--json") == 0
    result = envelope(capsys)["result"]
    assert [fault for row in result["environments"] for fault in faults(row, "list")] == []
    assert result["lost"] == []
    assert call("list") == 0
    assert "verify --all" not in capsys.readouterr().out


@pytest.mark.parametrize("harm", HARMS)
def test_what_users_load_and_is_not_what_was_proved_is_reported(root: Path, capsys: Captured, harm: str) -> None:
    """The list and the doctor fail with a line about it before anything was verified."""
    HARMS[harm](root)
    if harm not in LATER:
        assert call("list") == 1
        assert "`provision verify --all --site local` says why" in capsys.readouterr().out
        assert call("list", "--json") == 1
        assert envelope(capsys)["result"]["lost"]
    code, bad = doctor_on_modules(capsys)
    assert code == 1
    assert bad
    code, result = verified(capsys)
    assert (code, result["condition"]) == (1, "broken")
    assert "2.15.1" in str(result) or "modules/knl" in str(result)


def test_a_lost_record_is_shown_and_not_made_again(root: Path, capsys: Captured) -> None:
    record = prefix_of(root) / ".provision/record.json"
    record.unlink()
    assert call("show", str(ENV), "--json") == 0
    assert envelope(capsys)["result"]["state"].startswith("broken: record.json: ")
    for words in ((), ("--force", "it is urgent")):
        assert call("publish", str(ENV), *words, "--json") == 1
        error = envelope(capsys)["error"]
        assert (error["kind"], "`provision build --site local" in error["hint"]) == ("damaged-record", True)
    assert not record.exists()
    assert call("verify", str(ENV)) == 1
    assert "record.json: it is missing" in capsys.readouterr().out
    assert call("verify", str(OTHER)) == 0


def test_a_moved_root_is_broken_everywhere(root: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = root.with_name("moved")
    root.rename(moved)
    monkeypatch.setenv("PROVISION_ROOT", str(moved))
    assert call("list", "--json") == 1
    assert {one["state"] for one in envelope(capsys)["result"]["environments"]} == {"broken"}
    code, result = verified(capsys)
    assert (code, result["condition"]) == (1, "broken")
    assert doctor_on_modules(capsys)[1]
    store = Store(Layout(PurePosixPath(moved)))
    assert set(existing(store).broken) == {str(ENV), str(OTHER)}, "a build makes them again beside"
    moved.rename(root)
    monkeypatch.setenv("PROVISION_ROOT", str(root))
    assert verified(capsys)[0] == 0
