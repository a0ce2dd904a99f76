"""What the options name, read: site, arch, stack, environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from provision.errors import ConfigError
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from provision.machine.root.store import Store
    from provision.model.facts import Facts
    from provision.model.layout import EnvironmentId
    from provision.model.own_venv import Beneath
    from provision.model.plan import Plan
    from provision.model.request import Request
    from provision.model.space import Space
    from provision.planning.solver import Choice, Offer
    from provision.profile.arch import Arch
    from provision.profile.site import Site
    from provision.profile.stack import BackendName, Stack
    from provision.profile.wish import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the options name, read."""

    site: Site
    arch: Arch
    stack: Stack
    store: Store
    passed_over: tuple[str, ...] = ()
    """For a stack with ranges: each newer stack that fulfils it, and why it does not work."""
    publish: bool = True
    """Whether users are to load what is built."""
    rebuild: bool = False
    """Whether to build it again, beside the one that is there."""

    @property
    def is_here(self) -> bool:
        """Whether this machine may be one of the site's: it has the module system of the site, if there is one."""
        from provision.machine.files.disk import is_file

        return self.site.modules.name == "none" or is_file(self.site.modules.init or "")

    def observe(self) -> Facts:
        """The facts of this machine."""
        from provision.machine.root.observe import observe

        return observe(self.site, self.arch, self.stack, self.store)

    def own_files(self, typed_stack: str | None) -> tuple[str, ...]:
        """The paths of its files that do not come with the tool; `typed_stack` is the value of `--stack`."""
        from provision.machine.configuration import shipped

        mpi = self.arch.mpi.requirements
        locks = [self.stack.name, *([mpi] if mpi else []), *(["build"] if self.stack.horovod else [])]
        return shipped.own_files(self.site, typed_stack or self.stack.name, locks, self.stack.horovod)

    def expected_seconds(self, plan: Plan) -> dict[str, float]:
        """The seconds that the plan's steps took in earlier builds of the stack by its backend; empty before the first."""
        from provision.model.estimate import backend_of, expected_seconds

        return expected_seconds(
            self.store.records(self.stack.module),
            stack=plan.stack,
            arch=plan.environment.arch,
            backend=backend_of(plan.identity),
        )

    def needed(self, request: Request) -> Space:
        """The space that a build of this request needs below the root."""
        from provision.machine.root.observe import needed_space

        return needed_space(self.store, request.stack, request.locks)

    def request(self, facts: Facts) -> Request:
        """The request, with the locks for the Python that was found."""
        from provision.model.problem import raise_problems
        from provision.planning.preflight import refuse_runtime

        refuse_runtime(self.site)
        raise_problems(facts.problems)
        assert facts.python is not None  # a problem says so otherwise
        return self.request_for(facts.python.minor)

    def request_for(self, minor: str) -> Request:
        """The request, with the locks for this Python minor version."""
        from provision.commands.shared.open_advisories import advisories_line
        from provision.knowledge.targets import require_known_target
        from provision.machine.configuration import shipped
        from provision.model.request import Request

        require_known_target(self.arch.target)
        mpi = self.arch.mpi.requirements
        lock, mpi_lock = shipped.load_lock(self.stack.name, minor), shipped.load_lock(mpi, minor) if mpi else None
        pins = (*lock.pins, *(mpi_lock.pins if mpi_lock else ()))
        return Request(
            site=self.site,
            arch=self.arch,
            stack=self.stack,
            lock=lock,
            mpi_lock=mpi_lock,
            build_lock=shipped.load_lock("build", minor) if self.stack.horovod else None,
            patches=shipped.load_patches(self.stack.horovod) if self.stack.horovod else (),
            programs_folder=str(shipped.PACKAGE / "proof" / "programs"),
            minor=minor,
            publish=self.publish,
            rebuild=self.rebuild,
            advisories=f"{advisories_line((pin.name, pin.version) for pin in pins)} (when this was built)",
        )


def describe_own_files(paths: tuple[str, ...]) -> str:
    """Which files do not come with the tool, as a phrase."""
    if not paths:
        return "only files that come with the tool"
    return f"{', '.join(f'`{path}`' for path in paths)}; the other files come with the tool"


def read_store(site: Site, *, lenient: bool = False) -> Store:
    """The store below the site's root. Warns if others than its admins may write it; see `Sharing` about `lenient`."""
    from provision.machine.programs.shell import absolute, expand_home
    from provision.machine.root.store import Store
    from provision.model.layout import Layout
    from provision.model.sharing import Sharing

    sharing = Sharing(
        group=site.files.group,
        readers=site.files.readers,
        admins=site.files.admins,
        origin=site.origin,
        lenient=lenient,
    )
    store = Store(Layout(PurePosixPath(absolute(expand_home(site.root)))), sharing)
    for problem in store.shared.admins.problems():
        from provision.machine.terminal.console import say

        say(f"warning: {problem.message}; {problem.hint}")
    return store


