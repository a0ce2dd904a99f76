"""What a user's venv or kernel is made on: a published environment, or the site's own modules with a framework."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.environments import published_record, read_store
from provision.commands.shared.outcome import Args
from provision.errors import ConfigError, PlanError
from provision.jobs.environment_script import EnvironmentScript, in_environment, on_modules
from provision.knowledge.frameworks import FRAMEWORKS, TITLES, installed_frameworks
from provision.machine.configuration import shipped
from provision.machine.install import make_own_venv
from provision.machine.install.make_own_venv import read_venv
from provision.machine.probes.provided import ProvidedPython, provided_python
from provision.machine.programs.shell import absolute, environ
from provision.machine.root.store import Store
from provision.model.check import Check
from provision.model.layout import EnvironmentId
from provision.model.own_venv import Beneath, Contents, judge_venv
from provision.profile.patterns import MODULE
from provision.profile.site import Site
from provision.wording import add_arch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is beneath a venv or a kernel, at which site, and the Python of the site's modules; None for an environment."""

    site: Site
    beneath: Beneath
    provided: ProvidedPython | None = None

    @property
    def python(self) -> str:
        """The path of its Python."""
        return self.provided.executable if self.provided else f"{self.beneath.prefix}/bin/python"

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables with which its Python starts."""
        return self.provided.environ if self.provided else environ()

    def make_venv(self, folder: Path) -> Mapping[str, str]:
        """Make a venv on it; returns the packages that its constraints keep.

        Raises:
            CommandError: Python cannot make a venv.
        """
        of, more = self.provided, dict[str, Any]()
        if of:
            more = {"python": of.executable, "packages": of.packages, "shown": of.folders}
        return make_own_venv.create(folder, self.beneath, self.environ, **more)

    def script(self, venv: str | None) -> EnvironmentScript:
        """The script that becomes its Python, or that of a venv on it."""
        beneath = self.beneath
        if beneath.environment is None:
            return on_modules(self.site, self.site.arch(beneath.arch), modules=beneath.modules, venv=venv)
        env = EnvironmentId.parse(beneath.environment)
        return script_in(self.site, read_store(self.site), env, beneath.module, beneath.prefix, venv)


def script_in(
    site: Site, store: Store, env: EnvironmentId, module: str, prefix: str, venv: str | None = None
) -> EnvironmentScript:
    """The script that becomes the Python of a published environment, or of a venv on it."""
    return in_environment(
        site,
        environment=str(env),
        module=module,
        modulepath=f"{store.layout.modules(env.arch)}/{site.modules.module_kind}",
        activate=f"{store.layout.records_folder(env)}/activate.sh",
        prefix=prefix,
        venv=venv,
    )


def site_for_venv(typed: str, site: Site) -> str:
    """How a venv names its site: by its name, or by the path of a profile that is not in a configuration folder."""
    return absolute(typed) if "/" in typed else site.name


def ground_of_environment(args: Args, site: Site, store: Store, env: EnvironmentId, *, retry: str) -> Ground:
    """A published environment, for a venv or a kernel on it.

    `retry` is as of `published_record`.

    Raises:
        PlanError: it is not published.
        CommandError: its Python does not start.
    """
    record = published_record(store, env, site, retry)
    minor, folders = make_own_venv.look_beneath(record.prefix, environ())
    beneath = Beneath(
        environment=str(env),
        module=record.module,
        prefix=record.prefix,
        root=str(store.root),
        site=site_for_venv(args.site, site),
        minor=minor,
        folders=folders,
    )
    return Ground(site=site, beneath=beneath)


def ground_of_modules(args: Args, site: Site, on: str) -> Ground | None:
    """The site's own modules with a framework, which `on` names; None if it names an environment.

    Raises:
        ConfigError: several archs have such modules, or the arch has none.
        PlanError: they do not load here, or they contain no framework.
    """
    archs = [site.arch(args.arch)] if args.arch else site.archs
    found = [one for one in archs if on in one.provided or (on == "modules" and one.provided)]
    if not found and on != "modules":
        return None
    if not found:
        raise ConfigError(
            f"site `{site.name}` has no modules with {TITLES}" + (f" for arch `{args.arch}`" if args.arch else ""),
            evidence=[f"`archs.*.provided` in `{site.origin}` is empty"],
            hint="`provision list` shows the environments that `--on` can name",
        )
    if len({one.provided for one in found}) > 1:
        raise ConfigError(
            f"`--on {on}` matches the modules of several archs",
            evidence=[f"`{one.name}`: {' '.join(one.provided)}" for one in found],
            hint=add_arch([one.name for one in found]),
        )
    arch = found[0]
    if any(not MODULE.fullmatch(name) for name in arch.provided):
        raise ConfigError(f"`archs.{arch.name}.provided` has a name that is not valid", hint=f"edit `{site.origin}`")
    python, names = provided_python(site, arch), " ".join(arch.provided)
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
        site=site_for_venv(args.site, site),
        minor=python.minor,
        folders=(*python.added, *python.folders),
    )
    return Ground(site=site, beneath=beneath, provided=python)


def ground_of_venv(folder: Path) -> Ground:
    """What a venv was made on, as it is now.

    Raises:
        ConfigError: `provision venv create` did not make it.
        PlanError: the modules on which it was made do not load.
    """
    beneath = read_venv(folder)
    site = dataclasses.replace(shipped.load_site(beneath.site), root=beneath.root)
    if beneath.environment is not None:
        return Ground(site=site, beneath=beneath)
    arch = dataclasses.replace(site.arch(beneath.arch), provided=beneath.modules)
    return Ground(site=site, beneath=beneath, provided=provided_python(site, arch))


def check_venv(folder: Path) -> tuple[Contents, tuple[Check, ...]]:
    """What a venv was made on and has, and the checks.

    Raises:
        ConfigError: `provision venv create` did not make it.
    """
    ground = ground_of_venv(folder)
    site, beneath, of = ground.site, ground.beneath, ground.provided
    if beneath.environment is None:
        more: dict[str, Any] = {"installed": of and of.packages, "family": site.arch(beneath.arch).mpi.family}
        published: str | None = beneath.module
    else:
        more = {}
        published = read_store(site).pointers().get(f"{beneath.environment.split('/')[0]}/{beneath.module}")
    contents = make_own_venv.look_into(folder, ground.environ, **more)
    return contents, judge_venv(contents, published)
