"""The environments of a site, and the one that an option names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from provision.commands.shared.outcome import Args
from provision.errors import ConfigError, PlanError
from provision.machine.configuration import shipped
from provision.machine.probes.look_around import cpu
from provision.machine.programs.shell import absolute, environ, expand_home
from provision.machine.root.completing import hint_to_complete
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.layout import EnvironmentId, Layout
from provision.model.record import Record
from provision.model.trust import Sharing
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.wording import add_arch, nearest, nearest_name


def store_of(site: Site, *, lenient: bool = False) -> Store:
    """The store below the site's root; see `Sharing` about `lenient`."""
    sharing = Sharing(group=site.files.group, readers=site.files.readers, origin=site.origin, lenient=lenient)
    return Store(Layout(PurePosixPath(absolute(expand_home(site.root)))), sharing)


def read_store(site: Site, *, lenient: bool = False) -> Store:
    """The store below the site's root. Warns if others than its admins may write it."""
    store = store_of(site, lenient=lenient)
    for fault in store.shared.admins.faults():
        say(f"warning: {fault.message}; {fault.hint}")
    return store


def site_and_store(args: Args, *, lenient: bool = False) -> tuple[Site, Store]:
    """The site of `--site`, and its store; `lenient` as of `read_store`."""
    site = shipped.load_site(args.site)
    return site, read_store(site, lenient=lenient)


def arch_below(site: Site, arch: str | None) -> str | None:
    """The arch in the names of the environments of this arch: for a `native` arch, the CPU of this machine."""
    native = any(known.name == arch and known.target == "native" for known in site.archs)
    return cpu().target if native else arch


def describe_arch(site: Site | None, arch: str) -> str:
    """An arch in a message about environments: its name, and that in the names of its environments if it differs."""
    below = arch_below(site, arch) if site else arch
    return f"`{arch}`" if below == arch else f"`{arch}` (on this machine `{below}`)"


def arch_of(site: Site, env: EnvironmentId) -> Arch:
    """The arch of the site that an environment is for.

    Raises:
        ConfigError: the profile has no such arch any more.
    """
    arch = site.arch_built_as(env.arch)
    if arch is None:
        raise ConfigError(f"site `{site.name}` no longer has the arch `{env.arch}`", hint=f"edit `{site.origin}`")
    return arch


def find_environment(store: Store, text: str, arch: str | None = None, *, site: Site | None = None) -> EnvironmentId:
    """The environment that `text` names: its name, its fingerprint's beginning, or a module that points to one.

    With `arch`, only environments of that arch are searched: several archs have a module of one name. It is an arch of `site`,
    or without a site that in the names of environments.

    Raises:
        ConfigError: none matches, or several do; they are listed.
    """
    everything = store.environments()
    below = arch_below(site, arch) if site else arch
    known = [env for env in everything if below in (None, env.arch)]
    pointers = {str(env): name for name, env in store.pointers().items()}
    exact = [env for env in known if text in (str(env), env.fingerprint, f"{env.version}-{env.fingerprint}")]
    published = [env for env in known if text in (pointers.get(str(env)), pointers.get(str(env), "").split("/", 1)[-1])]
    close = [env for env in known if env.fingerprint.startswith(text) or f"{env.name}/{env.version}" == text]
    found = exact or published or close
    if len(found) == 1:
        return found[0]
    names = [str(env) for env in (found or known)]
    if found:
        archs = sorted({env.arch for env in found})
        raise ConfigError(
            f"`{text}` matches several environments",
            evidence=names,
            hint=add_arch(archs) if len(archs) == len(found) else f"give a whole name: `{names[0]}`",
            kind="ambiguous-environment",
        )
    words = [*names, *(name.split("/", 1)[-1] for name in pointers.values())]
    near = nearest_name(text, words)
    raise ConfigError(
        f"there is no environment `{text}`"
        + (f" of arch {describe_arch(site, arch)}" if arch else "")
        + f" below `{store.root}`{nearest(text, words)}",
        evidence=names or of_other_archs(everything),
        hint=f"`{near}`"
        if near
        else f"give a whole name: `{names[0]}`"
        if names
        else f"leave `--arch` out, and give a whole name: `{everything[0]}`"
        if everything
        else "`provision build` builds one",
        kind="unknown-environment",
        correction=(text, near) if near else None,
    )


def named_environment(args: Args, *, lenient: bool = False) -> tuple[Site, Store, EnvironmentId]:
    """The site of `--site`, its store, and the environment that the argument names there; `lenient` as of `read_store`.

    Raises:
        ConfigError: as of `find_environment`.
    """
    site, store = site_and_store(args, lenient=lenient)
    return site, store, find_environment(store, args.environment, args.arch, site=site)


def set_by_module(variable: str) -> str:
    """The value of a variable that our modules set: `PROVISION_ENVIRONMENT`, `VIRTUAL_ENV`.

    Raises:
        ConfigError: it is not set, so this shell has loaded none.
    """
    value = environ().get(variable)
    if not value:
        raise ConfigError(
            "no module of `provision` is loaded in this shell",
            evidence=[f"LOADEDMODULES: {environ().get('LOADEDMODULES') or 'nothing'}"],
            hint="`module load tensorflow/VERSION`, then this command; `provision list` lists the modules",
        )
    return value


def of_other_archs(others: Sequence[EnvironmentId]) -> list[str]:
    """The evidence that an arch has no environments: those of the other archs."""
    return [f"of another arch: {env}" for env in others] or ["the site has no environments"]


def published_record(store: Store, env: EnvironmentId, site: Site, retry: str) -> Record:
    """The record of an environment that users load; `retry` is a command, with `%s` for the one that they load instead.

    Raises:
        PlanError: they do not load it.
    """
    record, published = store.record(env), store.pointers().get(env.pointer)
    if record is not None and published == str(env):
        return record
    if published:
        loads, hint = f": its module loads `{published}`", f"`{retry % published}`"
    else:
        loads, hint = "", f"`provision publish --site {site.typed} {env}` publishes it"
    hint = hint if published or record else hint_to_complete(store, env, site)
    raise PlanError(f"`{env}` is not published{loads}", hint=hint)
