"""`provision fetch`: download everything that a build installs: packages, source, data set.

After that, a build needs no network. A file that was downloaded before is not downloaded again.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from provision.backends.spack.repository import refuse_old_python
from provision.backends.venv.wheelhouse import fetch_lock
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import Target, read_target
from provision.errors import ConfigError, raise_faults
from provision.knowledge.versions import ascending
from provision.machine.network.fetching import fetch_data, fetch_packages, fetch_source
from provision.machine.network.spack_sources import fetch_pip
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.request import Request
from provision.planning.preflight import place_faults


def run(args: Args) -> Outcome:
    """Download what is missing."""
    target = read_target(args)
    if target.site.network.download_node:
        say(f"note: downloads of site `{target.site.name}` run on {target.site.network.where_to_download}")
    request = _request(target, args.python)
    if request.stack.backend == "spack":
        refuse_old_python(request)
    raise_faults(place_faults(target.store.place(), installed=False))
    fetched, here = fetch_missing(target.store, request)
    if request.stack.backend == "spack":
        (fetched if fetch_pip(target.store) else here).append("pip")
    data = fetch_data(target.store)
    text = f"fetched: {', '.join(fetched) or 'nothing'}; already there: {', '.join(here) or 'nothing'}; data: {data}"
    return Outcome(
        text=text,
        result={"fetched": fetched, "here": here, "data": data, "wheelhouse": str(target.store.layout.wheelhouse)},
    )


def fetch_missing(store: Store, request: Request) -> tuple[list[str], list[str]]:
    """Download the packages of all locks, and the sources that are compiled; returns what was fetched, and what was there."""
    fetched: list[str] = []
    here: list[str] = []
    for lock in request.locks:
        name = PurePosixPath(lock.path).name
        if lock.sha256 in store.downloads.fetched():
            here.append(name)
            continue
        say(f"fetching {name}: {len(lock.pins)} packages")
        fetch_packages(store, fetch_lock(lock, request, request.arch.target))
        fetched.append(name)
    for pin in request.sources:
        (fetched if fetch_source(store, pin) else here).append(f"{pin.name} {pin.version}")
    return fetched, here


def _request(target: Target, python: str | None) -> Request:
    if python is None:
        return target.request(target.observe())
    if python not in target.stack.pythons:
        raise ConfigError(
            f"the stack `{target.stack.name}` has no lock for Python {python}",
            evidence=[f"it has: {', '.join(ascending(target.stack.pythons))}"],
            hint=f"`--python {target.stack.pythons[0]}`",
        )
    return target.request_for(python)
