"""How a site runs containers, as `[container]` describes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.errors import ConfigError
from provision.profile.patterns import MODULE, OPTION, SHELL_PATH
from provision.profile.reader import Reader

Runtime = Literal["venv", "modules", "container"]
RUNTIMES: tuple[Runtime, ...] = ("venv", "modules", "container")
IMAGE = re.compile(r"(?:docker://)?" + SHELL_PATH.pattern)
SIZE = re.compile(r"([1-9]\d*)GB?-([1-9]\d*)([KM])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An empty file system image that the site has ready, compressed by gzip: its room and how many files it holds."""

    gb: int
    files: int
    path: str

    def __str__(self) -> str:
        return f"{self.gb} GB, {self.files:,} files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The program that runs containers, the site's image, and what a run needs.

    `module` brings the program where it is not there by itself. `overlay` is a file system image that is laid over the
    image (read-only in jobs: many share it), made from one of `overlay_templates`, the smallest first; `write_options`
    are what the program needs besides to write it. `setup` is the file inside that is sourced before Python; `bind` are
    folders to be seen inside.
    """

    command: Literal["apptainer", "singularity", "shifter"]
    module: str | None
    image: str
    overlay: str | None
    overlay_templates: tuple[Template, ...]
    setup: str | None
    bind: tuple[str, ...]
    options: tuple[str, ...]
    write_options: tuple[str, ...]

    def template(self, gb: int, files: int, origin: str) -> Template:
        """The smallest template that holds this.

        Raises:
            ConfigError: none does; `origin` is the file to look into.
        """
        for one in self.overlay_templates:
            if one.gb >= gb and one.files >= files:
                return one
        if not self.overlay_templates:
            raise ConfigError(
                f"`{origin}` names no template to make an overlay from",
                hint=f'`container.overlay_templates = {{ "15GB-500K" = "/a/path.ext3.gz" }}` in `{origin}`',
            )
        most, many = self.overlay_templates[-1], max(one.files for one in self.overlay_templates)
        raise ConfigError(
            f"no template holds {gb} GB in {files:,} files",
            evidence=[
                f"`container.overlay_templates` in `{origin}`:",
                *(f"{one}: {one.path}" for one in self.overlay_templates),
            ],
            hint=f"`--gb {min(gb, most.gb)} --files {min(files, many)}`",
        )


def read_container(table: Reader) -> Container | None:
    """The containers of `[container]`, None where that table is left out."""
    if not table.names():
        return None
    container = Container(
        command=table.text(  # type: ignore[arg-type]
            "command", choices=("apptainer", "singularity", "shifter")
        ),
        module=table.optional("module", pattern=MODULE),
        image=table.text("image", pattern=IMAGE),
        overlay=table.optional("overlay", pattern=SHELL_PATH),
        overlay_templates=_templates(table.table("overlay_templates")),
        setup=table.optional("setup", pattern=SHELL_PATH),
        bind=table.texts("bind", pattern=SHELL_PATH),
        options=table.texts("options", pattern=OPTION),
        write_options=table.texts("write_options", pattern=OPTION),
    )
    if container.command == "shifter" and container.overlay:
        table.fault("overlay", "is for apptainer and singularity; shifter has none")
    if container.overlay_templates and not container.overlay:
        table.fault("overlay", "missing; where the overlay is that is made from `overlay_templates`")
    if container.overlay and (container.setup is None or container.setup.count("/") < 2 or "$" in container.setup):
        table.fault("setup", 'the file in the overlay that is sourced before Python, in a folder: "/ext3/env.sh"')
    table.done()
    return container


def _templates(table: Reader) -> tuple[Template, ...]:
    found = []
    for size in table.names():
        path, parts = table.text(size, pattern=SHELL_PATH), SIZE.fullmatch(size)
        if parts is None:
            table.fault(size, "is no size: room and number of files, as in `15GB-500K`")
        else:
            files = int(parts[2]) * {"K": 1000, "M": 1000_000}[parts[3]]
            found.append(Template(gb=int(parts[1]), files=files, path=path))
    table.done()
    return tuple(sorted(found, key=lambda one: (one.gb, one.files)))
