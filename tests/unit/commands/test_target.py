"""What the options name: the stack that is asked for comes first, then the arch's, then the site's."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words, local_site
from parts.records import publish
from provision.commands.shared.environments import find_environment
from provision.commands.shared.target import make_target
from provision.errors import ConfigError
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout


@pytest.mark.parametrize(
    ("asked", "archs", "chosen"),
    [
        (None, None, "tensorflow-2.15.1"),
        (None, "tensorflow-2.15.1-gpu", "tensorflow-2.15.1-gpu"),
        ("tensorflow-2.21.0", "tensorflow-2.15.1-gpu", "tensorflow-2.21.0"),
    ],
)
def test_the_stack_is_the_asked_one_the_archs_or_the_sites(asked: str | None, archs: str | None, chosen: str) -> None:
    site = local_site()
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], stack=archs),))
    assert make_target(site, None, asked).stack.name == chosen


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A root with a published environment of one name for two archs, and an older one."""
    store = Store(Layout(PurePosixPath(tmp_path)))
    for arch, fingerprint in (("knl", "aaaa"), ("haswell", "bbbb"), ("haswell", "bcbc")):
        env = EnvironmentId(arch=arch, name="tensorflow", version="2.15.1", fingerprint=fingerprint)
        Path(store.layout.records_folder(env)).mkdir(parents=True)
        publish(store, env, {})
    return store


@pytest.mark.parametrize(
    ("text", "arch", "fingerprint"),
    [
        ("tensorflow/2.15.1", "knl", "aaaa"),
        ("tensorflow/2.15.1", "haswell", "bcbc"),
        ("haswell/tensorflow/2.15.1", None, "bcbc"),
        ("bb", None, "bbbb"),
    ],
)
def test_an_environment_is_found_by_module_and_arch(
    text: str, arch: str | None, fingerprint: str, store: Store
) -> None:
    assert find_environment(store, text, arch).fingerprint == fingerprint


@pytest.mark.parametrize(
    ("text", "arch"), [("tensorflow/2.15.1", None), ("b", None), ("tensorflw/2.15.1", "knl"), ("x", "gpu")]
)
def test_an_environment_that_is_not_clear_is_refused(text: str, arch: str | None, store: Store, words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        find_environment(store, text, arch)
    words("show", "\n".join(caught.value.to_lines()))
