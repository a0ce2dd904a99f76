"""`provision data push`: the script copies beside and renames, and refuses before it copies where there is no room.

rsync, ssh, df and Lustre's lfs are stand-ins here: the machine that runs these tests need not have them.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from provision import cli
from provision.errors import EXIT_USAGE

RSYNC = """#!/bin/bash
[ "$1 $2 $3 $4" = "-a --protect-args --partial --info=progress2" ] || exit 9
shift
target=${5#saga.sigma2.no:}
mkdir -p "$(dirname "$target")"
if [ -d "$4" ]; then mkdir -p "$target"; cp -a "$4." "$target"; else cp -a "$4" "$target"; fi
"""
SSH = (
    '#!/bin/bash\n[ "$1" = saga.sigma2.no ] || exit 9\necho ssh >>"$ASKED"\nshift\nUSERWORK=$THERE exec bash -c "$*"\n'
)
DF = '#!/bin/bash\nprintf "Filesystem blocks used free\\n"; [ "$1" = -Pi ] && echo "x 9 9 $INODES" || echo "x 9 9 $FREE"\n'
LFS = '#!/bin/bash\nprintf "/cluster/work\\n      %s* 0 %s - 10 0 %s -\\n" "$USED" "$LIMIT" "$FILES"\n'


class Transfer:
    """Data to copy, a scratch, and the stand-ins on PATH."""

    def __init__(self, folder: Path) -> None:
        self.data, self.scratch, self.bin = folder / "my data", folder / "work", folder / "bin"
        (self.data / "sub").mkdir(parents=True)
        (self.data / "sub" / "one file").write_bytes(b"x" * 10000)
        (self.data / ".hidden").write_text("")
        self.scratch.mkdir()
        self.bin.mkdir()
        self.asked = folder / "asked"
        for name, text in (("rsync", RSYNC), ("ssh", SSH)):
            self.put(name, text)

    def put(self, name: str, text: str) -> None:
        """A stand-in."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a script that was written."""
        environ = {"PATH": f"{self.bin}:{os.environ['PATH']}", "ASKED": str(self.asked), **environ}
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environ)

    def copied(self, name: str) -> list[str]:
        """What is in a copy."""
        folder = self.scratch / "data" / name
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def place(tmp_path: Path) -> Transfer:
    return Transfer(tmp_path)


