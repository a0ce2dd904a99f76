"""Two other users of this machine, as real processes with numbers of their own (`setpriv` of util-linux)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from parts.forks import Forks

VICTIM, ATTACKER = 54321, 54322
"""Numbers that no account of the machine has."""
# Everything that a verb may import.
TOOL = """
import importlib, pkgutil
import provision
from provision.cli import main
for found in pkgutil.walk_packages(provision.__path__, "provision."):
    if ".programs." not in found.name:
        importlib.import_module(found.name)
"""


def argv_of(user: int) -> tuple[str, ...]:
    """The words that start a program as this user, with no group of root's."""
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


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
        return subprocess.run(
            [*argv_of(user), *argv],
            env=self.environ(**environ),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

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
    if os.geteuid() != 0:
        pytest.skip("only root can start processes as two other users")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    words = [*argv_of(VICTIM), sys.executable, "-I", "-m", "provision", "--version"]
    started = subprocess.run(words, env={}, cwd="/", capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(f"another user cannot start the Python of the tests: {started.stderr.strip()[-200:]}")
    forks = Forks(argv_of(VICTIM), {"PATH": os.environ["PATH"]}, TOOL, "-I")
    yield forks
    forks.close()


@pytest.fixture
def users(tools_of_victim: Forks) -> Iterator[Users]:
    """The two users."""
    # Not below tmp_path, which only root may enter.
    folder = Path(tempfile.mkdtemp(prefix="provision-users-"))
    folder.chmod(0o755)
    users = Users(folder, tools_of_victim)
    try:
        users.make_folder("home", VICTIM)
        yield users
    finally:
        shutil.rmtree(folder)
