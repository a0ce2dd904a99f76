"""Render the pages about what a site has built: HTML with its style in the page, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from provision.machine.rendering.render import render
from provision.planning.status_pages import Index, Page


def render_status_pages(index: Index, pages: Sequence[Page], *, markdown: bool) -> dict[str, str]:
    """The text of each page by its path in the folder."""
    kind = "md" if markdown else "html"
    texts = {f"index.{kind}": render(f"pages/index.{kind}.j2", index=index)}
    for page in pages:
        texts[f"environments/{page.cell.page}.{kind}"] = render(f"pages/environment.{kind}.j2", page=page)
    return texts
