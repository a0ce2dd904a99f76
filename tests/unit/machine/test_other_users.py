"""What other users cannot read, with real folders."""

from __future__ import annotations

from pathlib import Path

from parts.users import VICTIM, Users
from provision.machine.probes.look_around import closed_python, closed_to_others


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


def test_what_is_missing_is_not_called_closed() -> None:
    assert closed_to_others("/no/such/file") is None
