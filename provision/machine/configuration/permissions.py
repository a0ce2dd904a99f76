"""Read and parse a file of the configuration (a profile, stack, lock, template or patch), unless others may write it.

These files decide which programs run: a profile names a Python and a compiler, a template becomes a script. What is judged is
the file that was opened, and every folder and link on the way to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from provision.errors import ConfigError
from provision.machine.configuration import search_path
from provision.machine.files.disk import toml_table
from provision.machine.files.trusted_files import MIB, read_regular
from provision.machine.files.who_may_write import describe, entries_to, name_of, repair_hint
from provision.model.trust import ROOT, Stranger, find_strangers
from provision.profile.document import refuse_extremes

LIMIT = 8 * MIB


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
            strangers = list(find_strangers(entries, users, _site_groups(path, name, content, place)))
        if strangers:
            raise _untrusted(path, name, strangers)
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def parse(text: str, origin: str) -> Mapping[str, Any]:
    """A text of TOML, parsed.

    Raises:
        ConfigError: it is not TOML.
    """
    try:
        data = toml_table(text)
    except ValueError as error:
        raise ConfigError(
            f"`{origin}` is not TOML", evidence=[str(error)], hint=f"edit `{origin}`", kind="invalid-file"
        ) from error
    refuse_extremes(data, origin)
    return data


def _owner(status: os.stat_result, place: str | None) -> tuple[int, ...]:
    """The owner to believe, as well as root and this user: of the file that the user named, or of the chosen folder."""
    if place is None:
        return (status.st_uid,)
    return () if place == search_path.user_folder() else (os.stat(place).st_uid,)


def _site_groups(path: str, name: str, content: bytes, place: str | None) -> frozenset[int]:
    """The groups that `files.group` names in the profile, or in those beside the file."""
    import grp

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
    found = set()
    for text in texts:
        # A profile without the key, with another kind of value, or not TOML names no group.
        with contextlib.suppress(ConfigError, KeyError, TypeError, ValueError):
            found.add(grp.getgrnam(parse(text.decode("utf-8"), "")["files"]["group"]).gr_gid)
    return frozenset(found)


def _untrusted(path: str, name: str, strangers: Sequence[Stranger]) -> ConfigError:
    """The error for a file that these strangers may write; the message is about the first, the hint about all."""
    first = strangers[0]
    entry = first.entry
    what = "the folder " if entry.is_folder else "the link " if stat.S_ISLNK(entry.mode) else ""
    may = "owns" if first.owns else "may write"
    hint = repair_hint(strangers)
    if any(one.owns for one in strangers):
        mine = os.path.join(search_path.user_folder(), name)
        hint = f"read it; to use it, copy it: `install -D -m 644 {shlex.quote(path)} {shlex.quote(mine)}`"
    return ConfigError(
        f"`{path}` is refused: {name_of(first)} {may} {f'{what}`{entry.path}`' if what else 'it'}",
        evidence=[*describe(strangers), "anybody who can write this file can run programs as you"],
        hint=hint,
        kind="untrusted",
    )
