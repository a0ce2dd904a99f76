"""`provision data push … | bash` and `data pull … | bash` with real ssh, a real OpenSSH server and real rsync."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.sshd import USER, LoginNode

SITE = "sigma2-saga"
SOCKETS: dict[str, str] = {}
CONTENT = [".hidden", 'it\'s "odd" $HOME', "sub", "sub/one file"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set with names that shells could misread."""
    folder = tmp_path / "my data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "one file").write_bytes(os.urandom(100_000))
    (folder / 'it\'s "odd" $HOME').write_text("x")
    (folder / ".hidden").write_text("")
    return folder


@pytest.fixture
def work(site_by_ssh: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scratch of the site. Only a login shell there knows its variable, and its start-up files print."""
    monkeypatch.delenv("USERWORK", raising=False)
    work = tmp_path / "its work"
    work.mkdir()
    site_by_ssh.write_start_file(f"echo Welcome to Saga\nexport USERWORK='{work}'\n")
    return work


def errors_of(done: subprocess.CompletedProcess[str]) -> str:
    """The errors of the script, without what ssh and rsync print."""
    return "\n".join(line for line in done.stderr.splitlines() if line.startswith("error: "))


@dataclass(frozen=True)
class User:
    """The user of a machine from which `ssh` reaches the site."""

    node: LoginNode
    capsys: pytest.CaptureFixture[str]

    def environ(self, *more: Path) -> dict[str, str]:
        """The variables of the user's shell."""
        path = ":".join(str(folder) for folder in (*more, self.node.bin))
        return {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}

    def script(self, *words: str) -> str:
        """What `provision data …` prints."""
        assert call("data", *words, "--site", SITE) == 0, self.capsys.readouterr().err
        text = self.capsys.readouterr().out
        for old, new in SOCKETS.items():
            assert f"mktemp -d {old}" in text
            text = text.replace(f"mktemp -d {old}", f"mktemp -d {new}")
        return text

    def push(self, data: Path, *options: str) -> str:
        """What `provision data push` prints of the data set `mnist`."""
        return self.script("push", str(data), "--name", "mnist", *options)

    def pipe(self, text: str, *more: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """`… | bash`, which must end with this code."""
        environ = self.environ(*more)
        done = subprocess.run(
            ["bash"], input=text, capture_output=True, text=True, check=False, env=environ, timeout=120
        )
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture
def user(site_by_ssh: LoginNode, capsys: pytest.CaptureFixture[str]) -> User:
    return User(site_by_ssh, capsys)


def below(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which the scripts of this test have their sockets, instead of /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="s") as folder:
        monkeypatch.setitem(SOCKETS, "/tmp/", f"{folder}/")
        yield Path(folder)


def test_a_script_in_a_pipe_copies_the_data_with_one_login(data: Path, work: Path, user: User, short: Path) -> None:
    done = user.pipe(user.push(data))
    assert below(work / "data" / "mnist") == CONTENT
    assert (work / "data" / "mnist" / "sub" / "one file").read_bytes() == (data / "sub" / "one file").read_bytes()
    quoted = str(work).replace(" ", "\\ ")
    assert done.stdout.splitlines()[-1] == f"for jobs: --data {quoted}/data/mnist"
    assert names(work / "data") == ["mnist"]
    assert user.node.logins() == 1
    assert user.node.connections() == []
    assert names(short) == []


def test_a_single_file_is_copied_under_its_name(data: Path, work: Path, user: User) -> None:
    (data / "link").symlink_to(data / "sub" / "one file")
    user.pipe(user.script("push", str(data / "link"), "--name", "one.rec"))
    copy = work / "data" / "one.rec"
    assert not copy.is_symlink()
    assert copy.read_bytes() == (data / "sub" / "one file").read_bytes()


def test_an_interrupted_copy_continues_where_it_stopped(tmp_path: Path, work: Path, user: User, short: Path) -> None:
    size = 3_000_000
    (tmp_path / "big").write_bytes(os.urandom(size))
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "rsync").write_text('#!/bin/sh\nexec /usr/bin/rsync --bwlimit=1000 --stats "$@"\n')
    (slow / "rsync").chmod(0o755)
    text = user.script("push", str(tmp_path / "big"))
    part = work / "data" / ".big.part"
    with subprocess.Popen(
        ["bash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=user.environ(slow),
        start_new_session=True,
    ) as running:
        assert running.stdin is not None
        running.stdin.write(text)
        running.stdin.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not part.exists() or part.stat().st_size < size // 3):
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
        assert running.wait(60) == 130
    assert size // 3 <= part.stat().st_size < size
    assert names(work / "data") == [".big.part"]
    assert user.node.connections() == []
    assert names(short) == []

    done = user.pipe(text, slow)
    assert names(work / "data") == ["big"]
    assert (work / "data" / "big").read_bytes() == (tmp_path / "big").read_bytes()
    sent = next(line for line in done.stdout.splitlines() if line.startswith("Literal data"))
    assert int(sent.split()[2].replace(",", "")) < size * 3 // 4


def test_a_half_of_the_script_does_nothing(data: Path, work: Path, user: User) -> None:
    text = user.push(data)
    user.pipe(text[: text.rindex("}")], code=2)
    assert below(work) == []
    assert user.node.logins() == 0


def test_an_unreachable_host_and_a_wrong_user_are_one_error_each(
    data: Path, work: Path, user: User, short: Path, words: Words
) -> None:
    for option in (("--host", "unreachable.example.org"), ("--user", "nobody.of.that.name")):
        done = user.pipe(user.push(data, *option), code=2)
        assert option[1] in errors_of(done)
        words("data", errors_of(done))
    assert below(work) == []
    assert user.node.connections() == []
    assert names(short) == []


def test_a_user_name_and_a_host_go_to_ssh(data: Path, work: Path, user: User) -> None:
    text = user.push(data, "--user", USER, "--host", "login-1.example.org")
    assert f"host={USER}@login-1.example.org" in text
    user.pipe(text)
    assert below(work / "data" / "mnist") == CONTENT
    again = user.pipe(text, code=2)
    assert f"error: {work}/data/mnist already exists" in again.stderr


def test_data_go_to_the_home_and_to_a_project(data: Path, work: Path, user: User, tmp_path: Path) -> None:
    user.pipe(user.push(data, "--to", "home"))
    assert below(user.node.home / "data" / "mnist") == CONTENT
    text = user.push(data, "--to", "project", "--project", "nn9999k")
    assert '"/cluster/projects/nn9999k/data"' in text
    (tmp_path / "projects").mkdir()
    user.pipe(text.replace("/cluster/projects", str(tmp_path / "projects")))
    assert below(tmp_path / "projects" / "nn9999k" / "data" / "mnist") == CONTENT


def test_a_variable_that_the_site_does_not_set_stops_the_copy(
    data: Path, user: User, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.delenv("USERWORK", raising=False)
    done = user.pipe(user.push(data), code=2)
    assert "USERWORK: unbound variable" in done.stderr
    assert "saga.sigma2.no" in errors_of(done)
    words("data", errors_of(done))


def test_the_output_of_a_job_comes_back(data: Path, work: Path, user: User, tmp_path: Path) -> None:
    (work / "runs").mkdir()
    data.rename(work / "runs" / "4711")
    target = tmp_path / "my results"
    text = user.script("pull", "runs/4711", str(target))
    done = user.pipe(text)
    assert below(target / "4711") == CONTENT
    assert names(target) == ["4711"]
    assert done.stdout.splitlines()[-1] == f"copied to {str(target).replace(' ', chr(92) + ' ')}/4711"
    assert user.node.logins() == 1
    again = user.pipe(text, code=2)
    assert f"error: {target}/4711 already exists" in again.stderr


def test_what_is_not_there_and_what_has_no_room_does_not_come_back(
    work: Path, user: User, small_disk: Path, words: Words
) -> None:
    done = user.pipe(user.script("pull", "runs/1", str(small_disk)), code=2)
    assert f"{work}/runs/1" in errors_of(done)
    words("data", errors_of(done))
    (work / "runs").mkdir()
    (work / "runs" / "1").write_bytes(os.urandom(1_500_000))
    done = user.pipe(user.script("pull", "runs/1", str(small_disk)), code=2)
    assert f"{small_disk}" in errors_of(done)
    words("data", re.sub(r"\d+ bytes", "N bytes", errors_of(done)))
    assert below(small_disk) == []


def test_ssh_asks_in_the_terminal_once(data: Path, work: Path, user: User, tmp_path: Path) -> None:
    user.node.protect_key("a second factor")
    (tmp_path / "push.sh").write_text(user.push(data))
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("bash", ["bash", "-c", f"cat '{tmp_path}/push.sh' | bash"], user.environ())
    shown = b""
    answered = 0
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and select.select([terminal], [], [], 60)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the terminal's other end was closed
            break
        shown += piece
        if shown.count(b"Enter passphrase") > answered:
            answered += 1
            os.write(terminal, b"a second factor\n")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown.decode()
    assert answered == 1
    assert below(work / "data" / "mnist") == CONTENT
