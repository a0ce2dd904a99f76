"""What may be removed: by the rules, and never what users load, what is pinned, or what is in use."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_files import Words
from parts.hostile import fuzzed
from provision.errors import ConfigError
from provision.planning.removal import DAY_S, Resident, Rules, decide, describe, refuse_protected

OLD = Resident(
    environment="knl/tensorflow/2.15.1-0000000000",
    arch="knl",
    name="tensorflow",
    size=1_700_000_000,
    files=23_390,
    finished=True,
    age_s=100 * DAY_S,
)
PROTECTED: list[tuple[dict[str, Any], str]] = [
    ({"module": "tensorflow/2.15.1"}, "users load it as tensorflow/2.15.1"),
    ({"module": "tensorflow/2.15.1", "default": True}, "users load it as tensorflow/2.15.1 (the default)"),
    ({"pinned": "the paper of group X"}, "pinned: the paper of group X"),
    ({"holder": "alice on n1"}, "in use by alice on n1"),
    ({"used_by": ("job 42 of bob", "job 43 of bob")}, "job 42 of bob and 1 more"),
]
RULES = Rules(keep=0, older_s=30 * DAY_S)


def test_the_newest_stay_and_what_is_young_and_the_rest_goes(words: Words) -> None:
    residents = [
        dataclasses.replace(OLD, environment=f"knl/tensorflow/{day}", age_s=day * DAY_S) for day in (1, 40, 50)
    ]
    unfinished = [dataclasses.replace(OLD, environment=f"u{day}", age_s=day * DAY_S, finished=False) for day in (2, 60)]
    decided = decide([*residents, *unfinished], Rules(keep=1))
    assert {one.resident.environment: one.removes for one in decided} == {
        "knl/tensorflow/1": False,
        "knl/tensorflow/40": True,
        "knl/tensorflow/50": True,
        "u2": False,
        "u60": True,
    }
    words("prune", "\n".join(f"{one.resident.environment}: {one.why}" for one in decided))
    total = describe(decided, [])[-1]
    words("prune", total)


def test_what_is_published_takes_no_place_among_those_that_are_kept() -> None:
    published = dataclasses.replace(OLD, environment="new", age_s=0, module="tensorflow/2.21.0")
    removes = {one.resident.environment: one.removes for one in decide([published, OLD], Rules(keep=1, older_s=0))}
    assert removes == {"new": False, OLD.environment: False}


@pytest.mark.parametrize(("changes", "why"), PROTECTED)
def test_what_is_protected_stays_and_says_why(changes: dict[str, Any], why: str) -> None:
    resident = dataclasses.replace(OLD, **changes)
    (decided,) = decide([resident], RULES)
    assert (decided.removes, decided.why) == (False, why)
    with pytest.raises(ConfigError, match="must not be removed") as caught:
        refuse_protected(resident)
    assert caught.value.evidence == (why,)
    assert caught.value.kind == "protected"


@fuzzed(50)
@given(
    st.lists(
        st.builds(
            dataclasses.replace,
            st.just(OLD),
            environment=st.sampled_from("abcdef"),
            name=st.sampled_from(["tensorflow", "keras"]),
            module=st.none() | st.just("m/1"),
            pinned=st.none() | st.just("p"),
            holder=st.none() | st.just("h"),
            used_by=st.just(()) | st.just(("j",)),
            finished=st.booleans(),
            age_s=st.floats(0, 1e9),
        ),
        max_size=8,
    ),
    st.integers(0, 4),
)
def test_no_rule_removes_what_is_protected(residents: list[Resident], keep: int) -> None:
    decided = decide(residents, Rules(keep=keep, older_s=0))
    assert len(decided) == len(residents)
    assert not [one for one in decided if one.removes and one.resident.protection]