def read_target(args: argparse.Namespace, *, unfinished: bool = False) -> Target:
    """What `--site`, `--arch` and `--stack` name; `unfinished`: the profile of the site may have blanks.

    Raises:
        ConfigError: one of them does not exist, or its file has faults.
    """
    import dataclasses

    from provision.machine.configuration import shipped

    site = shipped.load_site(args.site, unfinished=unfinished)
    target = make_target(site, args.arch, args.stack, args.backend)
    return dataclasses.replace(
        target, publish=not getattr(args, "no_publish", False), rebuild=getattr(args, "rebuild", False)
    )


def make_target(site: Site, arch: str | None, stack: str | None, backend: BackendName | None = None) -> Target:
    """The target of these names at a site; a stack that is not named is the arch's, or else the site's.

    `backend` replaces that of the stack.
    """
    import dataclasses

    from provision.machine.configuration import shipped

    store = read_store(site)
    site = dataclasses.replace(site, root=str(store.root))
    found = site.arch(arch)
    name = stack or found.stack or site.stack
    wish = shipped.load_wish(name)
    choice = choose_stack(site, found, wish) if wish else None
    chosen = choice.verdict.stack if choice else shipped.load_stack(name)
    if backend is not None:
        chosen = dataclasses.replace(chosen, backend=backend)
    passed_over = choice.passed_over if choice else ()
    return Target(site=site, arch=found, stack=chosen, store=store, passed_over=passed_over)


def offer_for(site: Site, arch: Arch) -> Offer:
    """What an arch offers to a stack: this machine if it may be one of the site's, or else the profile alone."""
    from provision.machine.configuration import shipped
    from provision.machine.files.disk import is_file
    from provision.machine.probes.offer import offer_here, offer_of_profile

    if site.modules.name != "none" and not is_file(site.modules.init or ""):
        return offer_of_profile(arch)
    minors = dict.fromkeys(minor for stack in shipped.stacks_with_versions() for minor in stack.pythons)
    return offer_here(site, arch, tuple(minors))


def choose_stack(site: Site, arch: Arch, wish: Wish) -> Choice:
    """The stack that a stack with ranges means on this arch.

    Raises:
        PlanError: none works.
    """
    from provision.machine.configuration import shipped
    from provision.machine.files.tables import read_cells, read_combinations
    from provision.planning.solver import choose

    stacks = shipped.stacks_with_versions()
    return choose(wish, stacks, offer_for(site, arch), read_combinations(), read_cells())


def beneath_of(site: Site, store: Store, env: EnvironmentId, typed: str, *, retry: str) -> Beneath:
    """What a venv on a published environment needs to know of it. `typed` is the value of `--site`.

    `retry` is the command for the hint, with `%s` for the environment that is published.

    Raises:
        PlanError: it is not published.
        CommandError: its Python does not start.
    """
    from provision.errors import PlanError
    from provision.machine.install import make_own_venv
    from provision.machine.programs.shell import absolute, environ
    from provision.machine.root.completing import hint_to_complete
    from provision.model.own_venv import Beneath

    record = store.record(env)
    published = store.pointers().get(f"{env.arch}/{env.name}/{env.version}")
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
        site=absolute(typed) if "/" in typed else site.name,
        minor=minor,
        folders=folders,
    )


def arch_below(site: Site, arch: str | None) -> str | None:
    """The arch in the names of the environments of this arch: for a `native` arch, the CPU of this machine."""
    from provision.machine.probes.probe import cpu

    native = any(known.name == arch and known.target == "native" for known in site.archs)
    return cpu().target if native else arch


def describe_arch(site: Site | None, arch: str) -> str:
    """An arch in a message about environments: its name, and that in the names of its environments if it differs."""
    below = arch_below(site, arch) if site else arch
    return f"`{arch}`" if below == arch else f"`{arch}` (on this machine `{below}`)"


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
            hint=f"add `--arch {archs[0]}`" if len(archs) == len(found) else f"give a whole name: `{names[0]}`",
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


def of_other_archs(others: Sequence[EnvironmentId]) -> list[str]:
    """The evidence that an arch has no environments: those of the other archs."""
    return [f"of another arch: {env}" for env in others] or ["the site has no environments"]
