"""The admins of a root are all who may write there. Modes and access lists show what other users may write."""

from __future__ import annotations

import contextlib
import grp
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.who_may_write import (
    describe,
    entries_to,
    entry_of,
    group_name,
    name_of,
    repair_hint,
    user_name,
)
from provision.model.problem import Problem
from provision.model.quoting import bash
from provision.model.sharing import Sharing
from provision.model.trust import ROOT, Entry, Stranger, find_strangers
from provision.wording import count

# How deep `notes` looks for folders that others may write: prefixes are in the third.
DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Admins:
    """Who may write below a root: its owner, root, the user who runs this, and the members of a group, if it is shared."""

    root: Path
    sharing: Sharing

    def problems(self) -> list[Problem]:
        """Why verbs that write refuse this root: others than its admins may write it, or everybody a folder that contains it."""
        return self._problems(
            [one for one in self._of_root() if not self._is_above(one.entry) or one.kind == "everyone"]
        )

    def notes(self) -> list[Problem]:
        """What an admin should know besides `problems`: who may write folders below the root, or one that contains it.

        Raises:
            StoreError: there is no such group, or the one who runs this is not a member.
        """
        self.group()
        strangers = [one for one in self._of_root() if self._is_above(one.entry) and one.kind != "everyone"]
        sticky = []
        with contextlib.suppress(OSError):
            for folder in map(str, folders_below(self.root, DEEPEST)):
                with contextlib.suppress(OSError):
                    entry = entry_of(folder)
                    strangers += self._strangers(entry)
                    sticky += [folder] if entry.mode & stat.S_ISVTX else []
        notes = self._problems(strangers)
        if sticky:  # of an older version
            message = (
                f"in {count(len(sticky), 'folder')} below `{self.root}` admins cannot remove what other admins wrote"
            )
            hint = f"as root: `{bash('find %s -type d -perm -1000 -exec chmod -t {} +', str(self.root))}`"
            notes.append(Problem(kind="name", subject="admins", message=message, evidence=(sticky[0],), hint=hint))
        if self.sharing.admins:
            message = f"`files.admins` in `{self.sharing.origin}` has no effect: all members of the group of the root are admins"
            hint = "remove the key, and remove from the group who is not an admin"
            notes.append(Problem(kind="name", subject="admins", message=message, hint=hint))
        return notes

    def problems_of(self, folder: Entry) -> list[Problem]:
        """Who may write a folder below the root, and is no admin.

        Raises:
            OSError: the root does not exist.
        """
        return self._problems(self._strangers(folder))

    def _of_root(self) -> list[Stranger]:
        """Who may write the root, or replace it in a folder that contains it, and is no admin; nobody if it does not exist."""
        try:
            return list(self._find(entries_to(str(self.root))))
        except OSError:
            return []

    def _strangers(self, folder: Entry) -> list[Stranger]:
        return [one for one in self._find([entry_of(str(self.root.resolve())), folder]) if one.entry is folder]

    def _find(self, entries: Sequence[Entry]) -> Iterator[Stranger]:
        """Who may write these entries and is no admin."""
        users, group = frozenset((ROOT, os.geteuid(), self.root.stat().st_uid)), self._number()
        return find_strangers(
            entries, users, frozenset(() if group is None else (group,)), known=self.sharing.group is not None
        )

    def _is_above(self, entry: Entry) -> bool:
        """Whether this is a folder that contains the root, or a link to it."""
        return not Path(entry.path).is_relative_to(self.root.resolve())

    def _problems(self, strangers: Sequence[Stranger]) -> list[Problem]:
        """One problem for each entry that strangers may write."""
        problems = []
        for entry in dict.fromkeys(stranger.entry for stranger in strangers):
            found = [stranger for stranger in strangers if stranger.entry == entry]
            above, hint = self._is_above(entry), repair_hint(found)
            if found[0].owns:
                hint = f"as root: `{bash('chown -h %s %s', user_name(self.root.stat().st_uid), entry.path)}`"
            elif found[-1].kind == "group" and found[-1].number == entry.group and not above:
                hint += f"; or, if its members are the admins: `{bash('chmod g+ws %s', entry.path)}`"
            problems.append(
                Problem(
                    kind="untrusted",
                    subject="admins",
                    message=f"{' and '.join(map(name_of, found))} {'owns' if found[0].owns else 'may write'} `{entry.path}`"
                    + (f", which contains the root `{self.root}`" if above else ""),
                    evidence=(*describe(found), f"admins of the root: {self.names}"),
                    hint=hint,
                )
            )
        return problems

    def _number(self) -> int | None:
        """The group of the admins: that of the profile, or else the one that the owner of the root gave it to.

        Raises:
            OSError: the root does not exist.
        """
        if self.sharing.group is not None:
            with contextlib.suppress(KeyError):  # a compute node may not know it
                return grp.getgrnam(self.sharing.group).gr_gid
            return None
        root = entry_of(str(self.root.resolve()))
        return root.group if root.group in root.writing_groups and root.mode & stat.S_ISGID else None

    @property
    def names(self) -> str:
        """All of them as a phrase.

        Raises:
            OSError: the root does not exist.
        """
        group = self._number()
        members = "" if group is None else f", the members of the group {group_name(group)}"
        owner = self.root.stat().st_uid
        return f"{'root' if owner == ROOT else f'root, {user_name(owner)}'} (owner){members}"

    def group(self) -> int | None:
        """The number of the admins' group, if the root is shared.

        Raises:
            StoreError: there is no such group, or the one who runs this is not a member.
        """
        name = self.sharing.group
        if name is None:
            return self._number() if self.root.exists() else None
        gid = self.number_of(name, "group")
        if os.geteuid() != 0 and gid not in (os.getegid(), *os.getgroups()):
            raise StoreError(
                f"`{user_name(os.geteuid())}` is not a member of `{name}`, the group that writes below `{self.root}`",
                evidence=[
                    f"groups of this process: {', '.join(map(group_name, sorted({os.getegid(), *os.getgroups()})))}"
                ],
                hint=f"`id` lists your groups, after a new login also new ones; `files.group` is in `{self.sharing.origin}`",
            )
        return gid

    def number_of(self, name: str, key: str) -> int:
        """The number of a group that the profile names in `files.KEY`.

        Raises:
            StoreError: there is no such group.
        """
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            raise StoreError(
                f"there is no Unix group `{name}` on this machine, but `files.{key}` names it",
                hint=f"`getent group {name}`; correct `files.{key}` in `{self.sharing.origin}`",
            ) from None


def folders_below(top: Path, depth: int) -> Iterator[Path]:
    """The folders below `top`, at most so deep; links are not followed, and what cannot be read is left out."""
    with contextlib.suppress(OSError):
        for path in sorted(top.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield path
                if depth > 1:
                    yield from folders_below(path, depth - 1)
