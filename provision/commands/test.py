"""`provision test ENV`: prove a published environment again, through its published module: after an upgrade of the site."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from provision.commands import Outcome, add_site, find_environment, read_store
from provision.console import listener
from provision.errors import ConfigError, PlanError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which environment."""
    parser.add_argument(
        "environment", help="its name, the beginning of its fingerprint, or the module that points to it"
    )
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="the numerical proof: gradients, weights, callbacks, checkpoints (minutes)",
    )
    add_site(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Load the module, train, judge; the verdict is kept in the environment's `.provision/tests/`."""
    from provision import shipped
    from provision.proof import smoke_test
    from provision.schedulers import dialect
    from provision.smoke_test import Ranks, loaded_environment, summary

    site = shipped.load_site(args.site)
    store = read_store(site)
    env = find_environment(store, args.environment)
    record = store.record(env)
    if record is None or store.pointers().get(f"{env.arch}/{env.name}/{env.version}") != str(env):
        raise PlanError(f"{env} is not published, no module loads it", hint="`provision build` proves and publishes")
    if site.scheduler.name != "none" and not os.environ.get(dialect(site.scheduler.name).JOB_ID):
        raise PlanError("ranks are started inside a job, and this is none", hint="`salloc`, then the same command")
    arch = next((one for one in site.archs if one.name == env.arch or one.target == "native"), None)
    if arch is None:
        raise ConfigError(
            f"site `{site.name}` does not describe the arch `{env.arch}` any more", hint=f"edit `{site.origin}`"
        )
    stack = shipped.load_stack(record["stack"])
    smoke = smoke_test(site, arch, stack, str(shipped.PACKAGE / "smoke"), record["prefix"])
    story = Path(store.layout.story(env))
    into = story / "tests" / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    into.mkdir(parents=True)
    log, kind = into / "smoke.log", "lua" if site.modules.name == "lmod" else "tcl"
    modulepath = Path(store.layout.modules(env.arch)) / kind
    environ = loaded_environment(site.modules, modulepath, record["module"], story / "activate.sh", log)
    with listener() as listen:
        ranks = Ranks(store=store, env=env, smoke=smoke, environ=environ, log=log, listen=listen, into=into)
        proof = ranks.prove_numbers() if args.thorough else ranks.prove()
    if args.thorough:
        checks = proof.verdict.checks
        skipped = sum(check.message.startswith("skipped") for check in checks)
        told = (
            f"{len(checks) - skipped} checks on {smoke.processes} ranks, {skipped} skipped, in {proof.seconds:.0f} s\n"
        )
        told += "\n".join(f"  {check.name}: {check.message}" for check in checks)
    else:
        told = summary(proof.to_dict())
    result = {"environment": str(env), "verdict": proof.to_dict(), "folder": str(into)}
    return Outcome(text=f"passed: {told}", result=result)
