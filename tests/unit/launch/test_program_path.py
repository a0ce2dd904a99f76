"""The folders in which programs are searched: the same in every shell."""

from __future__ import annotations

import pytest

from provision.launch.program_path import steady_first, steady_part

SYSTEM = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin:/bin"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/usr/bin:/bin", ""),
        ("/bin:/usr/bin", ""),
        ("", ""),
        (".::bin:/usr/bin", ""),
        ("/home/a/.pyenv/shims:/usr/bin:/opt/conda/bin:/bin", ":/home/a/.pyenv/shims:/opt/conda/bin"),
    ],
)
def test_the_folders_of_the_system_come_first_and_those_of_the_shell_last(path: str, own: str) -> None:
    ordered = steady_first(path, "/home/a", purged=True)
    assert ordered == f"{SYSTEM}{own}"
    assert steady_part(ordered) == SYSTEM


def test_what_modules_add_comes_before_the_system() -> None:
    loaded = "/site/gcc/bin:" + steady_first("/home/a/bin:/usr/bin", "/home/a", purged=True)
    assert steady_part(loaded) == f"/site/gcc/bin:{SYSTEM}"


def test_modules_of_the_login_shell_that_stay_are_the_sites() -> None:
    ordered = steady_first("/home/a/bin:/opt/cray/bin:/home/ab/bin:/usr/bin:/bin", "/home/a/", purged=False)
    assert (
        ordered == "/opt/cray/bin:/home/ab/bin:/usr/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin:/bin:/home/a/bin"
    )
    assert "/home/a/bin" in steady_first("/home/a/bin:/usr/bin", "/", purged=False).split(":/bin")[0], "a home of `/`"
