"""Parse the text of a file of the configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from provision.errors import ConfigError
from provision.profile.document import refuse_extremes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse(text: str, origin: str) -> Mapping[str, Any]:
    """A text of TOML, parsed.

    Raises:
        ConfigError: it is not TOML.
    """
    try:
        data: Mapping[str, Any] = tomllib.loads(text)
    # A ValueError that is not one of TOML: a number of more than 4300 digits. A RecursionError: a thousand brackets.
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"`{origin}` is not TOML", evidence=[str(error)], hint=f"edit `{origin}`", kind="invalid-file"
        ) from error
    refuse_extremes(data, origin)
    return data
