"""Read a file of the configuration (a profile, stack, lock, template or patch), unless others may write it.

These files decide which programs run: a profile names a Python and a compiler, a template becomes a script. What is judged is
the file that was opened, and every folder and link on the way to it.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from provision.errors import ConfigError
from provision.machine.configuration import search_path
from provision.machine.trusted_files import MIB, read_regular
from provision.model.trust import ROOT, AccessList, Entry, Stranger, find_strangers, parse_acl

LIMIT = 8 * MIB
MOST_LINKS = 40


def read_configuration(path: str, name: str, place: str | None = None) -> str:
    """The text of a file. `name` is its path below a configuration folder; `place` is that folder, None if a user named the file.

    The folder that a user or the site chose says whom to believe: its owner. A file that the user named says it too, so that
    one user can build with the profile of another.

    Raises:
        ConfigError: others may write it.
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    content, status = read_regular(path, limit=LIMIT)
    if place != search_path.shipped_root():  # a user who may write there may write this program
        entries = entries_to(path)
        last = os.lstat(entries[-1].path)
        if (last.st_dev, last.st_ino) != (status.st_dev, status.st_ino):
            raise OSError(errno.ESTALE, "was replaced while it was read", path)
        users = frozenset((ROOT, os.geteuid(), *_owner(status, place)))
        strangers = list(find_strangers(entries, users))
        if strangers:
            strangers = list(find_strangers(entries, users, _site_groups(entries, path, name, content, place)))
        if strangers:
            raise _untrusted(path, name, strangers)
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _owner(status: os.stat_result, place: str | None) -> tuple[int, ...]:
    """The owner to believe, as well as root and this user: of the file that the user named, or of the chosen folder."""
    if place is None:
        return (status.st_uid,)
    return () if place == search_path.user_folder() else (os.stat(place).st_uid,)


def entries_to(path: str) -> list[Entry]:
    """Every folder, link and file that decides which file a path is, from the root of the file system to the file.

    Before each entry comes the folder that it is in.

    Raises:
        OSError: there is no such file, or the links go in a circle.
    """
    entries, current, links = [_entry("/")], "/", 0
    # As the kernel does it: `..` is the parent of the folder that a link leads to, not of the link.
    rest = (path if os.path.isabs(path) else os.path.join(os.getcwd(), path)).split("/")[::-1]
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
            entries.append(_entry(current))
            continue
        entry = _entry(os.path.join(current, part))
        entries.append(entry)
        if not stat.S_ISLNK(entry.mode):
            current = entry.path
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(entry.path)
        current = "/" if target.startswith("/") else current
        entries.append(_entry(current))
        rest += target.split("/")[::-1]
    return entries


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    entry = Entry(path=path, user=status.st_uid, group=status.st_gid, mode=status.st_mode)
    if (
        stat.S_ISLNK(entry.mode) or not entry.mode & stat.S_IWGRP
    ):  # an access list that lets others write sets this bit too
        return entry
    import dataclasses

    return dataclasses.replace(
        entry, primary=_primary(entry.user), private=_is_private(entry.group, entry.user), acl=_acl(path)
    )


def _acl(path: str) -> AccessList | None:
    try:
        return parse_acl(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return None


def _primary(user: int) -> int | None:
    import pwd

    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return None


def _is_private(group: int, user: int) -> bool:
    """Whether a group is a user's own, with his name and no other member, as most systems make one for each user."""
    import grp
    import pwd

    try:
        account, its = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    if (account.pw_gid, account.pw_name) != (group, its.gr_name) or set(its.gr_mem) - {account.pw_name}:
        return False
    return not any(other.pw_gid == group and other.pw_uid != user for other in pwd.getpwall())


def _site_groups(
    entries: Sequence[Entry], path: str, name: str, content: bytes, place: str | None
) -> dict[int, frozenset[int]]:
    """The groups that `files.group` names in the profile, or in those beside the file, with the owners who are members."""
    import grp
    import pwd

    # The locks of an upgrade are below a root, beside no profile.
    of_upgrade = place is not None and place == search_path.locks_folder()
    places = (
        search_path.search_path() if of_upgrade else [place or os.path.dirname(os.path.dirname(os.path.abspath(path)))]
    )
    texts = [content] if name.startswith("sites/") else []
    for folder in (os.path.join(one, "sites") for one in places):
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for file in names:
            if file.endswith(".toml"):
                try:
                    texts.append(read_regular(os.path.join(folder, file), limit=LIMIT)[0])
                except OSError:
                    continue
    members: dict[int, frozenset[int]] = {}
    for text in texts:
        try:
            group = grp.getgrnam(_group_in(text)).gr_gid
        except (KeyError, ValueError):
            continue
        found = set()
        for user in {entry.user for entry in entries}:
            try:
                account = pwd.getpwuid(user)
            except KeyError:
                continue
            found |= {user} if group in os.getgrouplist(account.pw_name, account.pw_gid) else set()
        members[group] = frozenset(found)
    return members


def _group_in(profile: bytes) -> str:
    """The group that a profile names in `files.group`, or an empty text."""
    from provision.machine.configuration.shipped import parse

    try:
        files: Mapping[str, Any] = parse(profile.decode("utf-8"), "").get("files", {})
    except (ConfigError, UnicodeDecodeError):
        return ""
    group = files.get("group") if isinstance(files, Mapping) else None
    return group if isinstance(group, str) else ""


def _untrusted(path: str, name: str, strangers: Sequence[Stranger]) -> ConfigError:
    """The error for a file that these strangers may write; the message is about the first, the hint about all."""
    first = strangers[0]
    entry = first.entry
    what = "the folder " if entry.is_folder else "the link " if stat.S_ISLNK(entry.mode) else ""
    who = {
        "user": f"user `{user_name(first.number)}`",
        "group": f"group `{group_name(first.number)}`",
        "everyone": "every user",
    }[first.kind]
    may = "owns" if _is_owner(first) else "may write"
    described = [
        f"{stat.filemode(one.mode)} {user_name(one.user)} {group_name(one.group)} {one.path}"
        for one in dict.fromkeys(stranger.entry for stranger in strangers)
    ]
    return ConfigError(
        f"`{path}` is refused: {who} {may} {f'{what}`{entry.path}`' if what else 'it'}",
        evidence=[*described, "anybody who can write this file can run programs as you"],
        hint=_fix(path, name, strangers),
        kind="untrusted",
    )


def _is_owner(stranger: Stranger) -> bool:
    return stranger.kind == "user" and stranger.number == stranger.entry.user


def _fix(path: str, name: str, strangers: Sequence[Stranger]) -> str:
    """What to type: a copy if a stranger owns an entry, else the entries' modes or access lists, changed by their owners."""
    if any(map(_is_owner, strangers)):
        mine = os.path.join(search_path.user_folder(), name)
        return f"read it; to use it, copy it: `install -D -m 644 {shlex.quote(path)} {shlex.quote(mine)}`"
    entries = list(dict.fromkeys(stranger.entry for stranger in strangers))
    listed = [entry.path for entry in entries if entry.acl is not None]
    plain = [entry.path for entry in entries if entry.acl is None]
    commands = [shlex.join(["setfacl", "-b", *listed])] if listed else []
    commands += [shlex.join(["chmod", "go-w", *plain])] if plain else []
    command = " && ".join(commands)
    owners = dict.fromkeys(entry.user for entry in entries)
    if os.geteuid() == ROOT or set(owners) == {os.geteuid()}:
        return f"`{command}`"
    return f"ask {' and '.join(f'`{user_name(owner)}`' for owner in owners)} to run `{command}`"


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
