"""What other users of this machine cannot read: an environment is of no use to them if its Python is in a private folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from provision.machine.probes.look_around import nearest_existing
from provision.profile.patterns import show_controls


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
    if closed_to_others(str(nearest_existing(Path(root)))):
        return ()
    program = Path(os.path.realpath(executable))
    library = sorted(program.parent.parent.glob("lib*/python3*/os.py"))
    closed = (closed_to_others(str(path)) for path in (executable, *library))
    return tuple(dict.fromkeys(line for line in closed if line))
