"""Rendered files are read by the languages they are for: Lua, Tcl and shells get hostile values back unchanged."""

from __future__ import annotations

import pytest

from golden_files import Words
from provision.errors import ConfigError
from provision.machine.rendering.render import render


def test_a_template_without_a_value_that_it_needs_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"`modulefiles/activate\.sh\.j2` cannot be rendered") as caught:
        render("modulefiles/activate.sh.j2", names=())
    assert caught.value.evidence == ("'module' is undefined",)


def test_a_missing_template_is_an_error(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`jobs/nosuch\.sh\.j2`") as caught:
        render("jobs/nosuch.sh.j2")
    words("job", "\n".join(caught.value.to_lines()))
