"""The root as several admins use it: folders that all of them can write, and reading only what an admin wrote.

The modes do not depend on the umask of the one who runs. In most folders entries are only added: these folders are sticky, so
that a member of the group cannot replace what another one owns. Everything inside a prefix or a generation can be
written by its owner alone, so that checking the owner of the folder is enough.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import grp
import os
import pwd
import re
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import StoreError
from provision.machine.disk import JSON, MOST_JSON, disk_error, json_object
from provision.machine.root import beneath
from provision.machine.trusted_files import read_regular
from provision.model.layout import Layout, is_replaced_in
from provision.model.owners import Owners, Sharing
from provision.model.problem import Problem, raise_problems
from provision.model.quoting import bash

SHARED = stat.S_ISGID | 0o775
# What `disk.write`, `Store.remove` and `Generations.change` call a file or folder that is not finished.
LEFT = re.compile(r"\..+\.(removed\.)?[0-9]+\.[0-9a-f]{6}|\.next\..+")


@dataclass(frozen=True, slots=True)
class SharedRoot:
    """The files below one root, and who may own them."""

    layout: Layout
    sharing: Sharing = field(default_factory=Sharing)

    @property
    def root(self) -> Path:
        """The root as a path on this machine."""
        return Path(self.layout.root)

    # Whom we believe

    def owners(self) -> Owners:
        """The users whose files below the root are believed: its owner, the one who runs this, root, and the admins.

        Raises:
            StoreError: every user can write the root, or replace it.
        """
        reasons = {0: "root"}
        with contextlib.suppress(OSError):
            status = self.root.stat()
            refuse_public(self.root)
            reasons[status.st_uid] = f"{user_name(status.st_uid)} (owner of the root)"
        reasons.setdefault(os.geteuid(), f"{user_name(os.geteuid())} (runs this)")
        for name in self.sharing.admins:
            with contextlib.suppress(KeyError):  # a compute node may not know every user
                reasons.setdefault(pwd.getpwnam(name).pw_uid, f"{name} (`files.admins`)")
        return Owners(reasons=reasons, sharing=self.sharing)

    def notes(self) -> list[Problem]:
        """What an admin should know about how the root is shared; nothing if it does not exist yet, or is not shared.

        Raises:
            StoreError: there is no such group, or the one who runs this is not a member.
        """
        notes, gid = [], self._group()
        unknown = [name for name in self.sharing.admins if not is_user(name)]
        if unknown:
            notes.append(
                Problem(
                    kind="missing",
                    subject="admins",
                    message=f"this machine does not know the users {', '.join(unknown)} of `files.admins`",
                    hint=f"`getent passwd {unknown[0]}`; correct `files.admins` in `{self.sharing.origin}`",
                )
            )
        if gid is not None:
            believed = self.owners().reasons
            others = [
                name for name in grp.getgrgid(gid).gr_mem if is_user(name) and pwd.getpwnam(name).pw_uid not in believed
            ]
            if others:
                notes.append(
                    Problem(
                        kind="untrusted",
                        subject="admins",
                        message=f"members of `{self.sharing.group}` can write below the root, but their files are not believed: "
                        f"{', '.join(others)}",
                        hint=f"add the admins among them to `files.admins` in `{self.sharing.origin}`; the others should not "
                        "be members: they can replace the pointers that users load",
                    )
                )
        return notes

    def refused(self, path: Path, owners: Owners | None = None) -> Problem | None:
        """The problem of a file or folder that is not believed; None if it is, or does not exist.

        Of a symbolic link both are judged: the link and its target.
        """
        owners = owners or self.owners()
        try:
            status = path.lstat()
            problem = judge(path, status, owners)
            if problem is None and stat.S_ISLNK(status.st_mode):
                problem = judge(path, path.stat(), owners)
        except OSError:
            return None
        return problem

    def read(self, path: Path, *, limit: int = MOST_JSON, owners: Owners | None = None) -> bytes | None:
        """The content of a file that an admin wrote; None if there is no such file. Links are not followed.

        Raises:
            StoreError: another user owns it or can write it.
            OSError: it is not a regular file, is too large or cannot be read.
        """
        try:
            content, status = read_regular(path, limit=limit, follow=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        problem = judge(path, status, owners or self.owners())
        raise_problems([problem] if problem else (), StoreError, "untrusted")
        return content

    def read_json(self, path: Path, owners: Owners | None = None) -> JSON | None:
        """The JSON object in a file that an admin wrote; None if there is none, or it is damaged.

        Raises:
            StoreError: another user owns it or can write it.
        """
        try:
            content = self.read(path, owners=owners)
            return None if content is None else json_object(content)
        except (OSError, ValueError):
            return None

    # Folders that all admins can write

    def make(self, folder: Path, *, below: Path | None = None) -> Path:
        """Make a folder that all admins can write, and the folders on the way to it from the root; returns it.

        With `below`, only the folders on the way from there are made and shared: what contains them is one admin's.

        Raises:
            StoreError: it cannot be made, another user owns a folder on the way, or the group cannot be given to it.
        """
        gid, below = self._group(), below or self.root
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.root.mkdir(mode=0o755)
            owners = self.owners()
            _refuse(self.root, self.root.lstat(), owners)  # it may be a link
            with contextlib.closing(self._enter(folder, below)) as entered:
                for part, descriptor, by_link in entered:
                    if below in part.parents or part == self.root:
                        _refuse(part, os.fstat(descriptor), owners)
                        if gid is not None:
                            self._share(part, descriptor, gid, change=not by_link)
        except OSError as error:
            raise disk_error(error, self.root) from error
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
            StoreError: another user made a link on the way.
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
        """Open a folder in the one that is open, and whether a link leads to it: an admin may have put it on another disk.

        A pointer is an admin's link too, and every member of the group can move it: its path is not absolute.
        """
        try:
            place = os.open(part.name, beneath.PLACE, dir_fd=outside)
            try:
                status = os.fstat(place)
                if stat.S_ISDIR(status.st_mode):
                    return os.open(".", beneath.FOLDER, dir_fd=place), False
                _refuse(part, status, self.owners())
                if not stat.S_ISLNK(status.st_mode):
                    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                target = os.readlink("", dir_fd=place)
                if self.sharing.group is not None and not os.path.isabs(target):  # noqa: PTH117
                    raise OSError(errno.ELOOP, "is a symbolic link, and its target is not an absolute path")
                return os.open(target, beneath.FOLDER, dir_fd=outside), True
            finally:
                os.close(place)
        except OSError as error:
            error.filename = str(part)
            raise

    def _share(self, folder: Path, descriptor: int, gid: int, *, change: bool) -> None:
        """Give the folder that is open to the group, if it is ours and may be changed.

        Raises:
            StoreError: the group cannot write it.
        """
        status = os.fstat(descriptor)
        wanted = SHARED | (0 if is_replaced_in(folder.relative_to(self.root)) else stat.S_ISVTX)
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
                    f"`{self.sharing.group}`, but files belong to the group of the one who writes them"
                )
        if status.st_gid != gid or not status.st_mode & stat.S_IWGRP:
            raise self._not_shared(folder, status)

    def _group(self) -> int | None:
        """The number of the site's group, if the root is shared.

        Raises:
            StoreError: there is no such group, or the one who runs this is not a member.
        """
        name = self.sharing.group
        if name is None:
            return None
        try:
            gid = grp.getgrnam(name).gr_gid
        except KeyError:
            raise StoreError(
                f"there is no Unix group `{name}` on this machine, but `files.group` shares the root with it",
                hint=f"`getent group {name}`; correct `files.group` in `{self.sharing.origin}`",
            ) from None
        if os.geteuid() != 0 and gid not in (os.getegid(), *os.getgroups()):
            raise StoreError(
                f"`{user_name(os.geteuid())}` is not a member of `{name}`, the group that writes below `{self.root}`",
                evidence=[
                    f"groups of this process: {', '.join(map(group_name, sorted({os.getegid(), *os.getgroups()})))}"
                ],
                hint=f"`id` lists your groups, after a new login also new ones; `files.group` is in `{self.sharing.origin}`",
            )
        return gid

    def _not_shared(self, folder: Path, status: os.stat_result) -> StoreError:
        owner, group = user_name(status.st_uid), self.sharing.group
        return StoreError(
            f"`{folder}` is not shared with the group `{group}`",
            evidence=[f"owner: {owner}, group: {group_name(status.st_gid)}, mode {stat.S_IMODE(status.st_mode):o}"],
            hint=f"as `{owner}` or root: `{bash('chgrp %s %s && chmod g+rwxs %s', str(group), str(folder), str(folder))}`",
        )


def refuse_public(root: Path) -> None:
    """Raise if any user can write the root, or rename one of the folders that contain it.

    Raises:
        StoreError: of kind `untrusted`.
        OSError: the root does not exist.
    """
    real = root.resolve()
    for folder in (real, *real.parents):
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and (folder == real or not mode & stat.S_ISVTX):
            raise StoreError(
                f"every user can write `{folder}`" + ("" if folder == real else f", which contains the root `{root}`"),
                evidence=[f"mode {stat.S_IMODE(mode):o}: nothing below it can be believed"],
                hint=f"`{bash('chmod o-w %s', str(folder))}`; remove what others wrote there: "
                f"`{bash('find %s ! -user %s', str(folder), user_name(folder.stat().st_uid))}`",
                kind="untrusted",
            )


def folders_between(top: Path, folder: Path) -> list[Path]:
    """Every folder on the way from `top`, which is left out, to `folder`, which is the last."""
    parts = folder.relative_to(top).parts
    return [top.joinpath(*parts[: length + 1]) for length in range(len(parts))]


def _refuse(path: Path, status: os.stat_result, owners: Owners) -> None:
    """Raise if a folder on the way, or a link to it, belongs to a user who is not an admin; its group may write it.

    Raises:
        StoreError: of kind `untrusted`.
    """
    problem = judge(path, status, owners, ~stat.S_IWGRP)
    raise_problems([problem] if problem else (), StoreError, "untrusted")


def judge(path: Path, status: os.stat_result, owners: Owners, mask: int = ~0) -> Problem | None:
    """The problem of a path with this status, if there is one; `mask` selects the bits of the mode that are judged."""
    mode = status.st_mode & mask
    if owners.fault(status.st_uid, mode) is None:
        return None
    return owners.problem(str(path), status.st_uid, mode, user_name(status.st_uid))


def is_user(name: str) -> bool:
    """Whether this machine knows a user of this name."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@functools.cache
def user_name(uid: int) -> str:
    """The name of a user; the number, if the system knows no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The name of a group; the number, if the system knows no name."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
