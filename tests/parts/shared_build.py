"""A build of small fake steps below a root that may be shared, as a program, so that other users can run it.

    python -m parts.shared_build ROOT [--group NAME] [--admin NAME]... [--stop-after STEP] [--version VERSION]

It prints the actions of the plan's steps as JSON, or the error. With `--serve` it starts once, as one user, and reads
requests from stdin: each build is a process of its own, which has imported everything already.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from parts.profiles import profile
from parts.records import ENVIRONMENT, PROOF
from provision.backends.backend import Row
from provision.errors import ProvisionError
from provision.machine.build.executor import Executor
from provision.machine.programs.shell import set_umask
from provision.machine.root import claims, locks
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout
from provision.model.modulefile import Modulefile
from provision.model.operation import Command, InstallWheel, KeepWheel, Publish, Remove, Seal, WriteCandidate, WriteFile
from provision.model.owners import Sharing
from provision.model.plan import Plan
from provision.planning.planner import refuse_untrusted
from provision.planning.steps import decide_steps

KEY = "horovod-key"
TIME_LIMIT_S = 120


def rows(store: Store, env: EnvironmentId) -> tuple[Row, ...]:
    """A prefix with a package, a wheel that is compiled unless it is cached, and a proof."""
    prefix, build, records = store.layout.prefix(env), store.layout.build(env), store.layout.records_folder(env)
    package = f"mkdir -p {prefix}/lib && touch {prefix}/lib/package.py"
    compiled = f"mkdir -p {build}/wheel && echo compiled > {build}/wheel/horovod-1-py3-none-any.whl"
    reuse = "cached" if KEY in store.existing().wheels else None
    proof = WriteFile(path=str(records / "verdict.json"), text=json.dumps(PROOF.to_dict()))

    def sh(script: str) -> Command:
        return Command(argv=("/bin/sh", "-euc", script))

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
    with store.held(Path(store.layout.lock(env)), {"does": "builds"}, wait=False) as lock:
        existing = store.existing()
        steps = decide_steps(rows(store, env), existing, env)
        refuse_untrusted(existing, store.layout, env, steps)
        names = [step.name for step in steps]
        todo = steps[: names.index(stop_after) + 1] if stop_after else steps
        module = Modulefile(
            name=env.name,
            version=env.version,
            summary="TensorFlow",
            environment=str(env),
            prefix=str(store.layout.prefix(env)),
            modules=(),
            prepend=(),
            environ=(),
            facts=(),
        )
        plan = Plan(
            site="local",
            stack="tensorflow-2.15.1",
            environment=env,
            prefix=str(store.layout.prefix(env)),
            identity={},
            modulefile=module,
            abi_key=None,
            not_fetched=(),
            steps=todo,
        )
        environ = {"PATH": os.environ["PATH"]}
        Executor(
            plan=plan, site=profile("local"), store=store, environ=environ, listen=lambda event: None, lock=lock
        ).run()
    return {step.name: step.action for step in todo}


def serve() -> int:
    """Build for each line of stdin, `{"words": …, "umask": …}`, and print what the build printed, as one line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        build(Store(Layout(PurePosixPath(folder, "root"))), ENVIRONMENT)  # reads and compiles what every build needs
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if not child:
                signal.alarm(TIME_LIMIT_S)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.umask(request["umask"])
                code = 1
                try:
                    code = main(request["words"])
                except BaseException:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        print(json.dumps(texts), flush=True)
    return 0


class Builds:
    """The builds of one user, which `--serve` makes."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [*argv, sys.executable, "-m", "parts.shared_build", "--serve"],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, umask: int) -> tuple[str, str]:
        """The stdout and stderr of a build with these words on its command line."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"words": words, "umask": umask}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process that builds has ended"
        stdout, stderr = json.loads(line)
        return stdout, stderr

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def main(words: Sequence[str]) -> int:
    """Build as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--group")
    parser.add_argument("--admin", action="append", default=[])
    parser.add_argument("--stop-after")
    parser.add_argument("--version", default=ENVIRONMENT.version)
    args = parser.parse_args(words)
    set_umask()
    claims.NONSENSE_S, locks.POLL_S = 0.1, 0.02
    sharing = Sharing(group=args.group, admins=tuple(args.admin), origin="the-profile.toml")
    store = Store(Layout(PurePosixPath(args.root)), sharing)
    try:
        print(json.dumps(build(store, dataclasses.replace(ENVIRONMENT, version=args.version), args.stop_after)))
    except ProvisionError as error:
        print(json.dumps(error.to_dict()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["--serve"] else main(sys.argv[1:]))
