"""A site: one cluster with its archs, module system and scheduler, as its profile `sites/<site>.toml` describes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.errors import ConfigError
from provision.profile.absolute import refuse_long, refuse_relative, refuse_separators
from provision.profile.arch import Arch, read_arch
from provision.profile.container import RUNTIMES, Container, Runtime, read_container
from provision.profile.files import Files, read_files
from provision.profile.hooks import Hooks, read_hooks
from provision.profile.launcher import Launcher
from provision.profile.module_system import ModuleSystem, read_module_system
from provision.profile.network import Network, read_network
from provision.profile.patterns import NAME, form
from provision.profile.provenance import DATE, Source, nearest_source, read_sources, walk
from provision.profile.reader import VARIABLE, Faults, Reader
from provision.profile.scheduler import Scheduler, read_scheduler
from provision.profile.strategy import PLUGINS, Strategy, StrategyName, read_strategies
from provision.wording import nearest, nearest_name

SUPPORT = form(r"[A-Za-z0-9][A-Za-z0-9@._~:/?=&%+-]*", "of a mail address or a web page, such as `help@site.example`")


def retirement(date: str) -> str:
    """When a cluster was switched off, in words: `retired in 2023`, `retired on 2023-12-31`."""
    return f"retired {'on' if len(date) > len('YYYY-MM') else 'in'} {date}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One cluster, as its profile describes it.

    Everything is built below `root`. `origin` is the path of the profile, `typed` the site's name as a word of a command line.
    `retired` is the date on which the cluster was switched off. `runtimes` are the ways to run TensorFlow, the default
    first: our environment, the site's own modules, a container.
    """

    name: str
    title: str
    origin: str
    typed: str
    root: str
    stack: str
    modules: ModuleSystem
    scheduler: Scheduler
    archs: tuple[Arch, ...]
    retired: str | None
    network: Network
    files: Files
    runtimes: tuple[Runtime, ...]
    container: Container | None
    strategies: tuple[Strategy, ...]
    sources: tuple[Source, ...]
    hooks: Hooks = field(default_factory=Hooks)
    variables: tuple[str, ...] = ()
    """The `${VARIABLES}` that the profile takes from the environment of the command; not those that modules set."""
    support: str | None = None
    """The mail address or web page at which users of the site get help."""

    @property
    def retirement(self) -> str:
        """When the cluster was switched off, in words: `retired in 2023`; empty if it was not."""
        return retirement(self.retired) if self.retired else ""

    def launcher_to_node(self, arch: Arch) -> Launcher | None:
        """What starts a program on a node of the arch, if a job's script runs on another one; None: the script is there."""
        return arch.launcher if self.scheduler.script_on == "service-node" else None

    def strategy(self, name: StrategyName) -> Strategy:
        """The site's entry for a strategy. Without an entry, a strategy is supported and a plug-in is absent."""
        default = Strategy(name=name, status="absent" if name in PLUGINS else "supported", note=None)
        return next((strategy for strategy in self.strategies if strategy.name == name), default)

    def source(self, path: str) -> Source | None:
        """The source of the value at this key path, if the profile names one; of several, the most exact."""
        return nearest_source(path, self.sources)

    def arch(self, name: str | None) -> Arch:
        """The arch called `name`; without a name, the site's only arch.

        Raises:
            ConfigError: the site has no such arch, or has several and none is named; the error lists them.
        """
        known = [arch.name for arch in self.archs]
        listing = ", ".join(f"`{arch}`" for arch in known)
        if name is None:
            if len(self.archs) == 1:
                return self.archs[0]
            raise ConfigError(
                f"site `{self.name}` has several archs: {listing}",
                hint=f"add `--arch {known[0]}`",
                kind="ambiguous-arch",
            )
        for arch in self.archs:
            if arch.name == name:
                return arch
        near = nearest_name(name, known)
        raise ConfigError(
            f"site `{self.name}` has no arch `{name}`{nearest(name, known)}",
            evidence=[f"known archs: {listing}", f"profile: {self.origin}"],
            kind="unknown-arch",
            hint=f"`--arch {near}`" if near else f"`provision site show {self.typed}`",
            correction=(name, near) if near else None,
        )

    def arch_built_as(self, below: str) -> Arch | None:
        """The arch of environments with `below` in their names, which for a `native` arch is the CPU that built them.

        None if the profile has no such arch any more.
        """
        native = next((arch for arch in self.archs if arch.target == "native"), None)
        return next((arch for arch in self.archs if arch.name == below and arch.target != "native"), native)


BLANK = "?"


def blank_paths(data: Mapping[str, Any]) -> list[str]:
    """The key paths of the values `"?"`, which a person who knows the site must fill in."""
    return [path for path, value in walk(data) if value == BLANK or (isinstance(value, list) and BLANK in value)]


