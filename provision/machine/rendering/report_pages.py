"""The pages about what a site has built, as `provision report` writes them: HTML with its style in the page, or Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.files.disk import remove, write
from provision.machine.rendering.render import render

KINDS = ("html", "md")


def render_status_pages(
    index: Mapping[str, object], pages: Mapping[str, Mapping[str, object]], *, markdown: bool
) -> dict[str, str]:
    """The text of each page by its path in the folder; `pages` are those of the environments, by their names."""
    kind = "md" if markdown else "html"
    texts = {f"index.{kind}": render(f"pages/index.{kind}.j2", index=index)}
    for name, page in pages.items():
        texts[f"environments/{name}.{kind}"] = render(f"pages/environment.{kind}.j2", page=page)
    return texts


def write_status_pages(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write the pages, and remove those of environments that are gone; returns the path of the first page.

    Raises:
        ConfigError: the folder has other files, so it is not one of ours.
        StoreError: it cannot be written.
    """
    first = next(iter(texts))
    kind = first.rpartition(".")[2]
    if folder.is_dir():
        foreign = sorted(
            path.name for path in folder.iterdir() if path.name not in ("environments", *(f"index.{k}" for k in KINDS))
        )
        if foreign:
            raise ConfigError(
                f"`{folder}` has other files than a report",
                evidence=foreign[:4],
                hint=f"`provision report {folder / 'report'}`",
            )
    for old in sorted((folder / "environments").glob(f"*.{kind}")):
        if f"environments/{old.name}" not in texts:
            remove(old)
    for name in reversed(list(texts)):  # the first page last: it links to the others
        write(folder / name, texts[name])
    return folder / first
