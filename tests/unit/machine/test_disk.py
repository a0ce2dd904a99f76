"""Files are written completely or not at all, and errors of the file system come with a fix."""

from __future__ import annotations

import errno
import io
import os
import shutil
from pathlib import Path

import pytest

from golden_files import Words
from parts.disks import files_below, fill
from provision.errors import ConfigError, StoreError
from provision.machine.files.disk import disk_error, read_given, read_json, rewrite, write


def test_a_file_that_is_written_again_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to("folder/file")
    rewrite(link, "new")
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o600)
    with pytest.raises(StoreError):
        rewrite(tmp_path / "missing", "text")
    assert files_below(tmp_path) == ["folder/file", "link"]


def test_missing_or_damaged_json_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    assert read_json(path) is None
    for text in ("", "{", "[1]", "null", "\ufffd"):
        path.write_text(text, encoding="utf-8")
        assert read_json(path) is None
    path.write_bytes(b"\xff")
    assert read_json(path) is None
    path.write_text('{"a": 1}')
    assert read_json(path) == {"a": 1}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the quota is used up"),
        (errno.EACCES, "cannot be written"),
        (errno.EROFS, "cannot be written"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_an_error_of_the_file_system_names_its_path(number: int, words: str) -> None:
    one = OSError(number, os.strerror(number), "/site/root/file")
    error = disk_error(one, "/site/root")
    assert words in error.message
    assert "/site/root/file" in error.message
    copied = disk_error(shutil.Error([("a", "b", str(one))]), "/site/root")
    assert (copied.kind, words in copied.message) == (error.kind, True), "of a folder that was copied"


def test_a_full_disk_is_an_error_and_keeps_the_old_file(small_disk: Path) -> None:
    write(small_disk / "file", "old\n")
    fill(small_disk)
    with pytest.raises(StoreError, match="the disk is full") as caught:
        write(small_disk / "file", "new" * 100_000)
    assert f"`df -h {small_disk}`" in str(caught.value.hint)
    assert (small_disk / "file").read_text() == "old\n"
    assert files_below(small_disk) == ["file", "filler"]


@pytest.mark.parametrize("name", ["nosuch", ".", "latin-1", "-"])
def test_a_given_file_that_is_not_a_text_is_a_wrong_request(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin-1").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError) as caught:
        read_given(name, "plan")
    assert f"`{name}`" in caught.value.message
    words("build", caught.value.message)
    assert caught.value.evidence
    assert caught.value.hint == f"`ls -l {name}`"


def test_a_given_dash_is_stdin_only_if_the_verb_says_so(monkeypatch: pytest.MonkeyPatch, words: Words) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\n")))
    assert read_given("-", "log", stdin=True, errors="replace") == "caf\ufffd\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\n")))
    with pytest.raises(ConfigError, match="`-`") as caught:
        read_given("-", "plan", stdin=True)
    words("build", caught.value.message)


def test_a_path_in_a_hint_is_one_word_of_a_shell() -> None:
    hint = disk_error(OSError(errno.ENOSPC, "full"), "/a b$(touch x)/root").hint
    assert hint is not None
    assert hint.startswith("`df -h '/a b$(touch x)/root'`; ")
