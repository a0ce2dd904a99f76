"""What other users cannot read, with real folders and, where this process is root, a real other user."""

from __future__ import annotations

from pathlib import Path

from parts.users import VICTIM, Users
from provision.machine.probes.other_users import (
    check_other_users,
    closed_python,
    closed_to_others,
    failure_as_nobody,
)


def make_python(folder: Path) -> Path:
    """A program and a library in folders, as those of a Python."""
    for path in (folder / "bin" / "python3", folder / "lib" / "python3.11" / "os.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return folder / "bin" / "python3"


def test_the_first_closed_folder_is_named_also_behind_links(users: Users) -> None:
    home = users.make_folder("private", VICTIM)
    python = make_python(home / "versions" / "3.11")
    link = users.folder / "python3"
    link.symlink_to(python)
    root = users.make_folder("root", VICTIM)
    assert closed_to_others(str(link)) is None
    assert closed_python(str(link), str(root / "not" / "there")) == ()
    home.chmod(0o700)
    assert closed_to_others(str(link)) == f"drwx------ {home}"
    assert closed_python(str(link), str(root)) == (f"drwx------ {home}",)
    root.chmod(0o700)
    assert closed_python(str(link), str(root)) == (), "no other user comes to the root, which may be for one user"
    home.chmod(0o755)
    root.chmod(0o755)
    (python.parents[1] / "lib" / "python3.11" / "os.py").chmod(0o600)
    assert closed_python(str(link), str(root))[0].startswith("-rw------- "), "the standard library counts too"


def test_another_user_really_cannot_start_a_python_in_a_closed_folder(users: Users) -> None:
    home = users.make_folder("private", VICTIM)
    python = make_python(home)
    assert failure_as_nobody(str(python)) is None
    home.chmod(0o700)
    assert "denied" in str(failure_as_nobody(str(python)))
    root = users.make_folder("root", VICTIM)
    (check,) = check_other_users(str(root), str(python))
    assert (check.name, check.passed) == ("other users", False)
    root.chmod(0o700)
    assert check_other_users(str(root), str(python)) == ()


def test_what_is_missing_is_not_called_closed() -> None:
    assert closed_to_others("/no/such/file") is None
