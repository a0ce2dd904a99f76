"""Run a command of the site after something was done. Its failure is a warning: what was done stays done."""

from __future__ import annotations

import os
from collections.abc import Mapping

from provision.errors import CommandError
from provision.machine.programs.run import capture
from provision.profile.site import Site


def run_after_publish(site: Site, values: Mapping[str, str]) -> str | None:
    """Run `hooks.after_publish` in bash, with these variables; returns a warning if it failed, None if not or if there is none.

    It runs for at most five minutes.
    """
    command = site.hooks.after_publish
    if command is None:
        return None
    environ = {**os.environ, **{f"PROVISION_{name}": value for name, value in values.items()}}
    try:
        done = capture(("bash", "--noprofile", "--norc", "-c", command), environ, 300, needs="everything")
    except CommandError as error:
        return f"warning: `hooks.after_publish` of `{site.origin}` failed: {error.message}"
    if done.returncode == 0:
        return None
    last = "".join(f": {line}" for line in (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:])
    return f"warning: `hooks.after_publish` of `{site.origin}` ended with code {done.returncode}{last}"
