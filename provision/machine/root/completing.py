"""What a command in a hint about an environment names: its site, arch, stack and backend, as its records say."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from provision.errors import StoreError
from provision.machine.probes.look_around import cpu
from provision.machine.root.sealing import read_description
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.record import backend_of
from provision.profile.choices import BACKENDS
from provision.profile.site import Site


def subject(store: Store, name: str | None, site: Site) -> dict[str, str]:
    """The options with which a command is about this environment: its site, its arch in the profile, its stack, its backend.

    Nothing if `name` is not an environment. The values are words of a command line. The stack is known after the first step;
    before that, and if its records are damaged, the user fills it in.
    """
    try:
        env = EnvironmentId.parse(name or "")
    except ValueError:
        return {}
    stack, backend = "STACK", BACKENDS[0]
    with contextlib.suppress(StoreError):
        stack = read_description(store, env).stack
    with contextlib.suppress(StoreError):
        backend = backend_of(store.shared.read_json(Path(store.layout.records_folder(env)) / "plan.json"))
    arch = site.arch_built_as(env.arch)
    other = {"--backend": backend} if backend != BACKENDS[0] else {}
    named = {**({"--arch": arch.name} if arch else {}), "--stack": stack, **other}
    return {"--site": site.typed, **{name: shlex.quote(value) for name, value in named.items()}}


def needed_subject(store: Store, name: str | None, site: Site) -> dict[str, str]:
    """Of `subject`, what a command at this site does not mean without an option: another arch or stack than the default."""
    named = subject(store, name, site)
    arch = next((arch for arch in site.archs if arch.name == named.get("--arch")), site.archs[0])
    default = {"--site": site.typed, "--stack": arch.stack or site.stack}
    default |= {"--arch": arch.name} if len(site.archs) == 1 else {}
    return {name: value for name, value in named.items() if value != default.get(name)}


def command_to_complete(store: Store, env: EnvironmentId, site: Site) -> str:
    """The build that continues this environment."""
    return " ".join(("provision build", *(f"{name} {word}" for name, word in subject(store, str(env), site).items())))


def hint_to_complete(store: Store, env: EnvironmentId, site: Site) -> str:
    """The hint with that command; an arch `native` builds for the CPU of the machine, so it may be for another one."""
    arch, where = site.arch_built_as(env.arch), ""
    if arch is not None and arch.target == "native" and cpu().target != env.arch:
        where = f" on a machine with the CPU `{env.arch}`"
    return f"`{command_to_complete(store, env, site)}`{where} completes it"
