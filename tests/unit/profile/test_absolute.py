"""A profile has no relative paths: they would be another file in every folder that a user stands in."""

from __future__ import annotations

from typing import Any

import pytest

from golden_files import Words
from parts.profiles import parsed
from provision.errors import ConfigError
from provision.profile.site import read_site


def changed(key: str, value: str) -> dict[str, Any]:
    """The TOML of Perlmutter's profile with another value at this path of keys."""
    data = table = parsed("nersc-perlmutter")
    *tables, last = key.split("/")
    for name in tables:
        table = table.setdefault(name, {})
    table[last] = value
    return data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("root", "root"), ("root", "./root"), ("files/scratch", "scratch"), ("files/temporary", "../tmp")),
        *(("modules/init", "init/bash"), ("archs/gpu/mpi/cxx", "./mpicxx"), ("archs/gpu/python", "./evil.sh")),
        *(("archs/gpu/compiler/cxx", "./g++"), ("archs/gpu/compiler/cc", "bin/gcc")),
    ],
)
def test_a_relative_path_is_a_fault_of_its_key(key: str, value: str, words: Words) -> None:
    data = changed(key, value)
    with pytest.raises(ConfigError) as caught:
        read_site(data, "x.toml", {"PROVISION_ROOT": "/x"})
    (line,) = caught.value.evidence
    assert line.startswith(f"{key.replace('/', '.')}: ") and repr(value) in line
    words("site", line)


@pytest.mark.parametrize("value", ["python3.11", "/usr/bin/python3", "~/bin/python3", "${HOME}/python"])
def test_a_name_on_path_and_an_absolute_path_are_accepted(value: str) -> None:
    data = changed("archs/gpu/python", value)
    site = read_site(data, "x.toml", {"PROVISION_ROOT": "/x", "HOME": "/home/ada"})
    assert str(site.arch("gpu").python).endswith(value.rpartition("}")[2])


@pytest.mark.parametrize("root", ["/a:b", '/a"b'])
def test_a_root_that_path_cannot_hold_is_a_fault(root: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_site(parsed("nersc-perlmutter"), "x.toml", {"PROVISION_ROOT": root})
    assert any(line.startswith("root: ") and repr(root) in line for line in caught.value.evidence)
