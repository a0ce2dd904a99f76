"""Our patches: heads that say why, chosen by version, applied strictly to an unpacked source."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from golden_files import PATCH_FOR_GPUS, PATCH_OF_ALL, PATCH_OF_THE_NEWEST, patch
from provision.errors import CommandError, ConfigError
from provision.horovod.patches import select_patches
from provision.machine import shipped
from provision.machine.source_tree import apply_patches, unpack
from provision.model.patch import parse_patch
from provision.model.plan import PatchFile


def as_file(name: str = "0001-all.patch") -> PatchFile:
    """The patch of one line, as a plan carries it."""
    made = patch(name, ">=1.15")
    return PatchFile(name=made.name, subject=made.subject, text=made.text)


def test_only_the_patches_that_a_version_needs_are_chosen_in_the_order_of_their_names() -> None:
    every = (PATCH_OF_THE_NEWEST, PATCH_OF_ALL)
    assert select_patches(every, "2.15.1") == (PATCH_OF_ALL,)
    assert select_patches(every, "2.21.0") == (PATCH_OF_ALL, PATCH_OF_THE_NEWEST)


def test_a_patch_for_gpus_is_chosen_for_gpus_only() -> None:
    every = (PATCH_FOR_GPUS, PATCH_OF_ALL)
    assert select_patches(every, "2.15.1") == (PATCH_OF_ALL,)
    assert select_patches(every, "2.15.1", gpu=True) == (PATCH_OF_ALL, PATCH_FOR_GPUS)
    assert select_patches(every, "2.14.1", gpu=True) == (PATCH_OF_ALL,)
    with pytest.raises(ConfigError) as told:
        patch("0004-odd.patch", ">=2.15", "Needs: tpu\n")
    assert told.value.evidence == ("Needs: `tpu` is not `gpu`, the only thing that a patch may need",)


def test_a_patch_without_its_reasons_is_refused_with_all_that_is_missing() -> None:
    with pytest.raises(ConfigError) as told:
        parse_patch("0003-x.patch", "Subject: x\nApplies-To: pytorch>=2\n\n--- a/x\n+++ b/x\n")
    assert told.value.evidence == (
        "no `Breaks-Without:` in its head",
        "no `Proved-By:` in its head",
        "Applies-To: `pytorch>=2` does not begin with `tensorflow`",
    )
    with pytest.raises(ConfigError, match=r"0003-x\.patch"):
        parse_patch("0003-x.patch", PATCH_OF_ALL.text.replace("tensorflow>=1.15", "tensorflow>=new"))


def test_a_patch_is_applied_and_the_log_says_which(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("old\n")
    apply_patches(tmp_path, [as_file()], tmp_path / "log")
    assert (tmp_path / "file.txt").read_text() == "new\n"
    assert "0001-all.patch" in (tmp_path / "log").read_text()


def test_a_patch_can_make_a_file_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    text = "--- /dev/null\n+++ b/deep/er/new.py\n@@ -0,0 +1,1 @@\n+made = True\n"
    apply_patches(tmp_path, [PatchFile(name="0001-new.patch", subject="a file", text=text)], tmp_path / "log")
    assert (tmp_path / "deep" / "er" / "new.py").read_text() == "made = True\n"


def test_a_source_that_no_longer_fits_is_told_with_the_patch(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("something else\n")
    with pytest.raises(CommandError, match=r"does not fit our patch `0001-all\.patch`"):
        apply_patches(tmp_path, [as_file()], tmp_path / "log")
    assert (tmp_path / "file.txt").read_text() == "something else\n"


def test_a_file_that_is_gone_is_a_misfit_too(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="does not fit"):
        apply_patches(tmp_path, [as_file()], tmp_path / "log")


def archive(path: Path, name: str) -> Path:
    """A source package with one file of this name."""
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
    return path


def test_a_source_package_is_unpacked_without_its_outer_folder(tmp_path: Path) -> None:
    unpack(archive(tmp_path / "x.tar.gz", "horovod-1/setup.py"), tmp_path / "out")
    assert (tmp_path / "out" / "setup.py").read_text() == "abc"


def test_a_source_package_cannot_write_outside(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be unpacked"):
        unpack(archive(tmp_path / "x.tar.gz", "horovod-1/../../evil"), tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_a_damaged_source_package_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"not a tar")
    with pytest.raises(CommandError, match="cannot be unpacked"):
        unpack(tmp_path / "x.tar.gz", tmp_path / "out")


def test_every_shipped_patch_is_well_formed_and_numbered() -> None:
    for folder in sorted((shipped.shipped_root() / "patches").glob("horovod-*")):
        patches = shipped.load_patches(folder.name.removeprefix("horovod-"))
        assert [one.name for one in patches] == sorted(one.name for one in patches)
        assert all(one.name[:4].isdigit() for one in patches)
        assert len({one.name[:4] for one in patches}) == len(patches)


def test_a_word_in_a_patchs_head_changes_no_build_and_a_changed_line_does() -> None:
    head = parse_patch(PATCH_OF_ALL.name, PATCH_OF_ALL.text.replace("Proved-By: ", "Proved-By: again, and "))
    assert head.text != PATCH_OF_ALL.text
    assert head.sha256 == PATCH_OF_ALL.sha256
    line = parse_patch(PATCH_OF_ALL.name, PATCH_OF_ALL.text.replace("+new", "+newer"))
    assert line.sha256 != PATCH_OF_ALL.sha256
