"""A site: one cluster as `sites/<site>.toml` describes it, with its archs, module system and scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError
from provision.profile.arch import Arch, read_arch
from provision.profile.container import RUNTIMES, Container, Runtime, read_container
from provision.profile.files import Files, read_files
from provision.profile.launcher import Launcher
from provision.profile.module_system import ModuleSystem, read_module_system
from provision.profile.network import Network, read_network
from provision.profile.patterns import NAME
from provision.profile.provenance import DATE, Source, read_sources, walk
from provision.profile.reader import VARIABLE, Faults, Reader
from provision.profile.scheduler import Scheduler, read_scheduler
from provision.profile.strategy import PLUGINS, Strategy, StrategyName, read_strategies
from provision.wording import nearest, nearest_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One cluster. `root` is where everything is built; `origin` is the file that says all this, `typed` what
    names it on a command line. `retired` is the date since which there is no such cluster. `runtimes` are the ways to
    run TensorFlow there, the usual one first: our environment, the site's own modules, a container.
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
    variables: tuple[str, ...] = ()
    """The `${VARIABLES}` that the file takes from the environment of whoever reads it; not those that modules set."""

    def launcher_to_node(self, arch: Arch) -> Launcher | None:
        """What starts a program on a node of the arch, if a job's script runs on another one; None: the script is there."""
        return arch.launcher if self.scheduler.script_on == "service-node" else None

    def strategy(self, name: StrategyName) -> Strategy:
        """What the site says of a strategy; one that it says nothing of is supported, a plug-in is absent."""
        silent = Strategy(name=name, status="absent" if name in PLUGINS else "supported", note=None)
        return next((one for one in self.strategies if one.name == name), silent)

    def source(self, path: str) -> Source | None:
        """Where the value at this key path came from, if the file says it: the source that names it most exactly."""
        covering = [source for source in self.sources if source.covers(path)]
        return max(covering, key=lambda source: source.nearness(path), default=None)

    def arch(self, name: str | None) -> Arch:
        """The arch called `name`, or the only one there is.

        Raises:
            ConfigError: no such arch, or several and none named; the known ones are listed.
        """
        known = [arch.name for arch in self.archs]
        listing = ", ".join(f"`{one}`" for one in known)
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
            evidence=[f"known archs: {listing}", f"described in: {self.origin}"],
            kind="unknown-arch",
            hint=f"`--arch {near}`" if near else f"`provision site show {self.typed}`",
            correction=(name, near) if near else None,
        )


BLANK = "?"


def refuse_blanks(data: Mapping[str, Any], origin: str) -> None:
    """Raise for a profile that is still to be filled in: a value `"?"` is a question to the person who knows the site.

    Raises:
        ConfigError: every blank, under its key path.
    """
    blank = [path for path, value in walk(data) if value == BLANK or (isinstance(value, list) and BLANK in value)]
    if blank:
        count = "1 value" if len(blank) == 1 else f"{len(blank)} values"
        raise ConfigError(
            f"`{origin}` leaves {count} to be filled in",
            evidence=[f'{path}: is "{BLANK}"' for path in blank],
            hint="`provision site new SITE` copies it, fills in what this machine tells and asks for the rest",
        )


def _variables(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The `${VARIABLES}` of a parsed file, except those of an arch's CUDA and NCCL, which its modules set."""
    found: dict[str, None] = {}
    for path, value in walk(data):
        if path.endswith((".gpu.cuda_home", ".gpu.nccl_home")):
            continue
        for text in value if isinstance(value, list) else [value]:
            found |= dict.fromkeys(VARIABLE.findall(str(text)))
    return tuple(found)


def read_site(data: Mapping[str, Any], origin: str, environ: Mapping[str, str], typed: str | None = None) -> Site:
    """The site that a parsed `sites/<site>.toml` describes; `environ` fills its `${VARIABLES}`.

    Raises:
        ConfigError: with every fault of the file, each under its key path.
    """
    refuse_blanks(data, origin)
    faults = Faults(origin)
    top = Reader(data, faults, environ=environ)
    name, title = top.text("name", pattern=NAME), top.text("title", "")
    root, stack = top.text("root", expand=True), top.text("stack", pattern=NAME)
    modules, scheduler = read_module_system(top.table("modules")), read_scheduler(top.table("scheduler"))
    archs = top.table("archs", required=True)
    site = Site(
        name=name,
        title=title,
        origin=origin,
        typed=typed or str(data.get("name", origin)),
        root=root,
        stack=stack,
        modules=modules,
        scheduler=scheduler,
        archs=tuple(read_arch(name, archs, scheduler.name) for name in archs.names()),
        retired=top.optional("retired", pattern=DATE),
        network=read_network(top.table("network")),
        files=read_files(top.table("files")),
        runtimes=top.texts("runtimes", choices=RUNTIMES) or ("venv",),  # type: ignore[arg-type]
        container=read_container(top.table("container")),
        strategies=read_strategies(top.table("strategies")),
        sources=read_sources(top.table("sources"), data),
        variables=_variables(data),
    )
    if "container" in site.runtimes and site.container is None:
        top.fault("container", "missing; `runtimes` names `container`, and this table says which and how")
    if data.get("archs") == {}:
        top.fault("archs", "describes no arch")
    for arch in site.archs:
        if scheduler.name != "none" and arch.target == "native":
            faults.add(
                f"archs.{arch.name}.target", '"native" is for machines without a scheduler: name the nodes\' CPU'
            )
        if modules.name == "none" and arch.modules:
            faults.add(f"archs.{arch.name}.modules", 'names modules, but `modules.system` is "none"')
    top.done()
    faults.check(hint=f"edit `{origin}`")
    return site
