"""Random sequences of builds, publications, removals, upgrades, kills and losses, against a small model of what users must see.

The steps are those of `parts/shared_build.py`: small programs. Planner, store, locks and executor are the real ones, in processes
of their own, which send themselves SIGKILL before some change of a file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from parts.records import ENVIRONMENT
from parts.shared_build import build
from parts.tiny_tool import CHANGES
from provision.errors import ProvisionError
from provision.machine.root.checking import examine
from provision.machine.root.publishing import Publisher
from provision.machine.root.removing import Remover
from provision.machine.root.store import Store
from provision.machine.root.upgrades import Upgrades
from provision.machine.sharing.shared_root import LEFT
from provision.model.layout import EnvironmentId, Layout
from provision.planning.removal import Rules, decide
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade

VERSIONS = ("1.0", "2.0", "2.0b")
FUZZ = int(os.environ.get("FUZZ", "1"))


def environment(version: str) -> EnvironmentId:
    """The environment of a version; `2.0b` is another one with the module of `2.0`, and replaces it."""
    fingerprint = "b" * 10 if version.endswith("b") else ENVIRONMENT.fingerprint
    return dataclasses.replace(ENVIRONMENT, version=version.removesuffix("b"), fingerprint=fingerprint)


def apart(action: Callable[[], object], kill_before: int) -> int:
    """Do something in another process, which kills itself before so many changes of files; its exit code, or minus its signal.

    The code is 3 if the tool refused it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork among threads
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = kill_before

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in CHANGES:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        sys.stderr = nowhere
        sys.addaudithook(count)
        try:
            action()
            code = 0
        except ProvisionError:
            code = 3
    os._exit(code)


KILLS = st.none() | st.integers(1, 40)
"""Before which change of a file a run is killed; None: it runs to its end."""


