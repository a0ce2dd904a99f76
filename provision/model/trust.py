"""Who may write a file or folder besides its admins: owners, groups, modes and access lists on the way to it. Pure.

Whoever may write a file, or a folder that it is in, decides its content: another file can be put in its place. Who that is
is read from modes and access lists alone, never from lists of members: directories of large sites do not give them.
"""

from __future__ import annotations

import shlex
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

ROOT = 0
ACL_USER, ACL_OWNING_GROUP, ACL_GROUP, ACL_MASK, ACL_WRITE, ACL_READ_AND_ENTER = 0x02, 0x04, 0x08, 0x10, 2, 5
NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessList:
    """What a POSIX access control list adds to a mode: users and groups that may write, and whether the file's group may.

    `readers` are the groups that may list and enter a folder.
    """

    users: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    own_group: bool = False
    readers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPath:
    """A file, folder or link on the way to a file, as the system describes it; `mode` has the kind of file in it.

    `primary` and `private` are about the owner: the primary group, and whether the entry's group is that group and has the
    owner's name, as most systems make one for each user.
    """

    path: str
    user: int
    group: int
    mode: int
    primary: int | None = None
    private: bool = False
    acl: AccessList | None = None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.mode)

    @property
    def writing_users(self) -> tuple[int, ...]:
        """The users that may write: the owner first, because an owner may change the mode."""
        return (self.user, *(self.acl.users if self.acl else ()))

    @property
    def writing_groups(self) -> tuple[int, ...]:
        """The groups that may write, without root's and the owner's private group."""
        own = self.mode & stat.S_IWGRP if self.acl is None else self.acl.own_group
        alone = self.group == ROOT or self.private
        return (*((self.group,) if own and not alone else ()), *(self.acl.groups if self.acl else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A user or group that may write `entry` but should not; `number` is the user's or the group's."""

    entry: OwnedPath
    kind: Literal["user", "group", "everyone"]
    number: int = -1

    @property
    def owns(self) -> bool:
        """Whether it is the owner of the entry."""
        return self.kind == "user" and self.number == self.entry.user


def find_strangers(
    entries: Sequence[OwnedPath], users: frozenset[int], groups: frozenset[int] = NOBODY, *, known: bool = False
) -> Iterator[Stranger]:
    """Who may write the entries on the way to a file (the last entry), besides these users and the members of these groups.

    A group may write only what its owner gave it on purpose, unless it is `known` to be the group of the admins: in a
    profile that its members may write, they can name it themselves. What is in a folder that such a group may write belongs
    to whoever of its members made it, so there owners are not judged.
    """
    folder: OwnedPath | None = None
    shared = False
    for entry, following in zip(entries, (*entries[1:], None), strict=True):
        # In a sticky folder such as /tmp others can add entries, but not replace a folder that is not theirs.
        sticky = entry.is_folder and entry.mode & stat.S_ISVTX and following and following.is_folder
        given = {
            group
            for group in entry.writing_groups
            if group in groups and (known or shared or _is_given(entry, group, folder))
        }
        for user in () if shared else entry.writing_users:
            if user not in users:
                yield Stranger(entry=entry, kind="user", number=user)
        if stat.S_ISLNK(entry.mode):
            shared = False  # it leads to another place
            continue
        if not sticky:
            if entry.mode & stat.S_IWOTH:
                yield Stranger(entry=entry, kind="everyone")
            for group in entry.writing_groups:
                if group not in given:
                    yield Stranger(entry=entry, kind="group", number=group)
        shared = shared or bool(given)
        folder = entry if entry.is_folder else folder


def _is_given(entry: OwnedPath, group: int, folder: OwnedPath | None) -> bool:
    """Whether the owner has given the entry to this group on purpose: the umask 002 alone does not show it.

    It shows in the setgid bit of the folder, in an access control list, or in a group that is not the owner's primary group.
    """
    marked = entry if entry.is_folder else folder
    setgid = marked is not None and bool(marked.mode & stat.S_ISGID) and marked.group == group
    return setgid or group != entry.group or (entry.primary is not None and group != entry.primary)


def repair(strangers: Sequence[Stranger]) -> str:
    """The commands, as one line of the shell, after which these strangers cannot write; an owner cannot be kept away so."""
    commands: dict[tuple[str, ...], list[str]] = {}
    for entry in dict.fromkeys(stranger.entry for stranger in strangers):
        found = [stranger for stranger in strangers if stranger.entry is entry and not stranger.owns]
        own = [one for one in found if one.kind == "everyone" or (one.kind == "group" and one.number == entry.group)]
        whom = "".join(sorted({"everyone": "o", "group": "g"}.get(one.kind, "") for one in own))
        listed = [f"{one.kind[0]}:{one.number}" for one in found if one not in own]
        if whom:
            commands.setdefault(("chmod", f"{whom}-w"), []).append(entry.path)
        if listed:
            commands.setdefault(("setfacl", "-x", ",".join(listed)), []).append(entry.path)
    return " && ".join(shlex.join([*words, *paths]) for words, paths in commands.items())


def parse_acl(content: bytes) -> AccessList:
    """What an access list adds, from the attribute `system.posix_acl_access` of Linux (its format 2)."""
    rows = list(struct.iter_unpack("<HHI", content[4:]))
    mask = next((rights for tag, rights, _ in rows if tag == ACL_MASK), 7)
    allowed = [(tag, rights & mask, number) for tag, rights, number in rows]
    writing = [(tag, number) for tag, rights, number in allowed if rights & ACL_WRITE]
    return AccessList(
        users=tuple(number for tag, number in writing if tag == ACL_USER),
        groups=tuple(number for tag, number in writing if tag == ACL_GROUP),
        own_group=any(tag == ACL_OWNING_GROUP for tag, _ in writing),
        readers=tuple(
            number for tag, rights, number in allowed if tag == ACL_GROUP and not ~rights & ACL_READ_AND_ENTER
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Who may write and read below a root, as the profile at `origin` says.

    `group` is the Unix group of the admins: whoever may write there is one. The members of the group `readers` may only read;
    without it every user may. With `lenient` the owner of the root goes on although others may write there: it must always be
    possible to take something from users.
    """

    group: str | None = None
    readers: str | None = None
    origin: str = "the site profile"
    lenient: bool = False