def refuse_blanks(data: Mapping[str, Any], origin: str, hint: str | None = None) -> None:
    """Refuse a profile with blanks; `hint` is the command that asks for them.

    Raises:
        ConfigError: the profile has blanks; the error lists the key path of each.
    """
    blank = blank_paths(data)
    if blank:
        count = "1 value" if len(blank) == 1 else f"{len(blank)} values"
        raise ConfigError(
            f"`{origin}` has {count} to fill in",
            evidence=[f'{path}: is "{BLANK}"' for path in blank],
            hint=hint or f"edit `{origin}`",
        )


def _variables(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The `${VARIABLES}` of a parsed profile, except those of CUDA and NCCL, which the arch's modules set."""
    names: dict[str, None] = {}
    for path, value in walk(data):
        if path.endswith((".gpu.cuda_home", ".gpu.nccl_home")):
            continue
        for text in value if isinstance(value, list) else [value]:
            names |= dict.fromkeys(VARIABLE.findall(str(text)))
    return tuple(names)


def read_site(data: Mapping[str, Any], origin: str, environ: Mapping[str, str], typed: str | None = None) -> Site:
    """Read a parsed profile `sites/<site>.toml`; `environ` replaces its `${VARIABLES}`.

    Raises:
        ConfigError: the profile has faults; the error lists each with its key path.
    """
    refuse_blanks(data, origin)
    faults = Faults(origin)
    site = _read(data, origin, environ, typed, faults)
    faults.check(hint=f"edit `{origin}`")
    return site


def find_faults(data: Mapping[str, Any], origin: str, environ: Mapping[str, str]) -> Faults:
    """The faults of a parsed profile, of which each blank is one."""
    faults = Faults(origin)
    _read(data, origin, environ, None, faults)
    return faults


def _read(data: Mapping[str, Any], origin: str, environ: Mapping[str, str], typed: str | None, faults: Faults) -> Site:
    top = Reader(data, faults, environ=environ)
    top.optional("extends", pattern=NAME)  # it is joined already
    name, title = top.text("name", pattern=NAME), top.text("title", "")
    root, stack = top.text("root", expand=True), top.text("stack", pattern=NAME)
    modules, scheduler = read_module_system(top.table("modules")), read_scheduler(top.table("scheduler"))
    archs = top.table("archs", required=True)
    site = Site(
        name=name,
        title=title,
        origin=origin,
        typed=shlex.quote(typed or str(data.get("name", origin))),
        root=root,
        stack=stack,
        modules=modules,
        scheduler=scheduler,
        archs=tuple(read_arch(name, archs, scheduler.name) for name in archs.names(pattern=NAME, what="an arch")),
        retired=top.optional("retired", pattern=DATE),
        support=top.optional("support", pattern=SUPPORT),
        network=read_network(top.table("network")),
        files=read_files(top.table("files")),
        hooks=read_hooks(top.table("hooks")),
        runtimes=top.choices("runtimes", RUNTIMES) or ("venv",),
        container=read_container(top.table("container")),
        strategies=read_strategies(top.table("strategies")),
        sources=read_sources(top.table("sources"), data),
        variables=_variables(data),
    )
    if "container" in site.runtimes and site.container is None:
        top.fault("container", "missing; `runtimes` contains `container`, and this table describes it")
    if data.get("archs") == {}:
        top.fault("archs", "contains no arch")
    for arch in site.archs:
        if scheduler.name != "none" and arch.target == "native":
            faults.add(
                f"archs.{arch.name}.target",
                '"native" is only for machines without a scheduler; name the CPU of the nodes',
            )
        if modules.name == "none" and arch.modules:
            faults.add(f"archs.{arch.name}.modules", 'lists modules, but `modules.system` is "none"')
    refuse_relative(_paths(site), _programs(site), faults)
    refuse_separators(site.root, faults)
    refuse_long((*_paths(site), *_programs(site)), faults)
    top.done()
    return site


def _paths(site: Site) -> Iterator[tuple[str, str | None]]:
    yield "root", site.root
    yield "modules.init", site.modules.init
    for index, path in enumerate(site.modules.path):
        yield f"modules.path[{index}]", path
    yield "files.scratch", site.files.scratch
    yield "files.project", site.files.project
    yield "files.temporary", site.files.temporary
    if site.container:
        yield "container.overlay", site.container.overlay
        yield "container.setup", site.container.setup
        for template in site.container.overlay_templates:
            yield "container.overlay_templates", template.path


def _programs(site: Site) -> Iterator[tuple[str, str | None]]:
    for arch in site.archs:
        yield f"archs.{arch.name}.python", arch.python
        yield f"archs.{arch.name}.compiler.cxx", arch.compiler.cxx
        yield f"archs.{arch.name}.compiler.cc", arch.compiler.cc
        yield f"archs.{arch.name}.mpi.cxx", arch.mpi.cxx
