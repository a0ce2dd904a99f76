"""Whose files below the root are believed. Pure: owners and modes come in as numbers, from the open file or folder."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from provision.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How a root is shared, from `[files]` of the profile `origin`: a Unix group whose members write below it, and admins.

    What is read and run (records, receipts, wheels, pointers) is believed only if an admin owns it: to be a member of the
    group is not enough.
    """

    group: str | None = None
    admins: tuple[str, ...] = ()
    origin: str = "the site profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """The users whose files are believed: their numbers, each with the reason."""

    reasons: Mapping[int, str] = field(default_factory=dict)
    sharing: Sharing = field(default_factory=Sharing)

    def fault(self, uid: int, mode: int) -> str | None:
        """Why a file, folder or link with this owner and mode is not believed; None if it is.

        If its group can write it, its content may be of any member of the group, whoever owns it. A link has no mode.
        """
        if uid not in self.reasons:
            return "its owner is not an admin of this site"
        if stat.S_ISLNK(mode):
            return None
        if mode & stat.S_IWOTH:
            return "every user can write it"
        if mode & stat.S_IWGRP:
            return "every member of its group can write it"
        return None

    def problem(self, path: str, uid: int, mode: int, name: str) -> Problem:
        """The problem of a path that has a fault; `name` is the owner's."""
        fault, quoted = self.fault(uid, mode), shlex.quote(path)
        shown = "a symbolic link" if stat.S_ISLNK(mode) else f"mode {stat.S_IMODE(mode):o}"
        if uid not in self.reasons:
            hint = f"`rm -r {quoted}`, then run the same command again; or, if `{name}` is an admin, add the name to "
            hint += f"`files.admins` in `{self.sharing.origin}`"
        else:
            hint = f"`find {quoted} ! -user {shlex.quote(name)}` lists what others wrote there; remove that, then "
            hint += f"`chmod -R go-w {quoted}`"
        return Problem(
            kind="untrusted",
            subject="owner",
            message=f"`{path}` is not believed: {fault}",
            evidence=(f"owner: {name} ({uid}), {shown}", f"believed: {', '.join(self.reasons.values())}"),
            hint=hint,
        )
