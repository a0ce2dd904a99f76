"""Our patches: their heads give the reasons, the version decides which apply, and a patch must fit its source."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import pytest

from golden_files import PATCH_FOR_GPUS, PATCH_OF_ALL, PATCH_OF_THE_NEWEST, Words, patch
from provision.errors import CommandError, ConfigError
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import shipped_root
from provision.machine.files.archives import unpack
from provision.machine.install.source_tree import apply_patches
from provision.model.operation import PatchFile
from provision.model.patch import parse_patch, select_patches


def as_file(name: str = "0001-all.patch") -> PatchFile:
    """A patch of one line, as a plan holds it."""
    parsed = patch(name, ">=1.15")
    return PatchFile(name=parsed.name, subject=parsed.subject, text=parsed.text)


def test_a_version_gets_the_patches_that_it_needs_sorted_by_name() -> None:
    every = (PATCH_OF_THE_NEWEST, PATCH_OF_ALL)
    assert select_patches(every, {"tensorflow": "2.15.1"}) == (PATCH_OF_ALL,)
    assert select_patches(every, {"tensorflow": "2.21.0"}) == (PATCH_OF_ALL, PATCH_OF_THE_NEWEST)


def test_a_patch_for_gpus_applies_to_gpu_builds_only(words: Words) -> None:
    every = (PATCH_FOR_GPUS, PATCH_OF_ALL)
    assert select_patches(every, {"tensorflow": "2.15.1"}) == (PATCH_OF_ALL,)
    assert select_patches(every, {"tensorflow": "2.15.1"}, gpu=True) == (PATCH_OF_ALL, PATCH_FOR_GPUS)
    assert select_patches(every, {"tensorflow": "2.14.1"}, gpu=True) == (PATCH_OF_ALL,)
    with pytest.raises(ConfigError) as caught:
        patch("0004-odd.patch", ">=2.15", "Needs: tpu\n")
    (fault,) = caught.value.evidence
    words("build", fault)


def test_a_patch_applies_to_the_frameworks_that_its_head_names() -> None:
    text = PATCH_OF_ALL.text.replace("tensorflow>=1.15", "tensorflow>=2.16; pytorch>=2.1")
    both = parse_patch("0004-both.patch", text)
    every = (PATCH_OF_ALL, both)
    assert select_patches(every, {"pytorch": "2.14.1"}) == (both,)
    assert select_patches(every, {"pytorch": "1.13.1"}) == ()
    assert select_patches(every, {"tensorflow": "2.15.1"}) == (PATCH_OF_ALL,)
    assert select_patches(every, {"tensorflow": "2.21.0"}) == (PATCH_OF_ALL, both)


def test_an_incomplete_patch_head_is_refused_with_every_fault(words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_patch("0003-x.patch", "Subject: x\nApplies-To: jax>=2\n\n--- a/x\n+++ b/x\n")
    breaks, proved, applies = caught.value.evidence
    assert "`Breaks-Without:`" in breaks and "`Proved-By:`" in proved
    assert applies.startswith("Applies-To: ") and "`jax>=2`" in applies
    words("build", "\n".join(caught.value.to_lines()))
    with pytest.raises(ConfigError, match=r"0003-x\.patch"):
        parse_patch("0003-x.patch", PATCH_OF_ALL.text.replace("tensorflow>=1.15", "tensorflow>=new"))


def test_a_patch_is_applied_and_the_log_names_it(tmp_path: Path) -> None:
    """It can create a file in a folder."""
    (tmp_path / "file.txt").write_text("old\n")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    text = "--- /dev/null\n+++ b/deep/er/new.py\n@@ -0,0 +1,1 @@\n+made = True\n"
    apply_patches(tmp_path, [as_file(), PatchFile(name="0002-new.patch", subject="x", text=text)], tmp_path / "log")
    assert (tmp_path / "file.txt").read_text() == "new\n"
    assert (tmp_path / "deep" / "er" / "new.py").read_text() == "made = True\n"
    assert "0001-all.patch" in (tmp_path / "log").read_text()


def test_an_error_names_the_patch_that_does_not_fit(tmp_path: Path, words: Words) -> None:
    """Its file is another one, or is missing."""
    for _ in range(2):
        with pytest.raises(CommandError, match=r"`0001-all\.patch`") as caught:
            apply_patches(tmp_path, [as_file()], tmp_path / "log")
        (tmp_path / "file.txt").write_text("something else\n")
    words("build", caught.value.message)
    assert (tmp_path / "file.txt").read_text() == "something else\n"


def archive(path: Path, name: str, compression: str = "gz", content: bytes = b"abc") -> Path:
    """A source package with one file of this name."""
    with tarfile.open(path, f"w:{compression}") as tar:  # type: ignore[call-overload]
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return path


def test_a_source_package_is_unpacked_without_its_outer_folder(tmp_path: Path) -> None:
    unpack(archive(tmp_path / "x.tar.gz", "horovod-1/setup.py"), tmp_path / "out", without_top=True)
    assert (tmp_path / "out" / "setup.py").read_text() == "abc"


def test_no_link_of_a_source_package_is_unpacked_so_a_patch_changes_no_file_outside(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, kind in (("horovod-1/to", tarfile.SYMTYPE), ("horovod-1/hard", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    unpack(tmp_path / "x.tar", tmp_path / "out", without_top=True)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_source_package_cannot_write_outside(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be unpacked"):
        unpack(archive(tmp_path / "x.tar.gz", "horovod-1/../../evil"), tmp_path / "out", without_top=True)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", ""])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_source_package_that_was_cut_is_refused(compression: str, share: float, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.tar", "horovod-1/setup.py", compression, random.Random(1).randbytes(50_000))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    if compression == "" and share == 0.99:
        path.write_bytes(path.read_bytes()[:50_000])  # the end of a tar is padding
    with pytest.raises(CommandError, match="cannot be unpacked") as caught:
        unpack(path, tmp_path / "out", without_top=True)
    assert caught.value.evidence[0]
    assert f"`rm {path}`" in str(caught.value.hint)


@pytest.mark.parametrize("place", [2, 15, None])
def test_a_source_package_with_a_changed_head_is_refused(place: int | None, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.tar.gz", "horovod-1/setup.py", "gz", random.Random(1).randbytes(50_000))
    content = bytearray(path.read_bytes() if place else b"not a tar")
    content[place or 0] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CommandError, match="cannot be unpacked"):
        unpack(path, tmp_path / "out", without_top=True)


def test_every_shipped_patch_is_well_formed_and_numbered() -> None:
    for folder in sorted((Path(shipped_root()) / "patches").glob("horovod-*")):
        patches = shipped.load_patches(folder.name.removeprefix("horovod-"))
        assert [patch.name for patch in patches] == sorted(patch.name for patch in patches)
        assert all(patch.name[:4].isdigit() for patch in patches)
        assert len({patch.name[:4] for patch in patches}) == len(patches)


def test_the_hash_of_a_patch_covers_its_changes_but_not_its_head() -> None:
    head = parse_patch(PATCH_OF_ALL.name, PATCH_OF_ALL.text.replace("Proved-By: ", "Proved-By: again, and "))
    assert head.text != PATCH_OF_ALL.text
    assert head.sha256 == PATCH_OF_ALL.sha256
    line = parse_patch(PATCH_OF_ALL.name, PATCH_OF_ALL.text.replace("+new", "+newer"))
    assert line.sha256 != PATCH_OF_ALL.sha256
