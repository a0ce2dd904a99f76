"""A build of small fake steps below a root that may be shared, as a program, so that other users can run it.

    python -m parts.shared_build ROOT [--group NAME] [--stop-after STEP] [--version VERSION]

It prints the actions of the plan's steps as JSON, or the error.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from parts.forks import Forks
from parts.plans import executor_of, plan_of, sh
from parts.records import ENVIRONMENT, PROOF
from provision.backends.backend import Row
from provision.errors import ProvisionError
from provision.machine.programs.shell import set_umask
from provision.machine.root.observe import existing
from provision.machine.root.store import Store
from provision.machine.sharing import locks
from provision.model.layout import EnvironmentId, Layout
from provision.model.operation import InstallWheel, KeepWheel, Publish, Remove, Seal, WriteCandidate, WriteFile
from provision.model.trust import Sharing
from provision.planning.planner import decide_steps

KEY = "horovod-key"


def rows(store: Store, env: EnvironmentId) -> tuple[Row, ...]:
    """A prefix with a package, a wheel that is compiled unless it is cached, and a proof."""
    prefix, build, records = store.layout.prefix(env), store.layout.build(env), store.layout.records_folder(env)
    package = f"mkdir -p {prefix}/lib && touch {prefix}/lib/package.py"
    compiled = f"mkdir -p {build}/wheel && echo compiled > {build}/wheel/horovod-1-py3-none-any.whl"
    reuse = "cached" if KEY in existing(store).wheels else None
    proof = WriteFile(path=str(records / "verdict.json"), text=json.dumps(PROOF.to_dict()))

    return (
        Row(name="create", title="", reason="", operations=(Remove(path=str(prefix)), sh(f"mkdir {prefix}"))),
        Row(name="install", title="", reason="", operations=(sh(package),), starts_over=True),
        Row(
            name="compile",
            title="",
            reason="",
            operations=()
            if reuse
            else (Remove(path=str(build)), sh(compiled), KeepWheel(folder=f"{build}/wheel", key=KEY, abi={})),
            receipt="horovod",
            reuse=reuse,
        ),
        Row(name="horovod", title="", reason="", operations=(InstallWheel(key=KEY, command=sh('test -s "$0"')),)),
        Row(name="candidate", title="", reason="", operations=(WriteCandidate(),)),
        Row(name="proof", title="", reason="", operations=(proof,)),
        Row(name="publish", title="", reason="", operations=(Seal(), Publish())),
    )


def build(store: Store, env: EnvironmentId, stop_after: str | None = None) -> dict[str, str]:
    """Plan and carry out; the action of each step."""
    with store.held(Path(store.layout.lock(env)), {"does": "builds"}) as lock:
        there = existing(store)
        steps = decide_steps(rows(store, env), there, env)
        names = [step.name for step in steps]
        todo = steps[: names.index(stop_after) + 1] if stop_after else steps
        executor_of(store, plan_of(store, env, todo), lock).run()
    return {step.name: step.action for step in todo}


def builds_of(argv: Sequence[str], environ: Mapping[str, str]) -> Forks:
    """What builds for one user, who is chosen by the words before the program."""
    return Forks(argv, environ, "from parts.shared_build import main, warm_up; warm_up()")


def warm_up() -> None:
    """Read and compile what every build needs."""
    with tempfile.TemporaryDirectory() as folder:
        build(Store(Layout(PurePosixPath(folder, "root"))), ENVIRONMENT)


def main(words: Sequence[str]) -> int:
    """Build as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--group")
    parser.add_argument("--stop-after")
    parser.add_argument("--version", default=ENVIRONMENT.version)
    args = parser.parse_args(words)
    set_umask()
    locks.NONSENSE_S, locks.POLL_S = 0.1, 0.02
    sharing = Sharing(group=args.group, origin="the-profile.toml")
    store = Store(Layout(PurePosixPath(args.root)), sharing)
    try:
        print(json.dumps(build(store, dataclasses.replace(ENVIRONMENT, version=args.version), args.stop_after)))
    except ProvisionError as error:
        print(json.dumps(error.to_dict()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
