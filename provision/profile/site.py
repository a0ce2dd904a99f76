"""A site: one cluster with its archs, module system and scheduler, as its profile `sites/<site>.toml` describes it.

Its small tables are here too: its file systems, and how its nodes reach the internet.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from provision.errors import ConfigError
from provision.knowledge.secret_names import holds_user
from provision.profile.absolute import NodePath, Root
from provision.profile.arch import Arch, Launcher
from provision.profile.container import Container, Runtime
from provision.profile.module_system import ModuleSystem
from provision.profile.patterns import NAME, Form, Name
from provision.profile.provenance import SOURCES, Date, Source, is_below, nearest_source, walk
from provision.profile.reader import VARIABLE, Count, Faults, FormRule, Named, Reader, Via
from provision.profile.scheduler import Scheduler
from provision.profile.strategy import PLUGINS, STRATEGIES, Strategy, StrategyName
from provision.wording import add_arch, count, nearest, nearest_name

SUPPORT = Form(r"[A-Za-z0-9][A-Za-z0-9@._~:/?=&%+-]*", "of a mail address or a web page, such as `help@site.example`")
Support = Annotated[str, SUPPORT]
# Names of users and groups, as useradd(8) and directories of large sites allow them.
USER = Form(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
User = Annotated[str, USER]
Umask = Annotated[str, Form(r"0?[0-7]{3}", "of a umask, such as `022`")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The folders of a site. `root_writable`: which nodes can write below the site's root, which holds the software.

    `scratch_deletes` are the files that the site deletes in `scratch`, as words for a sentence.
    `scratch` (data and output of jobs) and `temporary` (`TMPDIR`) are paths with `$VARIABLES` that the node expands, and so is
    `project` (what a project keeps), in which `$PROJECT` is the name of the project.
    `group` is the Unix group whose members write below the root, and `readers` the one whose members may enter it (None: every
    user).
    `burst_buffer` is where jobs on `burst_buffer_from` or more nodes stage their data (0: no number is known).
    """

    root_writable: Literal["everywhere", "login", "compute"] = "everywhere"
    scratch: NodePath | None = None
    temporary: NodePath | None = None
    umask: Umask = "022"
    burst_buffer: Literal["none", "datawarp"] = "none"
    burst_buffer_from: Count = 0
    group: User | None = None
    readers: User | None = None
    project: NodePath | None = None
    scratch_deletes: str | None = None

    def add_faults(self, table: Reader) -> None:
        """Record what is said of a burst buffer or a folder that the site does not have."""
        if self.burst_buffer_from and self.burst_buffer == "none":
            table.fault("burst_buffer_from", 'needs a burst buffer, but `files.burst_buffer` is "none"')
        if self.scratch_deletes and self.scratch is None:
            table.fault("scratch_deletes", "is about `files.scratch`, which is missing")

    def needs_burst_buffer(self, nodes: int) -> bool:
        """Whether a job on this many nodes should read its data from the burst buffer."""
        return 0 < self.burst_buffer_from <= nodes


Reach = Literal["yes", "no", "proxy"]
HOST = Form(r"[A-Za-z0-9][A-Za-z0-9._-]*", "of a host, such as `login.site.example`")
Host = Annotated[str, HOST]
PROXY = Form(r"https?://[A-Za-z0-9._-]+(:[0-9]+)?/?")


