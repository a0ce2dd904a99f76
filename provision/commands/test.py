"""`provision test ENV`: run the proof of a published environment again, for example after an upgrade of the site.

`--provided` proves the TensorFlow that the site's own modules provide.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.options import add_environment, add_target
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import find_environment, make_target, read_store
from provision.errors import ConfigError, PlanError
from provision.machine.programs.shell import environ, which
from provision.machine.terminal.console import listener, shown_as_step

if TYPE_CHECKING:
    from provision.machine.build.ranks import Ranks
    from provision.model.event import Listener
    from provision.profile.site import Site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the environment."""
    add_environment(parser, optional=True)
    parser.add_argument(
        "--provided",
        action="store_true",
        help="test the modules that the site itself provides for `--arch`, with the proof of `--stack`",
    )
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="run the numerical proof, which takes minutes: gradients, weights, callbacks, checkpoints",
    )
    add_target(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Load the module, train and judge; the verdict is written to the environment's `.provision/tests/`."""
    from provision.machine.configuration import shipped

    if args.provided == (args.environment is not None):
        raise ConfigError(
            "no environment is given"
            if args.environment is None
            else f"`--provided` tests the site's modules, but the environment `{args.environment}` was given",
            hint="`provision list` lists the environments; `--provided --arch ARCH` tests the site's own modules",
        )
    if args.environment and args.stack:
        raise ConfigError(
            "`--stack` needs `--provided`: an environment has its own stack",
            hint=f"`provision test {args.environment}`",
        )
    site = shipped.load_site(args.site)
    with listener() as listen:
        what, ranks = (_provided if args.provided else _environment)(args, site, listen)
        title = f"the {'numerical ' * args.thorough}proof of {what}"
        with shown_as_step(listen, "proof", title):
            proof = ranks.prove_numbers() if args.thorough else ranks.prove()
    if args.thorough:
        checks = proof.verdict.checks
        skipped = sum(check.skipped for check in checks)
        summary = f"{len(checks) - skipped} checks on {ranks.proof.processes} ranks, {skipped} skipped, "
        summary += f"in {proof.seconds:.0f} s\n"
        summary += "\n".join(f"  {check.name}: {check.message}" for check in checks)
    else:
        summary = proof.summary
    result = {"environment": what, "verdict": proof.to_dict(), "folder": str(ranks.into)}
    return Outcome(text=f"passed: {summary}", result=result)


def _environment(args: argparse.Namespace, site: Site, listen: Listener) -> tuple[str, Ranks]:
    from provision.machine.build.ranks import Ranks, loaded_environment
    from provision.machine.configuration import shipped
    from provision.proof.proof_shape import prove_operation

    store = read_store(site)
    env = find_environment(store, args.environment, args.arch)
    record = store.record(env)
    if record is None or store.pointers().get(f"{env.arch}/{env.name}/{env.version}") != str(env):
        raise PlanError(
            f"`{env}` is not published, so no module loads it", hint="`provision build` proves it and publishes it"
        )
    _in_a_job(site)
    arch = next(
        (candidate for candidate in site.archs if candidate.name == env.arch or candidate.target == "native"), None
    )
    if arch is None:
        raise ConfigError(f"site `{site.name}` no longer has the arch `{env.arch}`", hint=f"edit `{site.origin}`")
    stack = shipped.load_stack(record.stack)
    proof = prove_operation(site, arch, stack, str(shipped.PACKAGE / "proof" / "programs"), record.prefix)
    records = Path(store.layout.records_folder(env))
    into = store.make_test_folder(records / "tests", below=records)
    log, kind = into / "proof.log", site.modules.module_kind
    modulepath = Path(store.layout.modules(env.arch)) / kind
    environ = loaded_environment(site.modules, modulepath, record.module, records / "activate.sh", log)
    python = str(store.layout.prefix(env) / "bin" / "python")
    return str(env), Ranks(store=store, python=python, proof=proof, environ=environ, log=log, listen=listen, into=into)


def _provided(args: argparse.Namespace, site: Site, listen: Listener) -> tuple[str, Ranks]:
    from provision.machine.build.ranks import Ranks, provided_environment
    from provision.machine.configuration import shipped
    from provision.proof.proof_shape import prove_operation

    target = make_target(site, args.arch, args.stack)
    arch, store = target.arch, target.store
    if not arch.provided:
        raise ConfigError(
            f"site `{site.name}` does not provide TensorFlow for arch `{arch.name}`",
            evidence=[f"`archs.{arch.name}.provided` in `{site.origin}` is empty"],
            hint=f"list the modules there, or run `provision build --site {site.typed} --arch {arch.name}`",
        )
    _in_a_job(site)
    environ = provided_environment(site.modules, arch.provided, arch.provided_unload)
    python = which("python", path=environ.get("PATH")) or which("python3", path=environ.get("PATH"))
    if python is None:
        raise PlanError(
            f"there is no python on PATH with {' '.join(arch.provided)}",
            hint="add the module that provides Python to `provided`",
        )
    proof = prove_operation(site, arch, target.stack, str(shipped.PACKAGE / "proof" / "programs"), "")
    into = store.make_test_folder(Path(store.layout.provided(arch.name)))
    # Our modulefile would set the variables of the arch; the site's modules do not.
    return " ".join(arch.provided), Ranks(
        store=store,
        python=python,
        proof=proof,
        environ={**environ, **dict(arch.environ)},
        log=into / "proof.log",
        listen=listen,
        into=into,
    )


def _in_a_job(site: Site) -> None:
    from provision.schedulers import scheduler_for

    if site.scheduler.name != "none" and not environ().get(scheduler_for(site.scheduler.name).JOB_ID):
        raise PlanError("run this inside a batch job", hint="start one with `salloc`, then run the same command in it")
