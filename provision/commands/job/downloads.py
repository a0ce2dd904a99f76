"""Refuses a job whose training script would download on a node without network."""

from __future__ import annotations

from provision.commands.job.program import read_program
from provision.errors import ConfigError
from provision.lint.data_rules import fetch_command
from provision.machine.files.tables import read_keras_files
from provision.machine.network.data_files import is_fetched, place_of
from provision.machine.terminal.console import say
from provision.profile.site import Site


def check_downloads(site: Site, script: str | None, kind: str) -> None:
    """Raise if the training script downloads what is not here, and its job has no network.

    A machine that does not see the site's scratch cannot know what was fetched there: it only prints a note.

    Raises:
        ConfigError: something has to be fetched first.
    """
    # Workers of a `multiworker` job connect by gRPC, so it unsets the proxy.
    without = site.network.compute == "no" or (site.network.compute == "proxy" and kind == "multiworker")
    if not without or script is None:
        return
    why = f"compute nodes of site `{site.name}` have no network"
    if site.network.compute == "proxy":
        why = f"a `{kind}` job unsets the proxy through which nodes of site `{site.name}` reach the network"
    wanted = [download for download in read_program(script).downloads if download.name is not None]
    if not wanted:
        return
    files = read_keras_files()
    commands = [fetch_command(download, site) for download in wanted]
    try:
        place = place_of(site)
    except ConfigError:
        say(f"note: {why}; first run there: `{'`, `'.join(commands)}`")
        return
    missing = [
        (one, command)
        for one, command in zip(wanted, commands, strict=True)
        if not is_fetched(one.name or "", files.get(one.name or "", ()), place)
    ]
    if missing:
        raise ConfigError(
            f"`{script}` downloads `{missing[0][0].name}`, but {why}",
            evidence=[f"line {one.line}: {one.name} is not here yet" for one, _ in missing],
            hint=" and ".join(dict.fromkeys(f"`{command}`" for _, command in missing)),
        )