def not_a_proxy(address: str) -> str | None:
    """What is wrong with the address of a proxy; it may have a password, so it is not repeated."""
    user = "; all users can read a profile, so set a user and a password in `https_proxy` of your shell"
    wrong = f"is not an address like http://proxy.example.org:3128{user if holds_user(address) else ''}"
    return None if PROXY.fullmatch(address) else wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Whether the login nodes and the compute nodes reach the internet: directly, not at all, or through `proxy`.

    `host` is the public name of the login node; `download_node` is the host for downloads if the site has a special one, and
    `data_host` the public name of the host for copies from and to other machines.
    """

    login: Reach = "yes"
    compute: Reach = "yes"
    proxy: Annotated[str, FormRule(not_a_proxy)] | None = None
    download_node: Host | None = None
    host: Host | None = None
    data_host: Host | None = None

    def add_faults(self, table: Reader) -> None:
        """Record that nodes use a proxy whose address is missing."""
        if "proxy" in (self.login, self.compute) and self.proxy is None:
            table.missing("proxy", "the address of the proxy through which nodes reach the network")

    @property
    def where_to_download(self) -> str | None:
        """The host on which to download what a job needs, as a phrase to follow `on`; None if no node has a network."""
        if self.download_node is not None:
            return f"{self.download_node} (`ssh {self.download_node}`)"
        return None if self.login == "no" else "a login node"

    @property
    def environ(self) -> tuple[tuple[str, str], ...]:
        """The variables that name the proxy: curl and Python read the lower-case ones, some programs only the upper-case ones."""
        if self.proxy is None:
            return ()
        return tuple((name, self.proxy) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"))


def retirement(date: str) -> str:
    """When a cluster was switched off, in words: `retired in 2023`, `retired on 2023-12-31`."""
    return f"retired {'on' if len(date) > len('YYYY-MM') else 'in'} {date}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Commands that bash runs after something was done (`[hooks]`).

    `after_publish` runs when users can load something else: it can refresh the cache of Lmod.
    """

    after_publish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One cluster, as its profile describes it.

    Everything is built below `root`. `origin` is the path of the profile, `typed` the site's name as a word of a command line.
    `retired` is the date on which the cluster was switched off. `runtimes` are the ways to run TensorFlow, the default
    first: our environment, the site's own modules, a container.
    """

    name: Name
    title: str = ""
    origin: str
    typed: str
    root: Root
    stack: Name
    modules: ModuleSystem
    scheduler: Scheduler
    archs: Annotated[tuple[Arch, ...], Named("an arch", NAME)]
    retired: Date | None = None
    network: Network
    files: Files
    runtimes: Annotated[tuple[Runtime, ...], Via(tuple[Runtime, ...], lambda given: given or ("venv",))] = ("venv",)
    container: Container | None = None
    strategies: Annotated[tuple[Strategy, ...], Named("strategy", known=(*STRATEGIES, *PLUGINS))] = ()
    sources: SOURCES = ()
    hooks: Hooks
    variables: tuple[str, ...] = ()
    """The `${VARIABLES}` that the profile takes from the environment of the command; not those that modules set."""
    support: Support | None = None
    """The mail address or web page at which users of the site get help."""

    def add_faults(self, table: Reader) -> None:
        """Record what contradicts another table of the profile."""
        if "container" in self.runtimes and self.container is None:
            table.fault("container", "missing; `runtimes` contains `container`, and this table describes it")
        if table.data.get("archs") == {}:
            table.fault("archs", "contains no arch")
        leaves = [path for path, _ in walk(table.data)]
        for source in self.sources:
            for index, pattern in enumerate(source.values):
                if not any(is_below(pattern, path) for path in leaves):
                    table.fault(f"sources.{source.name}.values[{index}]", f"{pattern!r} is not in this profile")
        for arch in self.archs:
            if self.scheduler.name != "none" and arch.target == "native":
                what = '"native" is only for machines without a scheduler; name the CPU of the nodes'
                table.fault(f"archs.{arch.name}.target", what)
            if self.modules.name == "none" and arch.modules:
                table.fault(f"archs.{arch.name}.modules", 'lists modules, but `modules.system` is "none"')

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
                hint=add_arch(known),
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
        raise ConfigError(
            f"`{origin}` has {count(len(blank), 'value')} to fill in",
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
    faults = Faults(origin, data, environ)
    site = _read(data, typed, faults)
    faults.check(hint=f"edit `{origin}`")
    return site


def read_unfinished(data: Mapping[str, Any], origin: str, environ: Mapping[str, str], typed: str | None = None) -> Site:
    """Read a parsed profile with blanks: texts are `?`, choices and numbers the default or the least, a CPU `native`.

    Raises:
        ConfigError: the profile has other faults; the error lists each with its key path.
    """
    blank = blank_paths(data)
    faults = Faults(origin, data, environ)
    site = _read(data, typed, faults)
    lines = zip(faults.lines, faults.found, strict=True)
    others = [line for line, (path, _, _) in lines if path.partition("[")[0] not in blank]
    if others:
        raise ConfigError(f"`{origin}` has other faults than its blanks", evidence=others, hint=f"edit `{origin}`")
    archs = []
    for arch in site.archs:
        unknown = arch.gpu is not None and BLANK in arch.gpu.capabilities
        gpu = replace(arch.gpu, capabilities=()) if arch.gpu and unknown else arch.gpu
        archs.append(replace(arch, gpu=gpu, target="native" if arch.target == BLANK else arch.target))
    return replace(site, archs=tuple(archs))


def find_faults(data: Mapping[str, Any], origin: str, environ: Mapping[str, str]) -> Faults:
    """The faults of a parsed profile, of which each blank is one."""
    faults = Faults(origin, data, environ)
    _read(data, None, faults)
    return faults


def _read(data: Mapping[str, Any], typed: str | None, faults: Faults) -> Site:
    top = Reader(data, faults)
    top.get("extends", Name | None)  # it is joined already
    typed = shlex.quote(typed or str(data.get("name", faults.origin)))
    return top.into(Site, origin=faults.origin, typed=typed, variables=_variables(data))
