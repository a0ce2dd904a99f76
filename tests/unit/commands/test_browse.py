"""`site list`, `site show` and `stack list`: what is there, without typing a wrong name to see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.profiles import SITES
from provision.machine.configuration.search_path import known

Captured = pytest.CaptureFixture[str]


def test_every_site_is_listed_with_its_scheduler_and_archs(capsys: Captured, words: Words) -> None:
    assert call("site", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == known("sites")
    assert any(line.startswith("local ") and "no scheduler; archs: native" in line for line in lines)
    (cori,) = [line for line in lines if line.startswith("nersc-cori ")]
    assert "slurm" in cori and "haswell, knl" in cori and "2023" in cori
    words("site", " ".join(cori.split()))


def test_a_site_is_shown_even_with_blanks(capsys: Captured) -> None:
    assert call("site", "show", "generic-slurm", "--json") == 0
    result = envelope(capsys)["result"]
    assert (result["scheduler"], result["root"]) == ("slurm", None)
    assert call("site", "show", "generic-slurm") == 0
    assert "not filled in yet" in capsys.readouterr().out


def test_a_site_is_shown_with_what_a_user_chooses_from(capsys: Captured) -> None:
    assert call("site", "show", "nyu-torch", "--json") == 0
    result = envelope(capsys)["result"]
    assert Path(result["path"]).name == "nyu-torch.toml"
    assert (result["scheduler"], result["runtimes"]) == ("slurm", ["container"])
    assert result["archs"][0] == {
        "name": "h200",
        "target": "sapphirerapids",
        "gpus_per_node": 8,
        "stack": "tensorflow-2.21.0",
    }


def test_every_stack_is_listed_with_its_pythons_and_summary(capsys: Captured) -> None:
    assert call("stack", "list", "--json") == 0
    rows = envelope(capsys)["result"]["stacks"]
    assert sorted(row["name"] for row in rows) == sorted(known("stacks"))
    newest = next(row for row in rows if row["name"] == "tensorflow-2.21.0")
    assert newest["pythons"][0] == "3.11"
    assert call("stack", "list") == 0
    out = capsys.readouterr().out
    assert newest["summary"] in out
    (line,) = [line for line in out.splitlines() if line.startswith("tensorflow-2.21.0 ")]
    assert "Python 3.10, 3.11 (preferred), 3.12" in line


def test_a_file_that_is_not_a_profile_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for folder in ("sites", "stacks"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "broken.toml").write_text("= 3")
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    for words, key in ((("site", "list"), "sites"), (("stack", "list"), "stacks")):
        assert call(*words, "--json") == 0
        result = envelope(capsys)["result"]
        assert len(result[key]) == len(known(key)) - 1
        (line,) = result["unreadable"]
        assert line.startswith("broken: `")


def test_a_shipped_profile_has_no_faults(capsys: Captured, words: Words) -> None:
    assert call("site", "check", "nersc-perlmutter") == 0
    out = capsys.readouterr().out
    assert "✓ arch `gpu`: " in out and "`tensorflow-2.15.1-gpu`" in out
    assert "! not confirmed: modules " in out
    assert out.endswith("`provision doctor --site nersc-perlmutter`\n")
    words("site", out)


def test_every_blank_and_every_fault_of_a_profile_is_listed(tmp_path: Path, capsys: Captured) -> None:
    shipped = (Path(__file__).resolve().parents[3] / "sites/generic-slurm.toml").read_text()
    path = tmp_path / "generic-slurm.toml"
    path.write_text(shipped.replace("[archs.cpu]", 'colour = "red"\n[archs.cpu]').replace("00:30:00", "soon", 1))
    assert call("site", "check", str(path)) == 1
    out = capsys.readouterr().out
    assert '✗ archs.gpu.target: is "?"' in out
    assert "archs.cpu.job.time: " in out
    assert "strategies.colour: " in out
    assert f"hint: edit `{path}`" in out


def test_a_lock_that_is_missing_is_a_fault_of_the_arch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    (tmp_path / "stacks").mkdir()
    shipped = (Path(__file__).resolve().parents[3] / "stacks/tensorflow-2.15.1.toml").read_text()
    (tmp_path / "stacks/tensorflow-2.15.1.toml").write_text(shipped.replace('"3.11"', '"3.6", "3.11"'))
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    assert call("site", "check", "nersc-perlmutter") == 1
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("✗ arch `cpu`: ")]
    assert "Python 3.6" in line
    words("site", line)


@pytest.mark.parametrize(
    ("name", "arch", "old", "new", "code"),
    [
        ("nersc-perlmutter", "gpu", 'capabilities = ["80"]', 'capabilities = ["35"]', 1),
        ("nersc-perlmutter", "gpu", '"debug", time = "00:30:00"', '"debug", time = "99:00:00"', 1),
        ("nersc-perlmutter", "cpu", 'capabilities = ["80"]', 'capabilities = ["35"]', 0),
        ("nyu-torch", "rtx6000", "", "", 0),
        ("nyu-torch", "rtx6000", "pytorch-2.14.1", "tensorflow-2.21.0", 1),
        ("nyu-torch", "h200", "", "", 0),
        ("nyu-greene", "gpu", "", "", 0),  # as a container
    ],
)
def test_the_exit_codes_say_whether_a_profile_can_work(
    name: str, arch: str, old: str, new: str, code: int, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text((SITES / f"{name}.toml").read_text().replace(old, new))
    assert call("plan", "--profile", "--site", str(path), "--arch", arch) == code
    call("site", "check", str(path))
    out = capsys.readouterr().out
    assert (f"✗ arch `{arch}`: " in out) is (code == 1)


def test_the_support_of_a_site_is_in_its_jobs_and_in_site_show(capsys: Captured) -> None:
    assert call("site", "show", "sigma2-saga") == 0
    assert "support    support@nris.no\n" in capsys.readouterr().out
    assert call("job", "single", "--site", "sigma2-saga", "--arch", "normal", "--account", "tests") == 0
    assert "\n# Questions about the site: support@nris.no\n" in capsys.readouterr().out
    assert call("job", "single", "--site", "nersc-cori", "--arch", "knl", "--account", "tests") == 0
    assert "Questions" not in capsys.readouterr().out
