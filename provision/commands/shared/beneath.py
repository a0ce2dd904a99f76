"""What a user's venv or kernel is made on: a published environment, or the site's own modules with a framework."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from provision.errors import ConfigError, PlanError
from provision.knowledge.frameworks import FRAMEWORKS, TITLES, installed_frameworks
from provision.machine.install import make_own_venv
from provision.machine.probes.provided import ProvidedPython, provided_python
from provision.machine.programs.shell import absolute, environ
from provision.machine.root.completing import hint_to_complete
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.own_venv import Beneath
from provision.profile.arch import Arch
from provision.profile.patterns import MODULE
from provision.profile.site import Site
from provision.wording import add_arch


def site_for_venv(typed: str, site: Site) -> str:
    """How a venv names its site: by its name, or by the path of a profile that is not in a configuration folder."""
    return absolute(typed) if "/" in typed else site.name


def beneath_of(site: Site, store: Store, env: EnvironmentId, typed: str, *, retry: str) -> Beneath:
    """What a venv on a published environment needs to know of it. `typed` is the value of `--site`.

    `retry` is the command for the hint, with `%s` for the environment that is published.

    Raises:
        PlanError: it is not published.
        CommandError: its Python does not start.
    """
    record = store.record(env)
    published = store.pointers().get(env.pointer)
    if record is None or published != str(env):
        raise PlanError(
            f"`{env}` is not published" + (f": its module loads `{published}`" if published else ""),
            hint=f"`{retry % published}`"
            if published
            else f"`provision publish --site {site.typed} {env}` publishes it"
            if record
            else hint_to_complete(store, env, site),
        )
    minor, folders = make_own_venv.look_beneath(record.prefix, environ())
    return Beneath(
        environment=str(env),
        module=record.module,
        prefix=record.prefix,
        root=str(store.root),
        site=site_for_venv(typed, site),
        minor=minor,
        folders=folders,
    )


def arch_of_modules(site: Site, on: str, arch: str | None) -> Arch | None:
    """The arch whose own modules of the site `--on` names; None if it names an environment.

    Raises:
        ConfigError: several archs have such modules, or the arch has none.
    """
    archs = [site.arch(arch)] if arch else site.archs
    found = [one for one in archs if on in one.provided or (on == "modules" and one.provided)]
    if not found and on != "modules":
        return None
    if not found:
        raise ConfigError(
            f"site `{site.name}` has no modules with {TITLES}" + (f" for arch `{arch}`" if arch else ""),
            evidence=[f"`archs.*.provided` in `{site.origin}` is empty"],
            hint="`provision list` shows the environments that `--on` can name",
        )
    if len({one.provided for one in found}) > 1:
        raise ConfigError(
            f"`--on {on}` matches the modules of several archs",
            evidence=[f"`{one.name}`: {' '.join(one.provided)}" for one in found],
            hint=add_arch([one.name for one in found]),
        )
    if any(not MODULE.fullmatch(name) for name in found[0].provided):
        raise ConfigError(
            f"`archs.{found[0].name}.provided` has a name that is not valid", hint=f"edit `{site.origin}`"
        )
    return found[0]


def beneath_modules(site: Site, arch: Arch, typed: str) -> tuple[Beneath, ProvidedPython]:
    """The modules of the site that bring a framework, as what a venv is made on, and their Python; `typed` names the site.

    Raises:
        PlanError: they do not load here, or they contain no framework.
    """
    python = provided_python(site, arch)
    names = " ".join(arch.provided)
    if not installed_frameworks(python.packages):
        raise PlanError(
            f"the modules {names} contain no {TITLES}",
            evidence=[
                f"`{python.executable}` finds {len(python.packages)} packages, and none of "
                + ", ".join(name for one in FRAMEWORKS.values() for name in one.distributions)
            ],
            hint=" or ".join(f"`provision modules {name} --site {site.typed}`" for name in FRAMEWORKS)
            + " lists the site's modules with one",
        )
    beneath = Beneath(
        environment=None,
        module=names,
        arch=arch.name,
        prefix=python.prefix,
        root=str(site.root),
        site=typed,
        minor=python.minor,
        folders=(*python.added, *python.folders),
    )
    return beneath, python


def make_on_modules(folder: str, beneath: Beneath, python: ProvidedPython) -> Mapping[str, str]:
    """Make a venv on modules of the site; returns the packages that its constraints keep.

    Raises:
        CommandError: virtualenv fails.
    """
    return make_own_venv.create(
        Path(folder),
        beneath,
        python.environ,
        python=python.executable,
        packages=python.packages,
        shown=python.folders,
    )
