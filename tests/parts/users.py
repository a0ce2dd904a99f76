"""Other users of this machine, as real processes with numbers of their own (`setpriv` of util-linux)."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from parts.forks import Forks
from parts.paths import REPOSITORY

VICTIM, ATTACKER = 54321, 54322
"""Numbers that no account of the machine has."""
CAPABILITY = "+dac_read_search"
# Everything that a verb may import.
TOOL = """
import importlib, pkgutil
import provision
from provision.cli import main
for found in pkgutil.walk_packages(provision.__path__, "provision."):
    if ".programs." not in found.name:
        importlib.import_module(found.name)
"""


@dataclass(frozen=True)
class User:
    """A user without power; with `member` in the group of the site.

    With `reads` every file may be read, because the Python of the tests may be in root's home; what is written is the user's.
    """

    name: str
    uid: int
    gid: int
    member: bool = True
    reads: bool = True

    def argv(self, *argv: str) -> tuple[str, ...]:
        """The words that start a program as this user."""
        group = f"--groups={shared_group().gr_gid}" if self.member else "--clear-groups"
        reads = ("--inh-caps", CAPABILITY, "--ambient-caps", CAPABILITY) if self.reads else ()
        return ("setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", group, *reads, *argv)

    def environ(self) -> dict[str, str]:
        """The environment of this user's programs, which can import ours."""
        return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY}/tests", "HOME": "/nonexistent"}

    def run(
        self, *argv: str, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, to its end."""
        return subprocess.run(
            self.argv(*argv),
            env=environ or self.environ(),
            cwd=folder,
            umask=0o022,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def sh(self, script: str, *words: str) -> str:
        """Run a script of the shell, which must end well; returns its output."""
        done = self.run("sh", "-euc", script, "sh", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program that can import ours."""
        return self.run(sys.executable, "-c", program, *words)

    def need(self, *argv: str) -> None:
        """Skip the test if this process cannot start this program as this user."""
        if os.geteuid() != 0:
            pytest.skip("only root can start processes as other users")
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is not installed")
        tried = self.run(*argv, folder=Path("/"))
        if tried.returncode:
            pytest.skip(f"another user cannot start {argv[0]}: {tried.stderr.strip()[-200:]}")


def stranger(number: int) -> User:
    """A user of this number, who may read no more than others and has no account."""
    return User("", number, number, member=False, reads=False)


def shared_group() -> grp.struct_group:
    """A group of this machine that is nobody's own."""
    own = {entry.pw_gid for entry in pwd.getpwall()}
    return next(group for group in sorted(grp.getgrall(), key=lambda group: -group.gr_gid) if group.gr_gid not in own)


def members() -> tuple[User, User, User]:
    """Three users who have accounts and are members of the group, for attacks on a shared root."""
    seen: dict[int, User] = {}
    for entry in pwd.getpwall():
        if 0 < entry.pw_uid < 1000 and entry.pw_gid > 0:
            seen.setdefault(entry.pw_gid, User(entry.pw_name, entry.pw_uid, entry.pw_gid))
    alice, bob, mallory, *_ = seen.values()
    alice.need("true")
    return alice, bob, mallory


@dataclass(frozen=True)
class Users:
    """A folder that every user may enter; below it each of the two has a folder of his own, `home` of the victim."""

    folder: Path
    tools: Forks

    @property
    def home(self) -> Path:
        """The home of the victim."""
        return self.folder / "home"

    def environ(self, **more: str) -> dict[str, str]:
        """The variables of their programs: no setting of the tests'."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8", **more}

    def run(self, user: int, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a program as this user."""
        return stranger(user).run(*argv, environ=self.environ(**environ), folder=self.folder)

    def tool(self, *words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `provision` as the victim, in a process that has imported it already."""
        return self.tools.run(*words, folder=cwd or self.folder, environ=self.environ(**environ))

    def python(self) -> str:
        """The Python of the tests, as a user can start it who may not enter the home in which it is installed."""
        minor = f"python3.{sys.version_info[1]}"
        venv, packages = self.folder / "python", sysconfig.get_path("purelib")
        bases = (os.path.realpath(sys.executable), f"/usr/bin/{minor}", f"/usr/local/bin/{minor}")
        for base in bases:
            if self.run(VICTIM, "env", base, "-c", "import venv").returncode == 0:
                subprocess.run([base, "-I", "-m", "venv", "--without-pip", str(venv)], check=True)
                (venv / "lib" / minor / "site-packages" / "ours.pth").write_text(f"{packages}\n")
                (venv / "bin" / "uv").symlink_to(Path(sys.executable).with_name("uv"))
                return str(venv / "bin" / "python")
        pytest.skip(f"another user can start none of {', '.join(bases)}")

    def own(self, path: Path, user: int, mode: int, group: int | None = None) -> Path:
        """Give a file or folder to a user, with this mode."""
        os.chown(path, user, user if group is None else group)
        path.chmod(mode)
        return path

    def make_folder(self, name: str, user: int, mode: int = 0o755, group: int | None = None) -> Path:
        """A new folder of this user."""
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return self.own(path, user, mode, group)

    def make_file(self, name: str, text: str, user: int, mode: int = 0o644, group: int | None = None) -> Path:
        """A new file of this user."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return self.own(path, user, mode, group)


@pytest.fixture(scope="session")
def tools_of_victim() -> Iterator[Forks]:
    """The tool, started by the victim; a test is skipped if this process cannot become another user."""
    victim = stranger(VICTIM)
    victim.need(sys.executable, "-I", "-m", "provision", "--version")
    forks = Forks(victim.argv(), {"PATH": os.environ["PATH"]}, TOOL, "-I")
    yield forks
    forks.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; only root may enter those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="provision-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def users(tools_of_victim: Forks, open_folder: Path) -> Users:
    """The two users."""
    users = Users(open_folder, tools_of_victim)
    users.make_folder("home", VICTIM)
    return users
