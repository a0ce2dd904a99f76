"""A profile has no relative paths: they would be another file in every folder that a user stands in."""

from __future__ import annotations

from typing import Any

import pytest

from golden_files import Words
from parts.profiles import parsed
from provision.errors import ConfigError
from provision.profile.site import read_site


def changed(profile: str, key: str, value: str) -> dict[str, Any]:
    """The TOML of a shipped profile with another value at this path of keys."""
    data: dict[str, Any] = parsed(profile)
    *tables, last = key.split("/")
    table = data
    for name in tables:
        table = table.setdefault(name, {})
    table[last] = value
    return data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("root", "root"),
        ("root", "./root"),
        ("modules/init", "init/bash"),
        ("files/scratch", "scratch"),
        ("files/temporary", "../tmp"),
        ("archs/gpu/python", "./evil.sh"),
        ("archs/gpu/python", "bin/python3.11"),
        ("archs/gpu/compiler/cxx", "./g++"),
        ("archs/gpu/compiler/cc", "bin/gcc"),
        ("archs/gpu/mpi/cxx", "./mpicxx"),
    ],
)
def test_a_relative_path_is_a_fault_of_its_key(key: str, value: str, words: Words) -> None:
    data = changed("nersc-perlmutter", key, value)
    with pytest.raises(ConfigError) as caught:
        read_site(data, "x.toml", {"PROVISION_ROOT": "/x"})
    (line,) = caught.value.evidence
    assert line.startswith(f"{key.replace('/', '.')}: ") and repr(value) in line
    words("site", line)


@pytest.mark.parametrize("value", ["python3.11", "/usr/bin/python3", "~/bin/python3", "${HOME}/python"])
def test_a_name_on_path_and_an_absolute_path_are_accepted(value: str) -> None:
    data = changed("nersc-perlmutter", "archs/gpu/python", value)
    site = read_site(data, "x.toml", {"PROVISION_ROOT": "/x", "HOME": "/home/ada"})
    assert str(site.arch("gpu").python).endswith(value.rpartition("}")[2])


def test_a_variable_with_a_relative_path_is_refused_too(words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        read_site(parsed("local"), "x.toml", {"PROVISION_ROOT": "here"})
    (line,) = caught.value.evidence
    assert line.startswith("root: ") and "'here'" in line and "`${PROVISION_ROOT}`" in line
    words("site", line)
