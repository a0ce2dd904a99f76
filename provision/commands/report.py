"""`provision report DIR`: pages about the environments of a site, for people: a folder of static HTML, or of Markdown."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.environments import site_and_store
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.machine.probes.login_node import now_utc
from provision.machine.rendering.report_pages import render_status_pages, write_status_pages
from provision.machine.root.entries import read_overview
from provision.planning import status_pages


def run(args: Args) -> Outcome:
    """Write a first page with a table of stacks and archs, and a page for each environment."""
    site, store = site_and_store(args)
    entries = read_overview(store)
    if not entries:
        raise ConfigError(
            f"there is no environment below `{store.root}`", hint=f"`provision build --site {site.typed}` builds one"
        )

    def use(arch: str, module: str | None) -> str:
        if module is None or site.modules.name == "none":
            return ""
        folder = f"{store.layout.modules(arch)}/{site.modules.module_kind}"
        return site.modules.load_command(folder, module)

    # What is built for `native` has the name of this machine's CPU.
    archs = [arch.name for arch in site.archs if arch.target != "native"]
    title = f"{status_pages.frameworks_of(entries)} at {site.title or site.name}"
    index = status_pages.index(title, site.name, entries, archs, now_utc())
    pages = {
        status_pages.cell(entry)["page"]: status_pages.page(entry, use(entry.environment.arch, entry.module))
        for entry in entries
    }
    texts = render_status_pages(index, pages, markdown=args.markdown)
    first = write_status_pages(Path(args.folder), texts)
    return Outcome(text=str(first), result={"index": str(first), "pages": sorted(texts), "environments": len(entries)})
