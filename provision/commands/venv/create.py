"""`provision venv create DIR --on ENVIRONMENT`: make a virtual environment on top of a published environment."""

from __future__ import annotations

import argparse

from provision.commands.shared.options import add_arch, add_site
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import find_environment, read_store
from provision.errors import ConfigError, PlanError
from provision.machine.programs.shell import absolute, environ


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder and the option that names the environment."""
    parser.add_argument("folder", metavar="DIR", help="a new folder for the virtual environment")
    parser.add_argument(
        "--on",
        metavar="ENVIRONMENT",
        required=True,
        help="a published environment of `provision list`: its name, the beginning of its fingerprint, or its module; "
        "`loaded`: the one whose module this shell has loaded",
    )
    add_site(parser)
    add_arch(parser, omitted="needed if several archs have this module")


def run(args: argparse.Namespace) -> Outcome:
    """Make it."""
    from pathlib import Path

    from provision.machine.build import make_own_venv
    from provision.machine.configuration import shipped
    from provision.model.own_venv import Beneath, refuse_folder
    from provision.model.quoting import bash

    folder = absolute(args.folder)
    refuse_folder(folder)
    site = shipped.load_site(args.site)
    store = read_store(site)
    env = find_environment(store, _loaded() if args.on == "loaded" else args.on, args.arch)
    record = store.record(env)
    published = store.pointers().get(f"{env.arch}/{env.name}/{env.version}")
    if record is None or published != str(env):
        raise PlanError(
            f"`{env}` is not published" + (f": its module loads `{published}`" if published else ""),
            hint=f"`--on {published}`" if published else "`provision build` completes it",
        )
    minor, folders = make_own_venv.look_beneath(record.prefix, environ())
    beneath = Beneath(
        environment=str(env),
        module=record.module,
        prefix=record.prefix,
        root=str(store.root),
        site=absolute(args.site) if "/" in args.site else site.name,
        minor=minor,
        folders=folders,
    )
    packages = make_own_venv.create(Path(folder), beneath, environ())
    if record.modules or site.modules.name != "none":
        load = bash("module load %s", record.module)
    else:
        load = bash('eval "$(provision activate %s)"', str(env))
    lines = [
        f"made {folder} on {env}: {len(packages)} packages",
        "",
        "use it, in this order:",
        f"  {load}",
        f"  {bash('source %s', f'{folder}/bin/activate')}",
        "  pip install PACKAGE",
        "",
        f"in jobs: {bash('provision job KIND --venv %s', folder)}",
    ]
    return Outcome(
        text="\n".join(lines),
        result={"folder": folder, "environment": str(env), "module": record.module, "packages": packages},
    )


def _loaded() -> str:
    """The environment whose module this shell has loaded.

    Raises:
        ConfigError: there is none.
    """
    name = environ().get("PROVISION_ENVIRONMENT")
    if not name:
        raise ConfigError(
            "no module of `provision` is loaded in this shell",
            evidence=[f"LOADEDMODULES: {environ().get('LOADEDMODULES') or 'nothing'}"],
            hint="`module load tensorflow/VERSION`, then this command; `provision list` lists the modules",
        )
    return name
