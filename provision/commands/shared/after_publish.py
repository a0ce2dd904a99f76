"""What happens after users can load something else: the command of the site runs."""

from __future__ import annotations

from typing import Literal

from provision.machine.programs.site_hook import run_after_publish
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.profile.site import Site


def after_publish(
    site: Site,
    store: Store,
    action: Literal["build", "publish", "unpublish", "rollback", "upgrade"],
    arch: str,
    environment: str = "",
) -> None:
    """Run the site's `hooks.after_publish`; a failure is a warning on stderr."""
    if site.hooks.after_publish is None:
        return
    values = {
        "ACTION": action,
        "ARCH": arch,
        "ENVIRONMENT": environment,
        "MODULES_FOLDER": f"{store.layout.modules(arch)}/{site.modules.module_kind}",
    }
    warning = run_after_publish(site, values)
    if warning:
        say(warning)
