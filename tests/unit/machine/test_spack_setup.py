"""Setting Spack up: from a folder, an archive or a git repository, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import ConfigError, ProvisionError
from provision.machine.network import spack_sources
from provision.machine.root.spack import read_setup, too_old, version_of
from provision.machine.root.store import Store

COMMIT = "9cf66332df3dd988248617fc93400045be59ebab"


@pytest.fixture
def store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A root, and a Python that needs no download."""

    def python(folder: Path) -> Path:
        path = folder / "bin" / "python"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        return path

    monkeypatch.setattr(spack_sources, "_python", python)
    return store


def checkout(folder: Path, version: str = "1.2.0.dev0") -> Path:
    """The two files of a Spack that are looked at."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "spack").write_text("#!/bin/sh\n")
    (folder / "lib" / "spack" / "spack").mkdir(parents=True)
    (folder / "lib" / "spack" / "spack" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git with an author."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env={**os.environ, **who}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_folder_is_copied_and_its_commit_is_the_one_given(store: Store, tmp_path: Path) -> None:
    source = checkout(tmp_path / "spack")
    setup = spack_sources.set_up(store, str(source), COMMIT, None)
    assert (setup.version, setup.commit) == ("1.2.0.dev0", COMMIT)
    assert setup.root == str(store.root / "spack" / "checkout" / COMMIT)
    assert read_setup(store) == setup
    (source / "bin" / "spack").unlink()
    assert read_setup(store) == setup


def test_an_archive_is_unpacked_with_or_without_a_folder_at_its_top(store: Store, tmp_path: Path) -> None:
    source = checkout(tmp_path / "spack")
    for name, top in (("a", "spack"), ("b", ".")):
        with tarfile.open(tmp_path / f"{name}.tar.xz", "w:xz") as file:
            file.add(source, top)
        setup = spack_sources.set_up(store, str(tmp_path / f"{name}.tar.xz"), name * 7, None)
        assert version_of(Path(setup.root)) == "1.2.0.dev0"


def test_a_git_repository_gives_the_whole_commit_and_not_what_was_edited(store: Store, tmp_path: Path) -> None:
    source = checkout(tmp_path / "spack")
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-qm", "one")
    whole = git(source, "rev-parse", "HEAD")
    (source / "lib" / "spack" / "spack" / "__init__.py").write_text('__version__ = "9.9"\n')
    setup = spack_sources.set_up(store, str(source), whole[:8], None)
    assert (setup.commit, setup.version) == (whole, "1.2.0.dev0")
    assert spack_sources.set_up(store, f"file://{source}", whole, None).commit == whole


def test_a_source_without_a_commit_is_refused(store: Store, tmp_path: Path, words: Words) -> None:
    with pytest.raises(ConfigError) as error:
        spack_sources.set_up(store, str(checkout(tmp_path / "spack")), None, None)
    assert "--commit" in str(error.value.hint)
    words("spack", "\n".join(error.value.to_lines()))


def test_a_spack_that_is_too_old_is_refused_with_the_range_that_works(
    store: Store, tmp_path: Path, words: Words
) -> None:
    with pytest.raises(ProvisionError, match=r"0\.23\.1 .* 1\.0 ") as error:
        spack_sources.set_up(store, str(checkout(tmp_path / "spack", "0.23.1")), COMMIT, None)
    assert "9cf6633" in " ".join(error.value.evidence)
    assert "v1.0" in str(error.value.hint)
    words("spack", "\n".join(error.value.to_lines()))
    assert read_setup(store) is None
    assert not list((store.root / "spack" / "checkout").iterdir())


@pytest.mark.parametrize(("version", "old"), [("0.23.1", True), ("0.9", True), ("1.0.0", False), ("1.2.0.dev0", False)])
def test_the_oldest_version_is_1_0(version: str, old: bool) -> None:
    assert too_old(version) is old


@pytest.mark.parametrize("name", ["empty", "nowhere", "spack.tar.xz"])
def test_a_source_that_is_no_spack_is_refused(store: Store, tmp_path: Path, name: str, words: Words) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "spack.tar.xz").write_bytes(b"no")
    with pytest.raises(ConfigError, match=name) as error:
        spack_sources.set_up(store, str(tmp_path / name), COMMIT, None)
    words("spack", error.value.message)


def test_a_setup_whose_checkout_is_gone_counts_as_none(store: Store, tmp_path: Path) -> None:
    setup = spack_sources.set_up(store, str(checkout(tmp_path / "spack")), COMMIT, None)
    (Path(setup.root) / "bin" / "spack").unlink()
    assert read_setup(store) is None


def test_a_damaged_setup_counts_as_none(store: Store, tmp_path: Path) -> None:
    spack_sources.set_up(store, str(checkout(tmp_path / "spack")), COMMIT, None)
    (store.root / "spack" / "setup.json").write_text(json.dumps({"root": 1}))
    assert read_setup(store) is None
