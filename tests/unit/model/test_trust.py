"""Who may write a file is judged from owners, groups and modes alone: each way in that another user has is found."""

from __future__ import annotations

import dataclasses
import stat
import struct

import pytest

from provision.model.trust import AccessList, OwnedPath, Stranger, find_strangers, parse_acl, repair

ME, OTHER, ADMIN = 1000, 1001, 1002
MINE, USERS, ADMINS = 1000, 100, 500
FOLDER, FILE, LINK = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK

TOP = OwnedPath(path="/", user=0, group=0, mode=FOLDER | 0o755)
HOME = OwnedPath(path="/home", user=0, group=0, mode=FOLDER | 0o755)
OWN = OwnedPath(path="/home/me", user=ME, group=MINE, mode=FOLDER | 0o755, primary=MINE)
PROFILE = OwnedPath(path="/home/me/x.toml", user=ME, group=MINE, mode=FILE | 0o644, primary=MINE)


def find_stranger(entries: tuple[OwnedPath, ...], site: frozenset[int] = frozenset()) -> Stranger | None:
    """The first stranger, if root and this user are believed."""
    return next(find_strangers(entries, frozenset((0, ME)), site), None)


def stranger(
    *, folder: OwnedPath = OWN, file: OwnedPath = PROFILE, above: OwnedPath = HOME, site: frozenset[int] = frozenset()
) -> tuple[str, str, int] | None:
    """The path that a stranger may write, the kind of stranger and his number."""
    found = find_stranger((TOP, above, folder, file), site)
    return (found.entry.path, found.kind, found.number) if found else None


def changed(entry: OwnedPath, mode: int | None = None, **values: object) -> OwnedPath:
    """The entry with other permission bits, or other values."""
    kept = stat.S_IFMT(entry.mode)
    return dataclasses.replace(entry, mode=kept | (entry.mode & 0o7777 if mode is None else mode), **values)


def test_a_file_that_only_its_owner_may_write_is_believed() -> None:
    assert stranger() is None
    assert stranger(file=changed(PROFILE, user=0)) is None


@pytest.mark.parametrize("which", ["above", "folder", "file"])
def test_each_entry_on_the_way_counts(which: str) -> None:
    entry = {"above": HOME, "folder": OWN, "file": PROFILE}[which]
    assert stranger(**{which: changed(entry, user=OTHER)}) == (entry.path, "user", OTHER)  # type: ignore[arg-type]
    open_to_all = changed(entry, stat.S_IMODE(entry.mode) | 0o002)
    assert stranger(**{which: open_to_all}) == (entry.path, "everyone", -1)  # type: ignore[arg-type]
    shared = changed(entry, stat.S_IMODE(entry.mode) | 0o020, group=USERS)
    assert stranger(**{which: shared}) == (entry.path, "group", USERS)  # type: ignore[arg-type]


def test_a_group_that_only_reads_is_no_danger() -> None:
    assert stranger(file=changed(PROFILE, 0o640, group=USERS), folder=changed(OWN, 0o750, group=USERS)) is None


@pytest.mark.parametrize(("group", "private"), [(0, False), (MINE, True)])
def test_roots_group_and_the_owners_private_group_may_write(group: int, private: bool) -> None:
    file = changed(PROFILE, 0o664, group=group, private=private)
    assert stranger(file=file, folder=changed(OWN, 0o775, group=group, private=private)) is None


def test_a_private_group_of_another_user_may_not_write() -> None:
    assert stranger(file=changed(PROFILE, 0o664, group=OTHER)) == (PROFILE.path, "group", OTHER)


def test_every_entry_with_a_stranger_is_found() -> None:
    entries = (TOP, changed(HOME, 0o777), changed(OWN, 0o775, group=USERS), changed(PROFILE, user=OTHER))
    found = [(one.entry.path, one.kind) for one in find_strangers(entries, frozenset((0, ME)))]
    assert found == [("/home", "everyone"), ("/home/me", "group"), ("/home/me/x.toml", "user")]


# Sticky folders


def test_a_sticky_folder_above_protects_a_folder_but_not_a_file_in_it() -> None:
    tmp = changed(HOME, 0o1777)
    assert stranger(above=tmp) is None
    assert stranger(folder=changed(OWN, 0o1777, user=0)) == (OWN.path, "everyone", -1)


def test_a_folder_of_another_user_below_a_sticky_folder_is_refused() -> None:
    assert stranger(above=changed(HOME, 0o1777), folder=changed(OWN, user=OTHER)) == (OWN.path, "user", OTHER)


def test_a_link_in_a_sticky_folder_is_refused() -> None:
    link = OwnedPath(path="/tmp/link", user=ME, group=MINE, mode=LINK | 0o777)
    found = find_stranger((TOP, changed(HOME, 0o1777), link, HOME, OWN, PROFILE))
    assert found is not None
    assert (found.entry.path, found.kind) == ("/home", "everyone")


