"""How a site runs containers (`[container]`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from provision.errors import ConfigError
from provision.knowledge.container_options import hides_environment
from provision.profile.absolute import NodePath
from provision.profile.patterns import SHELL_PATH, Form, Module, Option, ShellPath
from provision.profile.reader import Reader, Via

Runtime = Literal["venv", "modules", "container"]
IMAGE = Form(r"(?:docker://)?" + SHELL_PATH.pattern)
SIZE = Form(r"([1-9][0-9]*)GB?-([1-9][0-9]*)([KM])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An empty file system image of the site, compressed with gzip: its size and the number of files that it can hold."""

    gb: int
    files: int
    path: str

    def __str__(self) -> str:
        return f"{self.gb} GB, {self.files:,} files"


def templates(paths: Mapping[str, str]) -> tuple[Template, ...]:
    """The templates with these sizes and paths, by their sizes."""
    found = [
        Template(gb=int(parts[1]), files=int(parts[2]) * {"K": 1000, "M": 1000_000}[parts[3]], path=path)
        for size, path in paths.items()
        if (parts := SIZE.fullmatch(size))
    ]
    return tuple(sorted(found, key=lambda template: (template.gb, template.files)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The program that runs containers, the site's image, and what a run needs.

    `module` provides the program if it is not on PATH. `overlay` is a file system image that is mounted over the image
    (read-only in jobs, because many jobs share it). It is made from one of `overlay_templates`, sorted by size;
    `write_options` are the additional options to write to it. `setup` is the file in the container to source before
    Python; `bind` are the folders to make visible in the container.
    """

    command: Literal["apptainer", "singularity", "shifter"]
    module: Module | None = None
    image: Annotated[str, IMAGE]
    overlay: NodePath | None = None
    overlay_templates: Annotated[tuple[Template, ...], Via(Mapping[str, NodePath], templates)] = ()
    setup: NodePath | None = None
    bind: tuple[ShellPath, ...] = ()
    options: tuple[Option, ...] = ()
    write_options: tuple[Option, ...] = ()

    def add_faults(self, table: Reader) -> None:
        """Record options and files that do not fit the command or each other."""
        for index, option in enumerate(self.options):
            if self.command != "shifter" and hides_environment(option):
                table.fault(
                    f"options[{index}]",
                    f"`{option}` hides the launcher's variables from the program, so every rank would be rank 0 of 1; "
                    "leave it out: jobs start from clean modules, and `--no-home` hides the home folder",
                )
        if self.command == "shifter" and self.overlay:
            table.fault("overlay", "is only for apptainer and singularity; shifter has no overlays")
        sizes = table.table("overlay_templates")
        for size in sizes.data:
            if not SIZE.fullmatch(size):
                sizes.fault(size, "is not a valid size: give the size and the number of files, as in `15GB-500K`")
        if self.overlay_templates and not self.overlay:
            table.missing("overlay", "the path of the overlay to make from `overlay_templates`")
        if self.overlay and (self.setup is None or self.setup.count("/") < 2 or "$" in self.setup):
            table.fault(
                "setup",
                'must be the path of the file in the overlay to source before Python, in a folder: "/ext3/env.sh"',
            )

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
