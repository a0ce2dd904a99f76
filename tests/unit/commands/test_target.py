"""What the options name: the stack that is asked for comes first, then the arch's, then the site's."""

from __future__ import annotations

import dataclasses

import pytest

from golden_files import local_site
from provision.commands.shared.target import make_target


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
