"""Files of JSON that another version of the tool wrote, or that are damaged: what is read, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from parts.records import PROOF
from provision.errors import NewerError
from provision.model.generation import Deprecation, Generation
from provision.model.verdict import ProofResult
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade

ARCH: dict[str, Any] = {"arch": "a", "before": None, "after": "a/tensorflow/2.15.1-0123456789"}
UPGRADE: dict[str, Any] = {"schema": 1, "stack": "s", "state": "building", "archs": [ARCH], "locks": ["s-py3.11.txt"]}
GENERATION = Generation(
    does="publishes x",
    before=3,
    hidden=frozenset({"tensorflow/2.15.1"}),
    deprecated={"tensorflow/2.13.1": Deprecation(date="2027-03-01", text="use 2.15.1")},
    modules={"tensorflow/2.15.1": ARCH["after"]},
)


def test_a_generation_is_read_back_with_the_modules_that_are_beside_it() -> None:
    data = GENERATION.to_dict()
    assert "modules" not in data and data["schema"] == 1
    assert Generation.from_dict(data, modules=GENERATION.modules) == GENERATION


def test_what_another_version_wrote_is_read_as_far_as_it_is_known() -> None:
    read = Upgrade.from_dict({**UPGRADE, "new": {"x": 1}, "archs": [{**ARCH, "new": None}]})
    assert [arch.arch for arch in read.archs] == ["a"] and isinstance(read.archs[0], ArchUpgrade)
    older: dict[str, Any] = {"schema": 1, "does": "x", "hidden": None}
    assert Generation.from_dict(older) == Generation(does="x")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"archs": ["a"]}, r"`archs\[0\]`: must be a table, but is 'a'"),
        ({"archs": {}}, r"`archs`: must be a list, but is \{\}"),
        ({"archs": [{**ARCH, "after": "a/b"}]}, r"`archs\[0\].after`: 'a/b' cannot be read"),
        ({"locks": [3]}, r"`locks\[0\]`: must be text, but is 3"),
        ({"state": "built"}, r"`state`: must be one of building, .*, but is 'built'"),
        ({"stack": None}, "`stack`: missing; text is required"),
    ],
)
def test_the_first_damage_is_an_error_with_its_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        Upgrade.from_dict({**UPGRADE, **change})


def test_a_file_of_a_newer_version_is_not_called_damaged() -> None:
    with pytest.raises(NewerError):
        Upgrade.from_dict({"schema": 2, "stack": ["of another form"]})
    with pytest.raises(NewerError):
        ProofResult.from_dict({**PROOF.to_dict(), "schema": 2, "checks": "of another form"})
