"""A data set is measured in whole blocks, and its source must be readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.errors import ConfigError
from provision.machine.network.data_files import BLOCK, measure, sees


def test_a_folder_is_measured_in_blocks_and_links_are_not_followed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "inner").mkdir(parents=True)
    (data / "small").write_bytes(b"1")
    (data / "inner" / "large").write_bytes(bytes(BLOCK + 1))
    (tmp_path / "huge").write_bytes(bytes(100 * BLOCK))
    (data / "link").symlink_to(tmp_path / "huge")
    folder = -(-(data / "inner").stat().st_size // BLOCK)
    source = measure(str(data))
    assert (source.is_folder, source.files) == (True, 4)
    assert source.bytes == (1 + 2 + 1 + folder) * BLOCK


def test_a_file_is_measured_alone(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"1")
    source = measure(str(tmp_path / "x.tar"))
    assert (source.is_folder, source.files, source.bytes) == (False, 1, BLOCK)


def test_an_empty_or_missing_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is nothing in"):
        measure(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        measure(str(tmp_path / "missing"))
    assert caught.value.evidence


def test_a_scratch_is_seen_if_its_variables_are_set_and_its_parent_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_OF_ALICE", str(tmp_path))
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    assert sees("$WORK_OF_ALICE/scratch")
    assert not sees("$WORK_OF_ALICE/missing/scratch")
    assert not sees("$NOT_SET_HERE/scratch")
