"""What other users of this machine cannot read: an environment is of no use to them if its Python is in a private folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from provision.machine.programs.run import capture
from provision.model.verdict import Check, bad, good
from provision.profile.patterns import show_controls

# A user without a home and without files, on every Linux (nobody), as a number: containers may not have the name.
NOBODY = "65534"


def closed_to_others(path: str) -> str | None:
    """The first folder on the way to the path, links followed, that other users cannot enter, or the path if they cannot read it.

    The answer is a line such as `drwx------ /home/ada`; None if all users can read the path. Nobody else is asked, so lists of
    access rights (ACLs) that give more are not seen; those that give less are.
    """
    for name in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        steps = [*reversed(Path(name).parents), Path(name)]
        for step in steps:
            try:
                mode = step.stat().st_mode
            except OSError:
                return None  # it is missing, which another probe reports
            needed = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if not mode & needed:
                return f"{stat.filemode(mode)} {show_controls(str(step))}"
    return None


def closed_python(executable: str, root: str) -> tuple[str, ...]:
    """Why other users cannot run this Python and its standard library; empty if they can, or cannot enter the root either."""
    there = Path(root)
    while not there.exists() and there != there.parent:
        there = there.parent
    if closed_to_others(str(there)):
        return ()
    program = Path(os.path.realpath(executable))
    library = sorted(program.parent.parent.glob("lib*/python3*/os.py"))
    closed = (closed_to_others(str(path)) for path in (executable, *library))
    return tuple(dict.fromkeys(line for line in closed if line))


def failure_as_nobody(python: str) -> str | None:
    """What a user without any rights sees who starts this Python; None if it starts, or if only root could try that.

    The prefix is entered by its full path, so every folder up to it counts.
    """
    if os.geteuid() != 0:
        return None
    argv = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", python, "-I", "-c", "import json")
    done = capture(argv, {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, folder="/")
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it did not start"])[-1]


def check_other_users(root: str, python: str) -> tuple[Check, ...]:
    """Whether another user can start an environment's Python, if they can enter its root and this process is root."""
    if os.geteuid() != 0 or closed_to_others(root):
        return ()
    failure = failure_as_nobody(python)
    if failure is None:
        return (good("other users", "another user can start its Python"),)
    hint = "let all users enter the folders of the base Python (`chmod o+x`), then run the same command again"
    return (bad("other users", f"another user cannot start its Python: {failure}", hint),)
