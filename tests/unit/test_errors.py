"""Errors carry a stable kind: one of a closed list, and never the name of a Python class."""

from __future__ import annotations

import re
from typing import get_args

from provision import errors
from provision.errors import ErrorKind, ProvisionError

KINDS = get_args(ErrorKind)
CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, ProvisionError)]


def test_every_class_of_error_names_a_kind_of_the_list() -> None:
    assert len(CLASSES) > 5
    assert {one.kind for one in CLASSES} <= set(KINDS)
    assert all("kind" in vars(one) for one in CLASSES)


def test_a_kind_is_lower_case_words_with_hyphens() -> None:
    assert len(set(KINDS)) == len(KINDS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", kind) for kind in KINDS)


def test_an_error_may_have_a_finer_kind_than_its_class() -> None:
    assert errors.StoreError("x").to_dict()["kind"] == "store"
    assert errors.StoreError("x", kind="locked").to_dict()["kind"] == "locked"
