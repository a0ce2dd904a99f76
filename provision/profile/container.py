"""How a site runs containers (`[container]`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.errors import ConfigError
from provision.knowledge.container_options import hides_environment
from provision.profile.patterns import MODULE, OPTION, SHELL_PATH
from provision.profile.reader import Reader

Runtime = Literal["venv", "modules", "container"]
RUNTIMES: tuple[Runtime, ...] = ("venv", "modules", "container")
IMAGE = re.compile(r"(?:docker://)?" + SHELL_PATH.pattern)
SIZE = re.compile(r"([1-9][0-9]*)GB?-([1-9][0-9]*)([KM])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An empty file system image of the site, compressed with gzip: its size and the number of files that it can hold."""

    gb: int
    files: int
    path: str

    def __str__(self) -> str:
        return f"{self.gb} GB, {self.files:,} files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The program that runs containers, the site's image, and what a run needs.

    `module` provides the program if it is not on PATH. `overlay` is a file system image that is mounted over the image
    (read-only in jobs, because many jobs share it). It is made from one of `overlay_templates`, sorted by size;
    `write_options` are the additional options to write to it. `setup` is the file in the container to source before
    Python; `bind` are the folders to make visible in the container.
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
        """The smallest template of at least this size.

        Raises:
            ConfigError: no template is large enough; `origin` is the profile to name in the message.
        """
        for template in self.overlay_templates:
            if template.gb >= gb and template.files >= files:
                return template
        if not self.overlay_templates:
            raise ConfigError(
                f"`{origin}` names no template for an overlay",
                hint=f'add `container.overlay_templates = {{ "15GB-500K" = "/a/path.ext3.gz" }}` in `{origin}`',
            )
        largest, most_files = self.overlay_templates[-1], max(template.files for template in self.overlay_templates)
        raise ConfigError(
            f"no template has room for {gb} GB in {files:,} files",
            evidence=[
                f"`container.overlay_templates` in `{origin}`:",
                *(f"{template}: {template.path}" for template in self.overlay_templates),
            ],
            hint=f"`--gb {min(gb, largest.gb)} --files {min(files, most_files)}`",
        )


def read_container(table: Reader) -> Container | None:
    """Read `[container]`; None if the profile does not have that table."""
    if not table.names():
        return None
    container = Container(
        command=table.choice("command", ("apptainer", "singularity", "shifter")),
        module=table.optional("module", pattern=MODULE),
        image=table.text("image", pattern=IMAGE),
        overlay=table.optional("overlay", pattern=SHELL_PATH),
        overlay_templates=_templates(table.table("overlay_templates")),
        setup=table.optional("setup", pattern=SHELL_PATH),
        bind=table.texts("bind", pattern=SHELL_PATH),
        options=table.texts("options", pattern=OPTION),
        write_options=table.texts("write_options", pattern=OPTION),
    )
    for index, option in enumerate(container.options):
        if container.command != "shifter" and hides_environment(option):
            table.fault(
                f"options[{index}]",
                f"`{option}` hides the launcher's variables from the program, so every rank would be rank 0 of 1; "
                "leave it out: jobs start from clean modules, and `--no-home` hides the home folder",
            )
    if container.command == "shifter" and container.overlay:
        table.fault("overlay", "is only for apptainer and singularity; shifter has no overlays")
    if container.overlay_templates and not container.overlay:
        table.missing("overlay", "the path of the overlay to make from `overlay_templates`")
    if container.overlay and (container.setup is None or container.setup.count("/") < 2 or "$" in container.setup):
        table.fault(
            "setup", 'must be the path of the file in the overlay to source before Python, in a folder: "/ext3/env.sh"'
        )
    table.done()
    return container


def _templates(table: Reader) -> tuple[Template, ...]:
    templates = []
    for size in table.names():
        path, parts = table.text(size, pattern=SHELL_PATH), SIZE.fullmatch(size)
        if parts is None:
            table.fault(size, "is not a valid size: give the size and the number of files, as in `15GB-500K`")
        else:
            files = int(parts[2]) * {"K": 1000, "M": 1000_000}[parts[3]]
            templates.append(Template(gb=int(parts[1]), files=files, path=path))
    table.done()
    return tuple(sorted(templates, key=lambda template: (template.gb, template.files)))
