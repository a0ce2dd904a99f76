"""Who may write a file: the owners, groups and modes on the way to it, judged. Pure.

A user who may write a file, or a folder that it is in, decides its content: he can put another file in its place.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

ROOT = 0
ACL_USER, ACL_OWNING_GROUP, ACL_GROUP, ACL_MASK, ACL_WRITE = 0x02, 0x04, 0x08, 0x10, 2
NO_GROUPS: Mapping[int, frozenset[int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessList:
    """What a POSIX access control list adds to a mode: users and groups that may write, and whether the file's group may."""

    users: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    own_group: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, folder or link on the way to a file, as the system describes it; `mode` has the kind of file in it.

    `primary` and `private` are about the owner: his primary group, and whether the entry's group has no other member.
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
        """The users that may write: the owner first, because he may change the mode."""
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

    entry: Entry
    kind: Literal["user", "group", "everyone"]
    number: int = -1


def find_strangers(
    entries: Sequence[Entry], users: frozenset[int], site_groups: Mapping[int, frozenset[int]] = NO_GROUPS
) -> Iterator[Stranger]:
    """Who may write the entries on the way to a file (the last entry) and is not one of `users`: one stranger of each entry.

    `site_groups` (number to members) are the groups that the profile names. A member could have written that name into the
    profile himself, so the owner must also have shown that he gave the entry to the group, as only an owner can.
    """
    folder: Entry | None = None
    for entry, following in zip(entries, (*entries[1:], None), strict=True):
        # In a sticky folder such as /tmp others can add entries, but not replace a folder that is not theirs.
        sticky = entry.is_folder and entry.mode & stat.S_ISVTX and following and following.is_folder
        strange_users = [user for user in entry.writing_users if user not in users]
        given = [group for group in entry.writing_groups if group in site_groups and _is_given(entry, group, folder)]
        strange_groups = [group for group in entry.writing_groups if group not in given]
        if strange_users:
            yield Stranger(entry=entry, kind="user", number=strange_users[0])
        elif stat.S_ISLNK(entry.mode) or sticky:
            pass
        elif entry.mode & stat.S_IWOTH:
            yield Stranger(entry=entry, kind="everyone")
        elif strange_groups:
            yield Stranger(entry=entry, kind="group", number=strange_groups[0])
        for group in given:
            users |= site_groups[group]  # what a member makes in the folder belongs to him
        folder = entry if entry.is_folder else folder


def _is_given(entry: Entry, group: int, folder: Entry | None) -> bool:
    """Whether the owner has given the entry to this group on purpose: the umask 002 alone does not show it.

    It shows in the setgid bit of the folder, in an access control list, or in a group that is not the owner's primary group.
    """
    marked = entry if entry.is_folder else folder
    setgid = marked is not None and bool(marked.mode & stat.S_ISGID) and marked.group == group
    return setgid or group != entry.group or (entry.primary is not None and group != entry.primary)


def parse_acl(content: bytes) -> AccessList:
    """The users and groups that may write, from the attribute `system.posix_acl_access` of Linux (its format 2)."""
    rows = list(struct.iter_unpack("<HHI", content[4:]))
    mask = next((rights for tag, rights, _ in rows if tag == ACL_MASK), ACL_WRITE)
    writing = [(tag, number) for tag, rights, number in rows if rights & mask & ACL_WRITE]
    return AccessList(
        users=tuple(number for tag, number in writing if tag == ACL_USER),
        groups=tuple(number for tag, number in writing if tag == ACL_GROUP),
        own_group=any(tag == ACL_OWNING_GROUP for tag, _ in writing),
    )
