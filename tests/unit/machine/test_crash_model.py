"""Random sequences of builds, kills and losses, against a small model of what users must see (hypothesis).

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
from pathlib import Path, PurePosixPath
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from parts.records import ENVIRONMENT
from parts.shared_build import build
from parts.tiny_tool import CHANGES
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout

VERSIONS = ("1.0", "2.0", "2.0b")
FUZZ = int(os.environ.get("FUZZ", "1"))


def environment(version: str) -> EnvironmentId:
    """The environment of a version; `2.0b` is another one with the module of `2.0`, and replaces it."""
    fingerprint = "b" * 10 if version.endswith("b") else ENVIRONMENT.fingerprint
    return dataclasses.replace(ENVIRONMENT, version=version.removesuffix("b"), fingerprint=fingerprint)


def build_apart(store: Store, env: EnvironmentId, kill_before: int) -> int:
    """Build in another process, which kills itself before so many changes of files; its exit code, or minus its signal."""
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
        build(store, env)
        code = 0
    os._exit(code)


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

    def teardown(self) -> None:
        """Remove the root."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(version=st.sampled_from(VERSIONS))
    def build(self, version: str) -> None:
        """Whatever was there before, a build finishes, and leaves nothing behind."""
        env = environment(version)
        assert build_apart(self.store, env, 0) == 0
        self.published[env.pointer] = str(env)
        left = [path for path in self.store.root.rglob(".*") if path.name not in (".provision", ".generations")]
        mine = [path for path in left if "envs" not in path.parts or env.fingerprint in str(path)]
        assert mine == [], "a finished build leaves nothing of killed ones"
        locks = {path.name for path in (self.store.root / "locks").iterdir()}
        others = {Path(self.store.layout.lock(environment(other))).name for other in VERSIONS if other != version}
        assert locks <= others, "a killed build of another environment may have left its lock"

    @rule(version=st.sampled_from(VERSIONS), changes=st.integers(1, 70))
    def kill(self, version: str, changes: int) -> None:
        """Users see what they saw, or, if the build was killed behind its publication, the new environment."""
        env = environment(version)
        code = build_apart(self.store, env, changes)
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

    @rule(kind=st.sampled_from(["nonsense", "folder"]), version=st.sampled_from(VERSIONS))
    def lose_the_wheel(self, kind: str, version: str) -> None:
        """Somebody removes the cached wheel."""
        shutil.rmtree(self.store.root / "wheels", ignore_errors=True)

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
    stateful_step_count=8,
    deadline=None,
    derandomize=FUZZ == 1,
    database=None,
    suppress_health_check=list(HealthCheck),
)
