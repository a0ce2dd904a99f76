"""Other users of this machine, for attacks on a shared root: real user and group numbers, by setpriv.

They may read every file, because the Python of the tests may be in root's home, but they write as themselves.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CAPABILITY = "+dac_read_search"


@dataclass(frozen=True)
class User:
    """A user who is in the group of the site, unless `member` is false."""

    name: str
    uid: int
    gid: int
    member: bool = True

    def argv(self, *argv: str, groups: tuple[int, ...] | None = None) -> tuple[str, ...]:
        """The words that start a program as this user."""
        others = ((shared_group().gr_gid,) if self.member else ()) if groups is None else groups
        return (
            *("setpriv", "--reuid", str(self.uid), "--regid", str(self.gid)),
            *(("--groups", ",".join(map(str, others))) if others else ("--clear-groups",)),
            *("--inh-caps", CAPABILITY, "--ambient-caps", CAPABILITY, *argv),
        )

    def environ(self) -> dict[str, str]:
        """The environment of this user's programs, which can import ours."""
        return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{TESTS.parent}:{TESTS}", "HOME": "/nonexistent"}

    def run(
        self,
        *argv: str,
        umask: int = 0o022,
        groups: tuple[int, ...] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, to its end."""
        return subprocess.run(
            self.argv(*argv, groups=groups),
            env={**self.environ(), **(environ or {})},
            umask=umask,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def sh(self, script: str, *words: str, umask: int = 0o022) -> str:
        """Run a script of the shell, which must end well; returns its output."""
        done = self.run("sh", "-euc", script, "sh", *words, umask=umask)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, program: str, *words: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
        """Run a Python program that can import ours."""
        return self.run(sys.executable, "-c", program, *words, umask=umask)


def shared_group() -> grp.struct_group:
    """A group of this machine that is nobody's own."""
    own = {entry.pw_gid for entry in pwd.getpwall()}
    return next(group for group in sorted(grp.getgrall(), key=lambda group: -group.gr_gid) if group.gr_gid not in own)


def users() -> tuple[User, User, User]:
    """Three users of this machine without power, who are members of the group.

    The test is skipped if it does not run as root.
    """
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    seen: dict[int, User] = {}
    for entry in pwd.getpwall():
        if 0 < entry.pw_uid < 1000 and entry.pw_gid > 0:
            seen.setdefault(entry.pw_gid, User(entry.pw_name, entry.pw_uid, entry.pw_gid))
    alice, bob, mallory, *_ = seen.values()
    tried = alice.run("true")
    if tried.returncode:
        pytest.skip(f"setpriv cannot be used here: {tried.stderr.strip()}")
    return alice, bob, mallory
