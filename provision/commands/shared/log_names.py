"""The logs of a job, a folder or an environment, for `explain`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from provision.commands.shared.environments import find_environment, read_store
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists
from provision.machine.probes.ask_scheduler import status
from provision.machine.programs.log_file import logs_in
from provision.machine.programs.shell import default_site

JOB = re.compile(r"\d+(?:[_.[][\w.\]-]*)?")


def logs_named(name: str, site: str) -> tuple[list[str], list[str]]:
    """The paths of the logs of a folder, a job or an environment, and what to run next if they show no failure.

    Raises:
        ConfigError: there is no such log.
    """
    after: list[str] = []
    if exists(name):
        found = logs_in(Path(name))
        # The folder of a job's output is named like the job.
        found = found or (_logs_of_job(Path(name).name, site) if JOB.fullmatch(Path(name).name) else [])
    elif JOB.fullmatch(name):
        found = _logs_of_job(name, site)
    elif name.count("/") in (1, 2) and not name.endswith((".log", ".out", ".err", ".txt")):
        found = _logs_of_environment(name, site)
        words = ["provision", "verify", name, *(["--site", site] if site != default_site() else [])]
        after = [f"`{shlex.join(words)}` shows whether it has changed since it was proved"]
    else:
        raise _missing(name)
    if not found:
        raise ConfigError(f"no log of `{name}` was found", hint="name the file: `provision explain FILE`")
    return [str(path) for path in found], after


def _missing(name: str, evidence: Iterable[str] = ()) -> ConfigError:
    """The error for a name that is neither a file nor a job nor an environment."""
    return ConfigError(
        f"there is no file `{name}`, and no job or environment of that name",
        evidence=tuple(evidence),
        hint=f"`ls -l {shlex.quote(os.path.dirname(name) or '.')}` lists the files there, `provision list` the environments",
    )


def _logs_of_job(job: str, site: str) -> list[Path]:
    """The logs of a job: below the root, in this folder, or where the scheduler says."""
    number = re.split(r"[.\[]", job)[0]
    profile = shipped.load_site(site)
    jobs = Path(read_store(profile).layout.jobs)
    found = [*(logs_in(jobs, number) if exists(str(jobs)) else []), *logs_in(Path(), number)]
    if not found and profile.scheduler.name != "none":
        now = status(job, profile.scheduler.name)
        found = [Path(now.output)] if now and now.output and exists(now.output) else []
    return found


def _logs_of_environment(name: str, site: str) -> list[Path]:
    """The logs of the steps of an environment."""
    store = read_store(shipped.load_site(site))
    try:
        environment = find_environment(store, name)
    except ConfigError as error:
        raise error if error.kind == "ambiguous-environment" else _missing(name, error.evidence) from error
    folder = Path(store.layout.log(environment, "x")).parent
    return logs_in(folder) if exists(str(folder)) else []
