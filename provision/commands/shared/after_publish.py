"""What happens after users can load something else: the command of the site runs.

Its failure is a warning: what was done stays done.
"""

from __future__ import annotations

from typing import Literal

from provision.errors import CommandError
from provision.machine.programs.run import capture
from provision.machine.programs.shell import environ
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
    """Run the site's `hooks.after_publish` in bash for at most five minutes; a failure is a warning on stderr."""
    command = site.hooks.after_publish
    if command is None:
        return
    values = {
        "ACTION": action,
        "ARCH": arch,
        "ENVIRONMENT": environment,
        "MODULES_FOLDER": f"{store.layout.modules(arch)}/{site.modules.module_kind}",
    }
    argv = ("bash", "--noprofile", "--norc", "-c", command)
    variables = {**environ(), **{f"PROVISION_{name}": value for name, value in values.items()}}
    try:
        done = capture(argv, variables, 300, needs="everything")
    except CommandError as error:
        say(f"warning: `hooks.after_publish` of `{site.origin}` failed: {error.message}")
        return
    if done.returncode:
        last = "".join(f": {line}" for line in (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:])
        say(f"warning: `hooks.after_publish` of `{site.origin}` ended with code {done.returncode}{last}")
