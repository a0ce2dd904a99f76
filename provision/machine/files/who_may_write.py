"""Find the users, other than the admins, that may write a path of a root or of a configuration, or a folder on the way."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from provision.model.trust import ROOT, AccessList, OwnedPath, Stranger, parse_acl, repair

MOST_LINKS = 40


def entries_to(path: str) -> list[OwnedPath]:
    """Every folder, link and file that decides which file a path is, from the root of the file system to the file.

    Before each entry comes the folder that it is in.

    Raises:
        OSError: there is no such file, or the links go in a circle.
    """
    entries, current, links = [entry_of("/")], "/", 0
    # As the kernel does it: `..` is the parent of the folder that a link leads to, not of the link.
    rest = (path if os.path.isabs(path) else os.path.join(os.getcwd(), path)).split("/")[::-1]
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
            entries.append(entry_of(current))
            continue
        entry = entry_of(os.path.join(current, part))
        entries.append(entry)
        if not stat.S_ISLNK(entry.mode):
            current = entry.path
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(entry.path)
        current = "/" if target.startswith("/") else current
        entries.append(entry_of(current))
        rest += target.split("/")[::-1]
    return entries


def entry_of(path: str, descriptor: int | None = None) -> OwnedPath:
    """What is at this path, links not followed; or what this descriptor has open.

    Raises:
        OSError: there is nothing.
    """
    status = os.lstat(path) if descriptor is None else os.fstat(descriptor)
    entry = OwnedPath(path=path, user=status.st_uid, group=status.st_gid, mode=status.st_mode)
    # An access list that lets others write sets the bit of the group too.
    if stat.S_ISLNK(entry.mode) or not entry.mode & stat.S_IWGRP:
        return entry
    import dataclasses

    primary, private = _groups_of_owner(status)
    return dataclasses.replace(entry, primary=primary, private=private, acl=access_list(descriptor or path))


def access_list(path: str | int) -> AccessList | None:
    """The access control list of a path or an open file; None if it has none, or the file system knows none."""
    try:
        return parse_acl(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return None


def _groups_of_owner(status: os.stat_result) -> tuple[int | None, bool]:
    """The primary group of the owner, and whether the file's group is that one and has the owner's name."""
    import pwd

    try:
        account = pwd.getpwuid(status.st_uid)
    except KeyError:
        return None, False
    return account.pw_gid, account.pw_gid == status.st_gid and account.pw_name == group_name(status.st_gid)


def name_of(stranger: Stranger) -> str:
    """A stranger as a phrase."""
    match stranger.kind:
        case "user":
            return f"user `{user_name(stranger.number)}`"
        case "group":
            return f"group `{group_name(stranger.number)}`"
        case "everyone":
            return "every user"


def describe(strangers: Sequence[Stranger]) -> list[str]:
    """The entries that strangers may write, each as `ls -l` describes it."""
    return [
        f"{stat.filemode(entry.mode)} {user_name(entry.user)} {group_name(entry.group)} {entry.path}"
        for entry in dict.fromkeys(stranger.entry for stranger in strangers)
    ]


def repair_hint(strangers: Sequence[Stranger]) -> str:
    """Who has to type which command, so that these strangers cannot write any more."""
    for entry in (stranger.entry for stranger in strangers):
        if (entry.user, entry.mode) == (ROOT, stat.S_IFDIR | 0o1777):  # as /tmp, which has to stay so
            return f"use a folder of your own in `{entry.path}`: every user can put files and links directly there"
    command, owners = repair(strangers), {stranger.entry.user for stranger in strangers}
    if os.geteuid() == ROOT or owners == {os.geteuid()}:
        return f"`{command}`"
    return f"ask {' and '.join(f'`{user_name(owner)}`' for owner in sorted(owners))} to run `{command}`"


def user_name(number: int) -> str:
    """The name of a user, or the number if no account has it."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group_name(number: int) -> str:
    """The name of a group, or the number if no group has it."""
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
