"""Every shape of a credential, with the real messages of pip and uv, to servers that answer 401, 404, 500, and to none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from parts.credentials import SHAPES, Shape, leaks, pip_argv, refusing_index, try_everywhere, uv_argv

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def hosts() -> Iterator[Mapping[int, str]]:
    """Servers that refuse."""
    with refusing_index() as addresses:
        yield addresses


@pytest.mark.parametrize("code", [0, 401, 404, 500])
@pytest.mark.parametrize("program", [pip_argv, uv_argv], ids=["pip", "uv"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_message_leaks(
    shape: Shape,
    program: object,
    code: int,
    hosts: Mapping[int, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert callable(program)
    text = try_everywhere(program(tmp_path), shape, hosts[code], tmp_path, capsys)
    assert leaks(text, shape) == [], text
