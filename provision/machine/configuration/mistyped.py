"""Variables of the tool with a value that means nothing: without an error they would have no effect, and nobody would know."""

from __future__ import annotations

import os

from provision.errors import ConfigError
from provision.machine.configuration.search_path import named_folder

INSTALLERS = ("", "pip", "uv")


def refuse_mistyped() -> None:
    """Raise for a folder that does not exist, or an installer that is none.

    Raises:
        ConfigError: as above.
    """
    folder, installer = named_folder(), os.environ.get("PROVISION_INSTALLER", "")
    if folder and not os.path.isdir(folder):  # noqa: PTH112
        raise ConfigError(
            f"`PROVISION_CONFIG` names `{folder}`, which is no folder",
            hint="`export PROVISION_CONFIG=/PATH` of the folder that contains `sites`, or `unset PROVISION_CONFIG`",
        )
    if installer not in INSTALLERS:
        raise ConfigError(
            f"`PROVISION_INSTALLER` is `{installer}`, and must be `pip` or `uv`",
            hint="`export PROVISION_INSTALLER=pip`, or `unset PROVISION_INSTALLER`",
        )
