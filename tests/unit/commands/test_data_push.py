"""`provision data push` and `pull` at the site: the script copies beside and renames, and refuses where there is no room.

df, and lfs of Lustre, are stand-ins: they print numbers that a test chooses. rsync is the real one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from golden_files import Words
from provision import cli
from provision.errors import EXIT_USAGE
from provision.machine.configuration import shipped

DF = '#!/bin/bash\nprintf "Filesystem blocks used free\\n"; [ "$1" = -Pi ] && echo "x 9 9 $INODES" || echo "x 9 9 $FREE"\n'
# As `print_quota` of lustre/utils/lfs.c prints it (LLNL/lustre, 106b0ff): a star behind a number over its limit, brackets around
# one that is not exact, and a long path in a line of its own.
LFS = """#!/bin/bash
[ "$1 $2 $3 $5" = "quota -q -u ." ] || exit 1
printf "%s\\n%15s" /lustre/of/the/site ""
printf " %7s%c %6s %7s %7s" "$USED" "*" 0 "$LIMIT" -
printf " %7s%c %6s %7s %7s\\n" 10 " " 0 "$FILES" -
"""
FAILING = """#!/bin/bash
/usr/bin/rsync --exclude=sub "$@"
exit 20
"""


class Transfer:
    """Data to copy, a scratch, and the stand-ins on PATH."""

    def __init__(self, folder: Path) -> None:
        self.data, self.scratch, self.bin = folder / "my data", folder / "work", folder / "bin"
        (self.data / "sub").mkdir(parents=True)
        (self.data / "sub" / "one file").write_bytes(b"x" * 10000)
        (self.data / ".hidden").write_text("")
        self.scratch.mkdir()
        self.bin.mkdir()
        self.put("ssh", "#!/bin/bash\nexit 9\n")

    def put(self, name: str, text: str) -> None:
        """A stand-in."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a script that was written."""
        environ = {"PATH": f"{self.bin}:{os.environ['PATH']}", **environ}
        return subprocess.run(["bash"], input=script, capture_output=True, text=True, check=False, env=environ)

    def copied(self, name: str) -> list[str]:
        """What is in a copy."""
        folder = self.scratch / "data" / name
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def place(tmp_path: Path) -> Transfer:
    if shutil.which("rsync") is None:
        pytest.skip("there is no rsync here (`.ci/install` installs it)")
    return Transfer(tmp_path)


def written(capsys: pytest.CaptureFixture[str], *words: str, verb: str = "push") -> str:
    """The script."""
    assert cli.main(["data", verb, *words, "--site", "sigma2-saga"]) == 0
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


def test_a_failed_copy_leaves_no_data_and_is_continued(place: Transfer, script: str, words: Words) -> None:
    place.put("rsync", FAILING)
    done = place.run(script, USERWORK=str(place.scratch))
    assert done.returncode == 20
    assert "rsync exited 20" in done.stderr
    words("data", done.stderr)
    assert [path.name for path in (place.scratch / "data").iterdir()] == [".mnist.part"]
    (place.bin / "rsync").unlink()
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
        ({"FREE": "15"}, "15 kB"),
        ({"INODES": "2"}, "2 files"),
        ({"USED": "90", "LIMIT": "100"}, "10 kB"),
        ({"FILES": "12"}, "2 files"),
        ({}, None),
        ({"INODES": "0", "LIMIT": "0", "FILES": "0"}, None),
        ({"INODES": "-"}, None),
        ({"USED": "[90]", "LIMIT": "[100]"}, None),
    ],
)
def test_without_room_or_quota_nothing_is_copied(
    environ: dict[str, str], error: str | None, place: Transfer, script: str, words: Words
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
    words("data", done.stderr)
    assert list((place.scratch / "data").iterdir()) == []


def test_results_are_copied_from_scratch_to_the_home_at_the_site(
    place: Transfer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("USERWORK", str(place.scratch))
    home = place.scratch.parent / "home"
    (place.scratch / "runs").mkdir()
    place.data.rename(place.scratch / "runs" / "4711")
    text = written(capsys, "runs/4711", str(home), verb="pull")
    done = place.run(text, USERWORK=str(place.scratch))
    assert done.returncode == 0, done.stderr
    assert sorted(str(path.relative_to(home)) for path in home.rglob("*")) == [
        "4711",
        "4711/.hidden",
        "4711/sub",
        "4711/sub/one file",
    ]
    assert (place.scratch / "runs" / "4711").is_dir()


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_bash_and_shellcheck_find_no_fault(
    verb: str,
    here: bool,
    place: Transfer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shellcheck: str,
) -> None:
    monkeypatch.setenv("USERWORK", str(place.scratch) if here else "/nowhere/at/all")
    path = place.data / "copy.sh"
    source = str(place.data) if verb == "push" else "runs/4711"
    path.write_text(written(capsys, source, "--name", "mnist", verb=verb))
    assert ("ssh" in path.read_text().replace("by ssh", "")) != here
    for command in (["bash", "-n"], [shellcheck, "--shell=bash"]):
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


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


OURS, SAGA = ("--site", "./ours.toml"), ("--site", "sigma2-saga")


@pytest.mark.parametrize(
    "command",
    [
        *(("push", "data", *more, *OURS) for more in ((), ("--to", "project"), ("--to", "home"), ("--to", "attic"))),
        *(("push", "data", *more, *SAGA) for more in (("--to", "project"), ("--project", "x"), ("--project", "../x"))),
        *(("push", "data", *more, *SAGA) for more in (("--user", "-x"), ("--user", "x y"), ("--host", "x;y"))),
        *(("push", name, *SAGA) for name in ("nosuch", "empty", "two\nlines", "two words")),
        ("push", "data", "--name", "../x", *SAGA),
        *(("pull", path, *SAGA) for path in ("runs/1\n", "runs/*", "$SCRATCH/x", "../x")),
        ("pull", "x", "--name", "a/b", *SAGA),
        ("pull", "/x", "--in", "home", *SAGA),
        ("pull", "/x", *OURS),
    ],
    ids=lambda command: " ".join(command[:-2]),
)
def test_what_cannot_be_copied_is_one_error(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    for name in ("data", "empty", "two words"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "file").write_text("x")
    text = shipped.read("sites/local.toml").replace('name = "local"', 'name = "ours"')
    (tmp_path / "ours.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("USERWORK", raising=False)
    assert cli.main(["data", *command]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    words("data", err)


@pytest.mark.parametrize(
    ("site", "host"), [("nyu-torch", "dtn.torch.hpc.nyu.edu"), ("sigma2-olivia", "olivia.sigma2.no")]
)
def test_data_go_to_the_host_for_copies_if_the_site_has_one(
    site: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").write_text("x")
    monkeypatch.setattr("provision.commands.data.sees", lambda path: False)
    project = () if shipped.load_site(site).files.scratch else ("--project", "p")
    assert cli.main(["data", "push", str(tmp_path / "data"), "--site", site, *project, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["host"] == host