def written(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The script."""
    assert cli.main(["data", "push", *words, "--site", "sigma2-saga"]) == 0
    return capsys.readouterr().out


@pytest.fixture
def script(place: Transfer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """For a machine that sees the scratch."""
    monkeypatch.setenv("USERWORK", str(place.scratch))
    return written(capsys, str(place.data), "--name", "mnist")


def test_at_the_site_data_are_copied_then_renamed(place: Transfer, script: str) -> None:
    done = place.run(script, USERWORK=str(place.scratch))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"for jobs: --data {place.scratch}/data/mnist"
    assert place.copied("mnist") == [".hidden", "sub", "sub/one file"]
    assert [path.name for path in (place.scratch / "data").iterdir()] == ["mnist"]
    assert not place.asked.exists(), "nothing was asked by ssh"


def test_data_that_exist_already_are_not_changed(place: Transfer, script: str) -> None:
    assert place.run(script, USERWORK=str(place.scratch)).returncode == 0
    again = place.run(script, USERWORK=str(place.scratch))
    assert again.returncode == 2
    assert f"error: {place.scratch}/data/mnist already exists" in again.stderr


def test_a_failed_copy_leaves_no_data_and_is_continued(place: Transfer, script: str) -> None:
    place.put("rsync", f"{RSYNC}exit 20\n")
    assert place.run(script, USERWORK=str(place.scratch)).returncode == 20
    assert [path.name for path in (place.scratch / "data").iterdir()] == [".mnist.part"]
    place.put("rsync", RSYNC)
    assert place.run(script, USERWORK=str(place.scratch)).returncode == 0
    assert place.copied("mnist") == [".hidden", "sub", "sub/one file"]


def test_data_of_an_earlier_try_need_no_space_again(place: Transfer, script: str) -> None:
    part = place.scratch / "data" / ".mnist.part" / "sub"
    part.mkdir(parents=True)
    (part / "one file").write_bytes(b"x" * 10000)
    place.put("df", DF)
    done = place.run(script, USERWORK=str(place.scratch), FREE="8", INODES="1")
    assert done.returncode == 0, done.stderr
    assert place.copied("mnist") == [".hidden", "sub", "sub/one file"]


@pytest.mark.parametrize(
    ("environ", "error"),
    [
        ({"FREE": "15"}, "has room for 15 kB, but the data need 16 kB"),
        ({"INODES": "2"}, "has room for 2 files, but the data are 3 files"),
        ({"USED": "90", "LIMIT": "100"}, "has room for 10 kB, but the data need 16 kB"),
        ({"FILES": "12"}, "has room for 2 files, but the data are 3 files"),
        ({}, None),
        ({"INODES": "0", "LIMIT": "0", "FILES": "0"}, None),
        ({"INODES": "-"}, None),
    ],
)
def test_without_room_or_quota_nothing_is_copied(
    environ: dict[str, str], error: str | None, place: Transfer, script: str
) -> None:
    place.put("df", DF)
    place.put("lfs", LFS)
    enough = {"FREE": "16", "INODES": "3", "USED": "84", "LIMIT": "100", "FILES": "13"}
    done = place.run(script, USERWORK=str(place.scratch), **{**enough, **environ})
    if error is None:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert error in done.stderr
    assert list((place.scratch / "data").iterdir()) == []


def test_from_elsewhere_the_copy_goes_by_ssh_to_the_sites_host(
    place: Transfer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("USERWORK", raising=False)
    text = written(capsys, str(place.data / "sub" / "one file"), "--name", "one")
    assert '"saga.sigma2.no:$folder/.$name.part"' in text
    done = place.run(text, THERE=str(place.scratch))
    assert done.returncode == 0, done.stderr
    assert (place.scratch / "data" / "one").read_bytes() == b"x" * 10000
    assert place.asked.read_text().split() == ["ssh"] * 3


@pytest.mark.parametrize("here", [True, False])
def test_shellcheck_finds_no_fault(
    here: bool, place: Transfer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shellcheck: str
) -> None:
    monkeypatch.setenv("USERWORK", str(place.scratch) if here else "/nowhere/at/all")
    path = place.data / "push.sh"
    path.write_text(written(capsys, str(place.data), "--name", "mnist"))
    done = subprocess.run([shellcheck, "--shell=bash", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_size_and_the_number_of_files_are_shown(
    place: Transfer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("USERWORK", str(place.scratch))
    assert cli.main(["data", "push", str(place.data), "--name", "x", "--site", "sigma2-saga", "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)["result"]
    assert (result["files"], result["host"]) == (3, None)
    # Blocks of 4096: three for the file of 10,000 bytes, none for the empty one, and those of the folder.
    assert result["bytes"] >= 12288
    assert "nothing is copied yet" in err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("data", "--site", "local"), "site `local` has no scratch to copy data to", "--data"),
        (("data", "--site", "nyu-torch"), "does not see the scratch of site `nyu-torch`", "`network.host`"),
        (("nosuch", "--site", "sigma2-saga"), "nosuch` cannot be read", "ls -l"),
        (("empty", "--site", "sigma2-saga"), "there is nothing in `", "ls -l"),
        (("data", "--name", "../x", "--site", "sigma2-saga"), "'../x' cannot be the name of a data set", "--name"),
    ],
)
def test_what_cannot_be_copied_is_one_error(
    words: tuple[str, ...],
    message: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("data", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "no-such-user")
    assert cli.main(["data", "push", *words]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert hint in err
