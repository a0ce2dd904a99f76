"""How a site runs containers, as `[container]` describes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.model.patterns import OPTION, SHELL_PATH
from provision.model.reader import Reader

Runtime = Literal["venv", "modules", "container"]
RUNTIMES: tuple[Runtime, ...] = ("venv", "modules", "container")
IMAGE = re.compile(r"(?:docker://)?" + SHELL_PATH.pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The program that runs containers, the site's image, and what a run needs.

    `overlay` is a file system image that is laid over it (read-only in jobs: many share it), made as a copy of
    `overlay_template`; `setup` is the file inside that is sourced before Python; `bind` are folders to be seen inside.
    """

    command: Literal["apptainer", "singularity", "shifter"]
    image: str
    overlay: str | None
    overlay_template: str | None
    setup: str | None
    bind: tuple[str, ...]
    options: tuple[str, ...]


def read_container(table: Reader) -> Container | None:
    """The containers of `[container]`, None where that table is left out."""
    if not table.names():
        return None
    container = Container(
        command=table.text(  # type: ignore[arg-type]
            "command", choices=("apptainer", "singularity", "shifter")
        ),
        image=table.text("image", pattern=IMAGE),
        overlay=table.optional("overlay", pattern=SHELL_PATH),
        overlay_template=table.optional("overlay_template", pattern=SHELL_PATH),
        setup=table.optional("setup", pattern=SHELL_PATH),
        bind=table.texts("bind", pattern=SHELL_PATH),
        options=table.texts("options", pattern=OPTION),
    )
    if container.command == "shifter" and container.overlay:
        table.fault("overlay", "is for apptainer and singularity; shifter has none")
    table.done()
    return container
