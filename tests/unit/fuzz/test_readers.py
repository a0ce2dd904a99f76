"""Profiles and stacks with anything in any place: they are read, or refused with a list of faults."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parts.hostile import damaged, fuzzed, garbled, refused, texts
from parts.profiles import PROFILES, SITES, parsed, tomllib
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.profile.blanks import blanks, fill, keep_archs
from provision.profile.document import refuse_extremes
from provision.profile.site import read_site
from provision.profile.stack import read_stack

STACKS = SITES.parent / "stacks"
SITE_DOCUMENTS = tuple(parsed(name) for name in (*PROFILES, "local", "example-slurm"))
STACK_DOCUMENTS = tuple(tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(STACKS.glob("*.toml")))
SITE_TEXTS = tuple(path.read_text(encoding="utf-8") for path in sorted(SITES.glob("*.toml")))


@fuzzed(60)
@given(damaged(SITE_DOCUMENTS), st.one_of(st.just("/root"), texts))
def test_any_profile_is_read_or_refused(document: dict[str, Any], root: str) -> None:
    with refused():
        refuse_extremes(document, "sites/x.toml")
        read_site(document, "sites/x.toml", {"PROVISION_ROOT": root})


@fuzzed(60)
@given(damaged(STACK_DOCUMENTS))
def test_any_stack_is_read_or_refused(document: dict[str, Any]) -> None:
    with refused():
        refuse_extremes(document, "stacks/x.toml")
        read_stack(document, "stacks/x.toml")


@fuzzed(60)
@given(garbled(SITE_TEXTS), texts, texts, st.dictionaries(texts, texts, max_size=2))
def test_any_text_of_a_profile_is_read_filled_in_or_refused(
    text: str, name: str, arch: str, answers: dict[str, str]
) -> None:
    with refused():
        asked = blanks(text, shipped.parse)
        fill(keep_archs(text, [arch]), name, asked, answers)
    with refused():
        read_site(shipped.parse(text, "sites/x.toml"), "sites/x.toml", {"PROVISION_ROOT": "/root"})


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a = " + "[" * 200 + "]" * 200,
        ".".join("a" * 2000) + " = 1",
        "a = " + "9" * 5000,
        f"a = 0x{'f' * 5000}",
        "a = 9223372036854775807",
        "a = nan",
        "a = 1e300",
        f'a = "{"x" * 5000}"',
        f'"{"x" * 5000}" = 1',
    ],
    ids=lambda text: f"{text[:5]}-{text[-5:]}",
)
def test_an_extreme_of_toml_is_a_fault_of_the_file(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shipped.parse(text, "sites/x.toml")
    assert caught.value.kind == "invalid-file"
    assert all(len(line) < 9000 for line in caught.value.evidence)
