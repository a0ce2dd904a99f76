"""What a build is of: the site, arch and stack that the options name, read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.environments import read_store
from provision.commands.shared.outcome import Args
from provision.errors import StoreError, raise_faults
from provision.knowledge.targets import is_foreign, missing_features, require_known_target
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.root.store import Store
from provision.model.check import Check
from provision.model.facts import Facts
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan
from provision.model.record import backend_of, expected_seconds
from provision.model.request import Request
from provision.planning.preflight import Space
from provision.profile.arch import Arch
from provision.profile.choices import BackendName
from provision.profile.site import Site
from provision.profile.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the options name, read.

    Most verbs that read it neither look at this machine nor plan: the methods that do load what they need.
    """

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
        return self.site.modules.name == "none" or is_file(self.site.modules.init or "")

    def observe(self) -> Facts:
        """The facts of this machine."""
        from provision.machine.root.observe import observe

        return observe(self.site, self.arch, self.stack, self.store)

    def plan(self, request: Request, facts: Facts) -> Plan:
        """The plan for this request, given what is below the root."""
        from provision.machine.root.observe import existing
        from provision.planning.planner import make_plan

        return make_plan(request, facts, existing(self.store, self.stack.module))

    def own_files(self, typed_stack: str | None) -> tuple[str, ...]:
        """The paths of its files that do not come with the tool; `typed_stack` is the value of `--stack`."""
        mpi = self.arch.mpi.requirements
        locks = [self.stack.name, *([mpi] if mpi else []), *(["build"] if self.stack.from_source else [])]
        return shipped.own_files(self.site, typed_stack or self.stack.name, locks, self.stack.horovod)

    def expected_seconds(self, plan: Plan) -> dict[str, float]:
        """The seconds that the plan's steps took in earlier builds of the stack by its backend; empty before the first."""
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
        from provision.planning.preflight import refuse_runtime

        refuse_runtime(self.site)
        raise_faults(facts.faults)
        assert facts.python is not None  # a fault says so otherwise
        return self.request_for(facts.python.minor)

    def request_for(self, minor: str) -> Request:
        """The request, with the locks for this Python minor version."""
        from provision.machine.files.tables import advisories_line

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
            build_lock=shipped.load_lock("build", minor) if self.stack.from_source else None,
            patches=shipped.load_patches(self.stack.horovod) if self.stack.horovod else (),
            programs_folder=str(shipped.PACKAGE / "proof" / "programs"),
            minor=minor,
            publish=self.publish,
            rebuild=self.rebuild,
            advisories=f"{advisories_line((pin.name, pin.version) for pin in pins)} (when this was built)",
        )

    def check_node(self, facts: Facts) -> tuple[Check, ...]:
        """What was seen on this node for a build."""
        from provision.machine.files.tables import read_combinations
        from provision.machine.probes.look_around import look_around
        from provision.planning.node_checks import check_node

        wanted = facts.target_of(self.arch.target)
        runs_here = not is_foreign(wanted, facts.cpu.target) and not missing_features(wanted, facts.cpu.features)
        around = look_around(facts, self.store.root)
        return check_node(self.arch, self.stack, facts, around, read_combinations(), runs_here=runs_here)

    def replaced_line(self, plan: Plan, request: Request) -> str | None:
        """What users of the module get now, and what differs in the plan: `2.21.0-c99040e8f8: keras 3.14.0 to 3.15.1`.

        The versions are compared with those of the plan's locks. None if nothing is replaced.
        """
        if plan.replaces is None:
            return None
        from provision.machine.probes.installed_packages import installed_versions
        from provision.planning.publication import differences, in_short, planned_versions, short

        try:
            record = self.store.record(EnvironmentId.parse(plan.replaces))
        except (StoreError, ValueError):
            record = None
        if record is None:
            return f"{short(plan.replaces)}, whose record cannot be read"
        wanted = planned_versions(request.pins, plan.identity)
        common = {name: version for name, version in installed_versions(Path(record.prefix)) if name in wanted}
        lines = differences(common, wanted, (record.identity, plan.identity))
        return f"{short(plan.replaces)}: {in_short(lines) or 'the same versions'}"


def describe_own_files(paths: tuple[str, ...]) -> str:
    """Which files do not come with the tool, as a phrase."""
    if not paths:
        return "only files that come with the tool"
    return f"{', '.join(f'`{path}`' for path in paths)}; the other files come with the tool"


def read_target(args: Args, *, unfinished: bool = False) -> Target:
    """What `--site`, `--arch`, `--stack` and `--backend` name; `unfinished`: the profile of the site may have blanks.

    Raises:
        ConfigError: one of them does not exist, or its file has faults.
    """
    return make_target(shipped.load_site(args.site, unfinished=unfinished), args.arch, args.stack, args.backend)


def make_target(site: Site, arch: str | None, stack: str | None, backend: BackendName | None = None) -> Target:
    """The target of these names at a site; a stack that is not named is the arch's, or else the site's.

    `backend` replaces that of the stack.
    """
    store = read_store(site)
    site = dataclasses.replace(site, root=str(store.root))
    found = site.arch(arch)
    name = stack or found.stack or site.stack
    wish = shipped.load_wish(name)
    passed_over: tuple[str, ...] = ()
    if wish is None:
        chosen = shipped.load_stack(name)
    else:
        from provision.commands.shared.offer import choose_stack  # it looks at this machine and compares all stacks

        verdict, passed_over = choose_stack(site, found, wish)
        chosen = verdict.stack
    if backend is not None:
        chosen = dataclasses.replace(chosen, backend=backend)
    return Target(site=site, arch=found, stack=chosen, store=store, passed_over=passed_over)
