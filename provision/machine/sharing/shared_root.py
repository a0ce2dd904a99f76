"""The root of several admins. Everyone who may write below it is an admin; nobody else may write there.

The owner of the root, and root, are admins. If the group of the root may write it, all members of that group are: which group
that is says the profile (`files.group`), or else the mode of the root. Modes and access lists of the root, of the folders that
contain it, and of each folder that a verb enters to write are judged when it is entered. What is read is not judged again.
Folders do not depend on the umask of the one who runs. Everything inside a prefix or a generation can be written by its owner
alone, so that no other admin changes it by mistake.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from provision.errors import Fault, StoreError, raise_faults
from provision.machine.files import beneath
from provision.machine.files.disk import JSON, MOST_JSON, disk_errors, json_object, record_error
from provision.machine.files.trusted_files import read_regular
from provision.machine.files.who_may_write import (
    access_list,
    describe,
    entries_to,
    entry_of,
    group_name,
    name_of,
    repair_hint,
    user_name,
)
from provision.model.layout import Layout
from provision.model.quoting import bash
from provision.model.trust import ROOT, OwnedPath, Sharing, Stranger, find_strangers

T = TypeVar("T")
SHARED = stat.S_ISGID | 0o770
# What `disk.write`, `Store.remove` and `Generations.change` call a file or folder that is not finished.
LEFT = re.compile(r"\..+\.(removed\.)?[0-9]+\.[0-9a-f]{6}|\.next\..+")


# How deep `Admins.notes` looks for folders that others may write: prefixes are in the third.
DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Admins:
    """Who may write below a root: its owner, root, the user who runs this, and the members of a group, if it is shared."""

    root: Path
    sharing: Sharing

    def faults(self) -> list[Fault]:
        """Why verbs that write refuse this root: others than its admins may write it, or everybody a folder that contains it."""
        return self._faults([one for one in self._of_root() if not self._is_above(one.entry) or one.kind == "everyone"])

    def notes(self) -> list[Fault]:
        """Notes for an admin, in addition to `faults`: who may write folders below the root, or one that contains it.

        Raises:
            StoreError: there is no such group, or the one who runs this is not a member.
        """
        self.group()
        strangers = [one for one in self._of_root() if self._is_above(one.entry) and one.kind != "everyone"]
        with contextlib.suppress(OSError):
            for folder in map(str, folders_below(self.root, DEEPEST)):
                with contextlib.suppress(OSError):
                    strangers += self._strangers(entry_of(folder))
        return self._faults(strangers)

    def faults_of(self, folder: OwnedPath) -> list[Fault]:
        """Who may write a folder below the root, and is no admin.

        Raises:
            OSError: the root does not exist.
        """
        return self._faults(self._strangers(folder))

    def _of_root(self) -> list[Stranger]:
        """Who may write the root, or replace it in a folder that contains it, and is no admin; nobody if it does not exist."""
        try:
            return list(self._find(entries_to(str(self.root))))
        except OSError:
            return []

    def _strangers(self, folder: OwnedPath) -> list[Stranger]:
        return [one for one in self._find([entry_of(str(self.root.resolve())), folder]) if one.entry is folder]

    def _find(self, entries: Sequence[OwnedPath]) -> Iterator[Stranger]:
        """Who may write these entries and is no admin."""
        users, group = frozenset((ROOT, os.geteuid(), self.root.stat().st_uid)), self._number()
        return find_strangers(
            entries, users, frozenset(() if group is None else (group,)), known=self.sharing.group is not None
        )

    def _is_above(self, entry: OwnedPath) -> bool:
        """Whether this is a folder that contains the root, or a link to it."""
        return not Path(entry.path).is_relative_to(self.root.resolve())

    def _faults(self, strangers: Sequence[Stranger]) -> list[Fault]:
        """One fault for each entry that strangers may write."""
        faults = []
        for entry in dict.fromkeys(stranger.entry for stranger in strangers):
            found = [stranger for stranger in strangers if stranger.entry == entry]
            above, hint = self._is_above(entry), repair_hint(found)
            if found[0].owns:
                hint = f"as root: `{bash('chown -h %s %s', user_name(self.root.stat().st_uid), entry.path)}`"
            elif found[-1].kind == "group" and found[-1].number == entry.group and not above:
                hint += f"; or, if its members are the admins: `{bash('chmod g+ws %s', entry.path)}`"
            faults.append(
                Fault(
                    "untrusted",
                    "admins",
                    f"{' and '.join(map(name_of, found))} {'owns' if found[0].owns else 'may write'} `{entry.path}`"
                    + (f", which contains the root `{self.root}`" if above else ""),
                    evidence=(*describe(found), f"admins of the root: {self.names}"),
                    hint=hint,
                )
            )
        return faults

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


@dataclass(frozen=True, slots=True)
class SharedRoot:
    """The files below one root, and who may write there."""

    layout: Layout
    sharing: Sharing = field(default_factory=Sharing)

    @property
    def root(self) -> Path:
        """The root as a path on this machine."""
        return Path(self.layout.root)

    @property
    def admins(self) -> Admins:
        """Who may write below the root."""
        return Admins(self.root, self.sharing)

    # Reading

    def read(self, path: str | os.PathLike[str], *, limit: int = MOST_JSON) -> bytes | None:
        """The content of a file; None if there is no such file. Links are not followed.

        Raises:
            OSError: it is not a regular file, is too large or cannot be read.
        """
        try:
            return read_regular(path, limit=limit, follow=False)[0]
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read_json(self, path: str | os.PathLike[str]) -> JSON | None:
        """The JSON object in a file; None if there is none, or it is damaged."""
        try:
            content = self.read(path)
            return None if content is None else json_object(content)
        except (OSError, ValueError):
            return None

    def read_record(self, path: str | os.PathLike[str], parse: Callable[[JSON], T], hint: str) -> T | None:
        """What `parse` makes of the JSON object in a file; None if there is no such file. `hint` is for one that is damaged.

        Raises:
            StoreError: it is damaged, or a newer version wrote it.
        """
        try:
            content = self.read(path)
            return None if content is None else parse(json_object(content))
        except (OSError, ValueError, AttributeError) as error:
            raise record_error(error, str(path), hint) from error

    # Folders that all admins can write

    def make(self, folder: Path, *, below: Path | None = None) -> Path:
        """Make a folder that all admins can write, and the folders on the way to it from the root; returns it.

        With `below`, only the folders on the way from there are made and shared: what contains them is one admin's.

        Raises:
            StoreError: it cannot be made, the user who runs this is not an admin, others than the admins may write the root or
                a folder on the way, or the group cannot be given to it.
        """
        below, gid = below or self.root, self.admins.group()
        with disk_errors(self.root):
            self.root.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.root.mkdir(mode=0o755)
            self.refuse_strangers()
            self._refuse(self.admins.faults())
            with contextlib.closing(self._enter(folder, below)) as entered:
                for part, descriptor, by_link in entered:
                    if below in part.parents or part == self.root:
                        if part != self.root:
                            self._refuse(self.admins.faults_of(entry_of(str(part), descriptor)))
                        if gid is not None:
                            self._share(part, descriptor, gid, change=not by_link)
                        if part == self.root:
                            self._narrow(descriptor, gid)
        return folder

    @contextlib.contextmanager
    def opened(self, folder: Path) -> Iterator[int]:
        """The descriptor of a folder below the root.

        Raises:
            StoreError: another user made a link on the way.
            OSError: it does not exist, or cannot be opened.
        """
        with contextlib.closing(self._enter(folder)) as entered:
            yield next(descriptor for part, descriptor, _ in entered if part == folder)

    def remove(self, path: Path) -> None:
        """Remove what is at this path below the root, if it exists, with everything in it: see `beneath.remove`.

        Raises:
            StoreError: as of `opened`.
            OSError: something stays.
        """
        with contextlib.suppress(FileNotFoundError), self.opened(path.parent) as folder:
            beneath.remove(path, folder)

    def remove_left(self, path: Path) -> None:
        """Remove what a killed run left, as far as this user can; what has another name stays."""
        if LEFT.fullmatch(path.name):
            with contextlib.suppress(OSError, StoreError):
                self.remove(path)

    def _enter(self, folder: Path, make_below: Path | None = None) -> Generator[tuple[Path, int, bool], None, None]:
        """Open the root, and from it each folder on the way: its path, its descriptor until the next, whether by a link.

        What is below `make_below` is made if it does not exist.
        """
        descriptor = os.open(self.root, beneath.FOLDER)
        try:
            yield self.root, descriptor, False
            for part in folders_between(self.root, folder):
                if make_below in part.parents:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part.name, mode=0o755, dir_fd=descriptor)
                inside, by_link = self._step(part, descriptor)
                os.close(descriptor)
                descriptor = inside
                yield part, descriptor, by_link
        finally:
            os.close(descriptor)

    def _step(self, part: Path, outside: int) -> tuple[int, bool]:
        """Open a folder in the one that is open, and whether a link leads to it: its folder may be on another disk.

        A link of another admin is not followed. With it, that admin would choose where this user writes.
        """
        try:
            place = os.open(part.name, beneath.PLACE, dir_fd=outside)
            try:
                status = os.fstat(place)
                if stat.S_ISDIR(status.st_mode):
                    return os.open(".", beneath.FOLDER, dir_fd=place), False
                if not stat.S_ISLNK(status.st_mode):
                    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                if status.st_uid not in (ROOT, self.root.stat().st_uid, os.geteuid()):
                    raise StoreError(
                        f"`{part}` is a link of `{user_name(status.st_uid)}`, and is not followed",
                        evidence=[f"it leads to {os.readlink('', dir_fd=place)}"],
                        hint=f"as root: `{bash('chown -h root %s', str(part))}`, if the link is right; else remove it",
                        kind="untrusted",
                    )
                return os.open(os.readlink("", dir_fd=place), beneath.FOLDER, dir_fd=outside), True
            finally:
                os.close(place)
        except OSError as error:
            error.filename = str(part)
            raise

    def refuse_strangers(self) -> None:
        """Raise a `StoreError` if who runs this is not an admin of the root: what a verb begins there, it would not end."""
        self.admins.group()
        # A group that the profile names gets what it cannot write yet.
        if self.sharing.group is not None or os.access(self.root, os.W_OK) or not self.root.exists():
            return
        if not os.statvfs(self.root).f_flag & os.ST_RDONLY:  # for everybody: the first file says so
            raise StoreError(
                f"`{user_name(os.geteuid())}` may not write below `{self.root}`",
                evidence=[f"admins of the root: {self.admins.names}"],
                hint="ask one of them; or name a root of your own: `export PROVISION_ROOT=…`, or `root` in a profile of yours",
            )

    def _refuse(self, faults: Sequence[Fault]) -> None:
        """Raise an error of kind `untrusted` if others than the admins may write here.

        What the owner does to take something from users goes on.
        """
        if faults and not (self.sharing.lenient and os.geteuid() in (ROOT, self.root.stat().st_uid)):
            raise_faults(faults, StoreError, "untrusted")

    def _share(self, folder: Path, descriptor: int, gid: int, *, change: bool) -> None:
        """Give the folder that is open to the group, if it is ours and may be changed. Who else may read it stays as it is.

        Raises:
            StoreError: the group cannot write it.
        """
        status = os.fstat(descriptor)
        wanted = SHARED | (status.st_mode & 0o005)
        mine = change and os.geteuid() in (status.st_uid, 0)
        if mine and (status.st_gid, stat.S_IMODE(status.st_mode)) != (gid, wanted):
            # If the file system refuses (a root that is squashed to another user), its status shows that.
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, -1, gid)
                os.fchmod(descriptor, wanted)
            status = os.fstat(descriptor)
            if folder == self.root and not status.st_mode & stat.S_ISGID:
                from provision.machine.terminal.console import say  # it loads much, and is rarely needed

                say(
                    f"warning: the file system of `{folder}` ignores setgid: folders get the group "
                    f"`{group_name(gid)}`, but files belong to the group of the one who writes them"
                )
        if status.st_gid != gid or not status.st_mode & stat.S_IWGRP:
            owner, group = user_name(status.st_uid), group_name(gid)
            raise StoreError(
                f"`{folder}` is not shared with the group `{group}`",
                evidence=[f"owner: {owner}, group: {group_name(status.st_gid)}, mode {stat.S_IMODE(status.st_mode):o}"],
                hint=f"as `{owner}` or root: `{bash('chgrp %s %s && chmod g+rwxs %s', group, str(folder), str(folder))}`",
            )

    def _narrow(self, descriptor: int, gid: int | None) -> None:
        """Let only the admins and the group of readers enter the root, if the profile names one.

        Raises:
            StoreError: there is no such group, or the readers cannot enter the root.
        """
        if self.sharing.readers is None:
            return
        readers, status = self.admins.number_of(self.sharing.readers, "readers"), os.fstat(descriptor)
        mode = stat.S_IMODE(status.st_mode) & ~0o007
        if os.geteuid() in (status.st_uid, 0):
            with contextlib.suppress(PermissionError):
                if gid is None and not status.st_mode & stat.S_IWGRP:
                    os.fchown(descriptor, -1, readers)
                    mode |= 0o050
                os.fchmod(descriptor, mode)
            status = os.fstat(descriptor)
        acl = access_list(descriptor)
        if not (status.st_gid == readers and status.st_mode & 0o050 == 0o050) and readers not in (
            acl.readers if acl else ()
        ):
            raise StoreError(
                f"the group `{self.sharing.readers}` of `files.readers` cannot enter `{self.root}`",
                evidence=[f"group: {group_name(status.st_gid)}, mode {stat.S_IMODE(status.st_mode):o}"],
                hint=f"as `{user_name(status.st_uid)}` or root: "
                f"`{bash('setfacl -m g:%s:rx %s', self.sharing.readers, str(self.root))}`",
            )


def folders_between(top: Path, folder: Path) -> list[Path]:
    """Every folder on the way from `top`, which is left out, to `folder`, which is the last."""
    parts = folder.relative_to(top).parts
    return [top.joinpath(*parts[: length + 1]) for length in range(len(parts))]


def folders_below(top: Path, depth: int) -> Iterator[Path]:
    """The folders below `top`, at most so deep; links are not followed, and what cannot be read is left out."""
    with contextlib.suppress(OSError):
        for path in sorted(top.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield path
                if depth > 1:
                    yield from folders_below(path, depth - 1)