def test_the_mode_of_a_link_says_nothing_but_its_owner_does() -> None:
    link = OwnedPath(path="/home/link", user=ME, group=USERS, mode=LINK | 0o777)
    assert find_stranger((TOP, HOME, link, OWN, PROFILE)) is None
    found = find_stranger((TOP, HOME, changed(link, user=OTHER), OWN, PROFILE))
    assert found is not None
    assert found.number == OTHER


# The site's group

SITE = frozenset((ADMINS, USERS))


def test_the_group_that_the_profile_names_may_write_a_file_that_its_owner_gave_it() -> None:
    given = changed(PROFILE, 0o664, group=ADMINS)
    assert stranger(file=given, site=SITE) is None
    assert stranger(file=given) == (PROFILE.path, "group", ADMINS)


def test_a_profile_cannot_believe_itself_that_everybody_of_the_owners_group_may_write_it() -> None:
    """The umask 002 lets the group `users` write; a member then writes `group = "users"` into the profile."""
    common = changed(PROFILE, 0o664, group=USERS, primary=USERS)
    assert stranger(file=common, site=SITE) == (PROFILE.path, "group", USERS)
    unknown = changed(common, primary=None)
    assert stranger(file=unknown, site=SITE) == (PROFILE.path, "group", USERS)


def test_a_setgid_folder_shows_that_its_owner_shares_it_with_the_group() -> None:
    shared = changed(OWN, 0o2775, group=USERS, primary=USERS)
    file = changed(PROFILE, 0o664, group=USERS, primary=USERS)
    assert stranger(folder=shared, file=file, site=SITE) is None
    assert stranger(folder=shared, file=file) == (OWN.path, "group", USERS)
    other = changed(OWN, 0o2755, group=ADMINS, primary=USERS)
    assert stranger(folder=other, file=file, site=SITE) == (PROFILE.path, "group", USERS)


def test_what_is_in_a_shared_folder_is_of_whoever_of_its_members_made_it_but_not_behind_a_link() -> None:
    shared = changed(OWN, 0o2775, group=ADMINS)
    assert stranger(folder=shared, file=changed(PROFILE, user=ADMIN), site=SITE) is None
    assert stranger(file=changed(PROFILE, user=ADMIN), site=SITE) == (PROFILE.path, "user", ADMIN)
    link = OwnedPath(path="/home/me/link", user=ADMIN, group=USERS, mode=LINK | 0o777)
    found = find_stranger((TOP, HOME, shared, link, TOP, changed(PROFILE, user=OTHER)), SITE)
    assert found is not None
    assert found.number == OTHER


def test_a_group_that_is_known_to_be_the_admins_needs_no_other_sign() -> None:
    common = changed(OWN, 0o775, group=USERS, primary=USERS)
    assert list(find_strangers((TOP, common), frozenset((0, ME)), SITE, known=True)) == []
    assert [one.kind for one in find_strangers((TOP, common), frozenset((0, ME)), SITE)] == ["group"]


def test_the_repair_is_one_line_for_modes_and_access_lists() -> None:
    folder = changed(HOME, 0o777, group=USERS)
    listed = dataclasses.replace(PROFILE, acl=AccessList(users=(OTHER,), groups=(ADMINS,)))
    strangers = list(find_strangers((TOP, folder, changed(OWN, 0o777), listed), frozenset((0, ME))))
    assert repair(strangers) == (f"chmod go-w /home /home/me && setfacl -x u:{OTHER},g:{ADMINS} /home/me/x.toml")


# Access control lists


def acl(*rows: tuple[int, int, int]) -> bytes:
    """The attribute with these rows: tag, rights, number."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def test_an_access_list_names_who_may_write_within_its_mask() -> None:
    base = ((0x01, 6, 0), (0x02, 6, OTHER), (0x02, 4, ADMIN), (0x04, 4, 0), (0x08, 6, USERS))
    assert parse_acl(acl(*base, (0x10, 6, 0))) == AccessList(users=(OTHER,), groups=(USERS,), own_group=False)
    assert parse_acl(acl(*base, (0x10, 4, 0))) == AccessList()
    assert parse_acl(acl((0x01, 6, 0), (0x04, 6, 0), (0x20, 4, 0))) == AccessList(own_group=True)


def test_who_an_access_list_lets_write_is_judged_like_an_owner_or_a_group() -> None:
    private = changed(PROFILE, 0o664, private=True)
    listed = dataclasses.replace(private, acl=AccessList(users=(OTHER,)))
    assert stranger(file=listed) == (PROFILE.path, "user", OTHER)
    assert stranger(file=dataclasses.replace(private, acl=AccessList(users=(ME,)))) is None
    grouped = dataclasses.replace(private, acl=AccessList(groups=(ADMINS,)))
    assert stranger(file=grouped) == (PROFILE.path, "group", ADMINS)
    assert stranger(file=grouped, site=SITE) is None
    # The group bits of the mode are then the mask, not the rights of the file's group.
    assert stranger(file=changed(PROFILE, 0o664, group=USERS, acl=AccessList())) is None
