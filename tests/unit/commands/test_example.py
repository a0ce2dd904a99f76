"""`provision example`: lists the programs, copies one with its data, and replaces nothing."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from golden_files import Words
from parts.json_page import result_faults
from provision.cli import main
from provision.knowledge.examples import EXAMPLES
from provision.machine.configuration.shipped import EXAMPLE_DATA


def result(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["example", *words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)["result"]
    assert result_faults(["example"], found) == []
    return found


def test_the_examples_are_listed_with_their_job_and_tensorflow(
    capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    rows = result(capsys)["examples"]
    assert [row["name"] for row in rows] == [example.name for example in EXAMPLES]  # type: ignore[attr-defined]
    assert main(["example"]) == 0
    out = capsys.readouterr().out
    assert "`horovod`" in out and "1.15" in out
    words("example", out)


def test_a_copy_is_complete_and_the_next_commands_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example", "tfrecord"]) == 0
    said = capsys.readouterr().out
    assert "python convert.py data records" in said
    assert "provision job horovod --site SITE --arch ARCH --script train.py --data records > job.sh" in said
    for program in ("train.py", "convert.py"):
        ast.parse((tmp_path / "tfrecord" / program).read_text())
    assert (tmp_path / "tfrecord/data/digits.npz").read_bytes() == (EXAMPLE_DATA / "digits.npz").read_bytes()
    (tmp_path / "new").mkdir()
    assert result(capsys, "single", "new")["files"] == ["data/README.md", "data/digits.npz", "train.py"]


@pytest.mark.parametrize(
    ("site", "job"),
    [
        ("", "job single --site SITE --arch ARCH --script train.py > job.sh"),
        ("alcf-theta", "job single --site alcf-theta --script train.py > job.sh"),
        ("nersc-cori", "job single --site nersc-cori --arch ARCH --script train.py > job.sh   # ARCH: haswell, knl"),
        ("gone", "job single --site gone --arch ARCH --script train.py > job.sh"),
    ],
)
def test_the_next_command_names_the_site_of_the_shell(
    site: str, job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVISION_SITE", raising=False)
    if site:
        monkeypatch.setenv("PROVISION_SITE", site)
    assert main(["example", "single", str(tmp_path / "x")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"  provision {job}"


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words) -> None:
    (tmp_path / "train.py").write_text("mine")
    assert main(["example", "single", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert str(tmp_path) in err
    words("example", err)
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    assert main(["example", "single", str(tmp_path / "train.py")]) == 2
    assert (tmp_path / "train.py").read_text() == "mine"
    assert main(["example", "singel", str(tmp_path / "new")]) == 2
    assert "did you mean `single`?" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