class Crashes(RuleBasedStateMachine):
    """A root, and what users must see of it."""

    @initialize()
    def make_root(self) -> None:
        """Nothing is built."""
        memory = Path("/dev/shm")
        self.folder = Path(
            tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None, prefix="provision-test-")
        )
        self.store = Store(Layout(PurePosixPath(self.folder / "root")))
        self.published: dict[str, str] = {}
        self.pinned: set[EnvironmentId] = set()

    def teardown(self) -> None:
        """Remove the root."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(version=st.sampled_from(VERSIONS))
    def build(self, version: str) -> None:
        """Whatever was there before, a build finishes, and leaves nothing behind."""
        env = environment(version)
        assert apart(lambda: build(self.store, env), 0) == 0
        self.published[env.pointer] = str(env)
        left = [path for path in self.store.root.rglob(".*") if path.name not in (".provision", ".generations")]
        # What a killed `prune` was removing is no part of a build: the next `prune` removes the rest.
        pruned = {"envs", "build", "logs", "wheels", ".generations"}
        mine = [
            path for path in left if not pruned & set(path.parts) or f"{env.version}-{env.fingerprint}" in str(path)
        ]
        assert mine == [], "a finished build leaves nothing of killed ones"
        locks = {path.name.removesuffix(".d") for path in (self.store.root / "locks").iterdir()}
        others = {Path(self.store.layout.lock(environment(other))).name for other in VERSIONS if other != version}
        assert locks <= others, "a killed build of another environment may have left its lock"

    @rule(version=st.sampled_from(VERSIONS), changes=st.integers(1, 70))
    def kill(self, version: str, changes: int) -> None:
        """Users see what they saw, or, if the build was killed behind its publication, the new environment."""
        env = environment(version)
        code = apart(lambda: build(self.store, env), changes)
        assert code in (0, -signal.SIGKILL)
        now = self.store.pointers().get(env.pointer)
        if now == str(env):
            self.published[env.pointer] = now

    @rule(version=st.sampled_from(VERSIONS))
    def lose_the_prefix(self, version: str) -> None:
        """Somebody removes the folder of an environment that is not published."""
        env = environment(version)
        if str(env) not in self.published.values():
            shutil.rmtree(self.store.layout.prefix(env), ignore_errors=True)
            self.pinned.discard(env)

    @rule()
    def lose_the_wheel(self) -> None:
        """Somebody removes the cached wheel."""
        shutil.rmtree(self.store.root / "wheels", ignore_errors=True)

    def change(self, action: Callable[[], object], after: dict[str, str], kill: int | None) -> int:
        """Do what lets users see `after`; if it was killed, they see that or what they saw."""
        code = apart(action, kill or 0)
        now = self.store.pointers()
        assert now in ((after,) if code == 0 else (self.published,) if code == 3 else (self.published, after)), code
        assert kill is not None or code != -signal.SIGKILL
        self.published = now
        return code

    def proved(self, version: str) -> bool:
        """Whether an environment has passed its proof."""
        return self.store.record(environment(version)) is not None

    @rule(version=st.sampled_from(VERSIONS), kill=KILLS)
    def publish(self, version: str, kill: int | None) -> None:
        """What is proved can be published; what is not, is refused."""
        env, proved = environment(version), self.proved(version)
        code = self.change(
            lambda: Publisher(self.store).publish(env),
            {**self.published, env.pointer: str(env)} if proved else {},
            kill,
        )
        assert proved or code in (3, -signal.SIGKILL)

    @rule(version=st.sampled_from(VERSIONS), kill=KILLS)
    def unpublish(self, version: str, kill: int | None) -> None:
        """The module goes if it loads this environment."""
        env = environment(version)
        rest = {name: loads for name, loads in self.published.items() if loads != str(env)}
        self.change(lambda: Publisher(self.store).unpublish(env), rest, kill)

    @rule(kill=KILLS)
    def roll_back(self, kill: int | None) -> None:
        """Users see what the current generation replaced, unless something of that is gone."""
        arch, generations = ENVIRONMENT.arch, self.store.generations
        current, found = generations.current(arch), generations.read_all(arch)
        target = found[current].before if current in found else None
        after = self.published
        if target in found:
            after = {f"{arch}/{module}": loads for module, loads in found[target].modules.items()}
        self.change(lambda: Publisher(self.store).roll_back(arch, None), after, kill)

    @rule(version=st.sampled_from(VERSIONS), kill=KILLS)
    def remove(self, version: str, kill: int | None) -> None:
        """What users load and what is pinned stays; everything else goes, with one rename."""
        env = environment(version)
        prefix = Path(self.store.layout.prefix(env))
        if not prefix.exists():
            return
        stays = str(env) in self.published.values() or env in self.pinned
        code = self.change(lambda: Remover(self.store).remove(env), self.published, kill)
        assert prefix.exists() if stays else code != 0 or not prefix.exists()

    @rule(version=st.sampled_from(VERSIONS), keep=st.booleans())
    def pin(self, version: str, keep: bool) -> None:
        """An admin keeps an environment, or lets it go."""
        env = environment(version)
        if Path(self.store.layout.prefix(env)).exists():
            assert apart(lambda: Remover(self.store).set_pin(env, "wanted" if keep else None), 0) == 0
            (self.pinned.add if keep else self.pinned.discard)(env)

    @rule(kill=KILLS)
    def prune(self, kill: int | None) -> None:
        """Everything goes that nobody loads or keeps."""

        def prune() -> None:
            remover = Remover(self.store)
            residents = remover.residents()
            decisions = decide(residents, Rules(keep=0, older_s=0))
            gone = [one.resident.environment for one in decisions if one.removes]
            remover.carry_out(decisions, remover.leftovers(residents, gone, 3))

        if self.change(prune, self.published, kill) == 0:
            stay = {*self.published.values(), *map(str, self.pinned)}
            assert {str(env) for env in self.store.environments()} <= stay
            assert [path for path in self.store.root.rglob(".*") if LEFT.fullmatch(path.name)] == []

    @rule(kill=KILLS)
    def upgrade(self, kill: int | None) -> None:
        """Two modules get newer environments together, or, if it was killed, when it is finished."""
        wanted = [environment("1.0"), environment("2.0b")]
        if not all(self.proved(version) for version in ("1.0", "2.0b")):
            return None
        upgrades = Upgrades(self.store, "tiny")
        loads = {env: self.published.get(env.pointer) for env in wanted}
        before = {env: EnvironmentId.parse(name) if name else None for env, name in loads.items()}
        archs = tuple(ArchUpgrade(arch=env.version, before=before[env], after=env) for env in wanted)
        upgrade = upgrades.keep(Upgrade(stack="tiny", state="building", archs=archs, locks=()), "building")
        after = {**self.published, **{env.pointer: str(env) for env in wanted}}
        code = apart(lambda: upgrades.publish(upgrade), kill or 0)
        for name, loaded in self.store.pointers().items():
            assert loaded in (self.published.get(name), after[name]), "each module is the old or the newer one"
        left = upgrades.read()
        assert left is not None
        if code and left.state == "publishing":
            assert apart(lambda: upgrades.publish(left), 0) == 0
        elif code:
            return self.see()
        assert self.store.pointers() == after
        self.published = after
        if kill is None:
            old = {env.pointer: loads[env] for env in wanted}
            assert apart(lambda: upgrades.undo(upgrade), 0) in (0, 3), "refused if the old ones are gone"
            now = self.store.pointers()
            assert now in (
                after,
                {**{n: e for n, e in after.items() if n not in old}, **{n: e for n, e in old.items() if e}},
            )
            self.published = now
        return None

    def see(self) -> None:
        """Users see what they saw: nothing was published yet."""
        assert self.store.pointers() == self.published

    @rule(version=st.sampled_from(VERSIONS))
    def verify(self, version: str) -> None:
        """Nothing is wrong with what users load."""
        env = environment(version)
        if str(env) in self.published.values():
            found = examine(self.store, env, hashes=True)
            assert [one.name for one in found.differences] == []

    @invariant()
    def users_see_whole_environments(self) -> None:
        """What is published is what the model has; each is complete, and so is its modulefile."""
        if not hasattr(self, "store"):
            return
        assert self.store.pointers() == self.published
        for name in self.published.values():
            env = EnvironmentId.parse(name)
            prefix = Path(self.store.layout.prefix(env))
            assert (prefix / "lib" / "package.py").is_file()
            record = self.store.record(env)
            assert record is not None
            assert record.verdict.verdict.passed
            module = Path(self.store.layout.modules(env.arch)) / "lua" / env.name / f"{env.version}.lua"
            assert f"`provision show {env}`" in module.read_text()


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(
    max_examples=4 * FUZZ,
    stateful_step_count=14,
    deadline=None,
    derandomize=FUZZ == 1,
    database=None,
    suppress_health_check=list(HealthCheck),
)
