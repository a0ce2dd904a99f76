"""`provision list` on terminals of several widths, filtered and sorted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.records import ENVIRONMENT, PROOF, make_record, put_published, store_here
from provision.machine.probes.look_around import cpu
from provision.planning.overview import Entry, select, table

GOOD = Entry(
    environment=ENVIRONMENT,
    state="published",
    module="tensorflow/2.15.1",
    record=make_record(),
    proofs=(PROOF,),
    size_bytes=2_100_000_000,
    age_s=3 * 86_400.0,
)
NEW = dataclasses.replace(
    GOOD,
    environment=dataclasses.replace(ENVIRONMENT, arch="haswell", fingerprint="ff"),
    age_s=60.0,
    size_bytes=3_000_000_000,
)
UNFINISHED = Entry(
    environment=dataclasses.replace(ENVIRONMENT, fingerprint="ee"), state="unfinished", module=None, record=None
)
ALL = (GOOD, NEW, UNFINISHED)


def test_a_wide_terminal_shows_everything() -> None:
    lines = table([GOOD, UNFINISHED], None)
    assert lines[0].split() == ["STATE", "MODULE", "ARCH", "FINGERPRINT", "STACK", "BUILT", "SIZE", "PROOF"]
    assert (
        "published   tensorflow/2.15.1  knl   0123456789   tensorflow-2.15.1  3 days ago  2.1 GB  2 ranks, 95.0%"
        in lines[1]
    )
    assert lines[2].endswith("no proof")


def test_marks_of_modules_and_pins_are_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    put_published(store_here())
    assert call("list") == 0
    assert "MARKS" not in capsys.readouterr().out
    changes = (
        ("publish", "--default", "--hidden", "--deprecate", "2027-03-01", "load 2.21.0"),
        ("pin", "--reason", "paper of the climate group"),
    )
    for verb, *options in changes:
        assert call(verb, str(ENVIRONMENT), *options) == 0
    capsys.readouterr()
    assert call("list", "--json") == 0
    marks = envelope(capsys)["result"]["environments"][0]["marks"]
    assert marks == {
        "default": "",
        "hidden": "",
        "deprecated": "after 2027-03-01: load 2.21.0",
        "pinned": "paper of the climate group",
    }
    assert call("show", str(ENVIRONMENT)) == 0
    shown = (
        "marks        default, hidden, deprecated after 2027-03-01: load 2.21.0, pinned: paper of the climate group\n"
    )
    assert shown in capsys.readouterr().out
    assert call("list") == 0
    assert "default, hidden, deprecated, pinned" in capsys.readouterr().out
    for options in ((), ("--markdown",)):
        assert call("report", str(tmp_path / "pages"), *options) == 0
        for page in (tmp_path / "pages").rglob("*.md" if options else "*.html"):
            text = page.read_text()
            for word in ("default", "hidden", "deprecated after 2027-03-01", "paper of the climate group"):
                assert word in text, page


@pytest.mark.parametrize(
    ("width", "gone"), [(200, ()), (110, ("STACK",)), (80, ("STACK", "SIZE")), (30, ("STACK", "PROOF"))]
)
def test_columns_that_do_not_fit_are_left_out(width: int, gone: tuple[str, ...]) -> None:
    lines = table(ALL, width)
    assert not any(title in lines[0] for title in gone)
    assert {"STATE", "MODULE", "ARCH"} <= set(lines[0].split())
    if width >= 80:
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("choice", "fingerprints"),
    [
        ({}, ["ff", "0123456789", "ee"]),
        ({"arch": "knl"}, ["0123456789", "ee"]),
        ({"state": "unfinished"}, ["ee"]),
        ({"stack": "tensorflow-2.15.1"}, ["ff", "0123456789"]),
        ({"stack": "other"}, []),
        ({"sort": "age"}, ["ff", "0123456789", "ee"]),
        ({"sort": "size"}, ["ff", "0123456789", "ee"]),
        ({"sort": "state"}, ["ff", "0123456789", "ee"]),
    ],
)
def test_environments_are_filtered_and_sorted(choice: dict[str, str], fingerprints: list[str]) -> None:
    assert [entry.environment.fingerprint for entry in select(ALL, **choice)] == fingerprints  # type: ignore[arg-type]


def test_the_verb_lists_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words) -> None:
    put_published(store_here())
    assert call("list", "--json") == 0
    (row,) = envelope(capsys)["result"]["environments"]
    assert (row["arch"], row["stack"], row["state"], row["bytes"]) == ("knl", "tensorflow-2.15.1", "published", None)
    assert call("list", "--arch", "haswell") == 0
    out = capsys.readouterr().out
    assert str(tmp_path) in out and "`provision list --site local`" in out
    words("list", out)
    assert call("list") == 0
    assert "published  tensorflow/2.15.1  knl" in capsys.readouterr().out


def test_an_environment_of_this_machine_is_found_by_the_arch_of_its_profile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = f"{cpu().target}/tensorflow/2.21.0-0123456789"
    put_published(store_here(), environment=env, module="tensorflow/2.21.0")
    assert call("list", "--arch", "native", "--json") == 0
    assert len(envelope(capsys)["result"]["environments"]) == 1
    assert call("show", "tensorflow/2.21.0", "--arch", "native") == 0
    assert env in capsys.readouterr().out
    assert call("job", "horovod") == 2
    error = capsys.readouterr().err
    assert "no environment is published" not in error
    command = 'eval "$(provision activate --site local --arch native tensorflow/2.21.0)"'
    assert f"hint: `{command}`, then `mpiexec -n 2 python train.py`" in error


@pytest.mark.parametrize("words", ["show tensorflow/2.15.1", "verify tensorflow/2.15.1", "verify --all", "rollback"])
def test_a_native_arch_on_a_machine_with_another_cpu_finds_nothing_and_says_why(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put_published(store_here())
    assert call(*words.split(), "--arch", "native") == 2
    error = capsys.readouterr().err
    assert "`native`" in error and f"`{cpu().target}`" in error
    evidence = "archs with modules: `knl`" if words == "rollback" else f"of another arch: {ENVIRONMENT}"
    assert f"  {evidence}\n" in error
