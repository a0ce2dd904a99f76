"""`provision spack`: sets up the site's Spack; shows the environments for plain Spack, as files for people, and compares them.

The files of one environment are in `<site>/<stack>/<arch>/`: spack.yaml and, beside it, the generated packages. Those of all
archs of the shipped profiles are in `spack-envs/`, where all environments share one repository of packages.
"""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path

from provision.backends.spack.environment_yaml import (
    SpackEnvironment,
    files_of_all,
    files_of_one,
    shown_here,
    shown_of_profile,
)
from provision.backends.spack.externals import version_in
from provision.commands.shared.environments import read_store
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import Target, make_target
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError, ProvisionError, UsageError
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known
from provision.machine.files.disk import is_file, read_given, write
from provision.machine.network.spack_sources import set_up
from provision.machine.programs.shell import environ
from provision.machine.root.spack import module_facts
from provision.model.request import Request
from provision.planning.preflight import refuse_runtime

FOLDER = "spack-envs"


def run_setup(args: Args) -> Outcome:
    """Copy, make the Python, and put both into use."""
    source = args.source or environ().get("SPACK_ROOT")
    if not source:
        raise UsageError(
            "no Spack was named",
            evidence=["$SPACK_ROOT is not set"],
            hint="`provision spack setup DIR`, where DIR is a checkout of https://github.com/spack/spack",
        )
    store = read_store(shipped.load_site(args.site))
    setup = set_up(store, source, args.commit, args.cache)
    lines = [f"Spack {setup.version}, commit {setup.commit}", f"  {setup.root}"]
    result = {"version": setup.version, "commit": setup.commit, "root": setup.root, "python": setup.python}
    return Outcome(text="\n".join(lines), result=result)


def run_show(args: Args) -> Outcome:
    """Write or print the environments."""
    if args.all and not args.into:
        raise UsageError("`--all` writes many files", hint=f"add `--into {FOLDER}`")
    files, skipped = _files(args)
    if args.into:
        for name, text in files.items():
            write(Path(args.into) / name, text)
        written = sorted(files)
        shown = [name for name in written if name.endswith("spack.yaml")]
        lines = [*shown, *(f"not written: {line}" for line in skipped)]
        return Outcome(text="\n".join(lines), result={"written": written, "skipped": skipped})
    (name,) = (name for name in files if name.endswith("spack.yaml"))
    return Outcome(text=files[name], result={"path": name, "text": files[name], "files": files})


def run_diff(args: Args) -> Outcome:
    """Compare the files of a folder with what `show` would write there."""
    files, _ = _files(args)
    lines: list[str] = []
    different = []
    for name, text in files.items():
        path = Path(args.into) / name
        here = read_given(str(path), "environment") if is_file(str(path)) else ""
        if here != text:
            different.append(name)
            lines += difflib.unified_diff(
                here.splitlines(), text.splitlines(), str(path), "provision spack show", lineterm="", n=1
            )
    return Outcome(
        text="\n".join(lines) if different else "no difference",
        result={"different": different},
        exit_code=EXIT_FAILED if different else EXIT_OK,
    )


def _files(args: Args) -> tuple[dict[str, str], list[str]]:
    """The files that the options name, and the archs that have none."""
    if args.all:
        return every_file()
    target = make_target(shipped.load_site(args.site), args.arch, args.stack)
    return files_of_one(_shown(target, from_profile=args.profile)), []


def every_file() -> tuple[dict[str, str], list[str]]:
    """The files of all archs of all profiles, and the archs that have none, each with the reason."""
    environments = []
    skipped = []
    for name in known("sites"):
        try:
            site = shipped.load_site(name)
        except ConfigError as error:
            skipped.append(f"{name}: {error.message}")
            continue
        for arch in site.archs:
            try:
                environments.append(_shown(make_target(site, arch.name, None), from_profile=True))
            except ProvisionError as error:
                skipped.append(f"{name}/{arch.name}: {error.message}")
    return files_of_all(environments), skipped


def _shown(target: Target, *, from_profile: bool) -> SpackEnvironment:
    """The environment of one arch: from this machine if it is one of the site's, otherwise from the profile alone.

    Raises:
        ProvisionError: the site does not build environments, or something that one needs is missing.
    """
    if from_profile or not target.is_here:
        return shown_of_profile(_request_of_profile(target))
    facts = target.observe()
    # What the site's modules change; no Spack is needed for that.
    facts = dataclasses.replace(facts, spack=module_facts(target.site, facts.environ))
    return shown_here(target.request(facts), facts)


def _request_of_profile(target: Target) -> Request:
    """The request with the lock for the Python that the profile names, or else the stack's first."""
    site, arch, stack = target.site, target.arch, target.stack
    refuse_runtime(site)
    if arch.target == "native":
        raise ConfigError(
            f"arch `{arch.name}` is built for the CPU of the machine that builds",
            hint=f"`provision spack show --site {site.typed} --arch {arch.name}` on that machine",
        )
    named = version_in(arch.modules, "python") or (arch.python or "").rpartition("python")[2]
    minor = ".".join(named.split(".")[:2])
    return target.request_for(minor if minor in stack.pythons else stack.pythons[0])
