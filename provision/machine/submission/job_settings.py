"""The settings of the package index and the proxy for the job of a build: a file that only its builder can read.

Whoever writes the job writes the file; `provision build --settings FILE` in the job reads it, writes its ID into it, and removes
it when the build has ended, well or not. If a signal ends the build the file stays, because the scheduler may start a preempted
job again. What a cancelled job leaves behind is removed when a job is submitted or followed (`submission.remove_left_settings`),
and so is the file of a script that is never submitted, after some time.

A script may be submitted again after its file was removed: that build uses the variables of its job, and says so. Outside a job,
a file that does not exist is an error. No job of `provision build --submit` removes the file of a script that waits: the two
files have different names (`jobs.build_job`).
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision.errors import ConfigError, StoreError
from provision.knowledge.index_settings import is_index_setting
from provision.machine.files.disk import write
from provision.machine.files.trusted_files import read_regular
from provision.schedulers import job_here

AGAIN = "`provision job build` and `provision build --submit` write the job and this file again"


def write_settings(path: Path, settings: Mapping[str, str], job: str | None = None) -> None:
    """Write the settings of a job; `job` is its ID once it is submitted.

    Raises:
        StoreError: the file cannot be written.
    """
    write(path, json.dumps({"job": job, "environ": dict(settings)}, indent=1) + "\n", private=True)


def read_settings(path: Path) -> tuple[str | None, dict[str, str]]:
    """The ID of the job, if it was submitted by us or has started, and its settings.

    Raises:
        FileNotFoundError: the file does not exist.
        ConfigError: the file cannot be read, is not ours alone, or is damaged.
    """
    try:
        content, status = read_regular(path, follow=False)
    except FileNotFoundError:
        raise  # the caller knows whether an earlier job removed it
    except OSError as error:
        raise ConfigError(
            f"the settings of the package index in `{path}` cannot be read: {error.strerror}", hint=AGAIN
        ) from error
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(
            f"the settings of the package index in `{path}` are not yours alone",
            evidence=[f"owner: user {status.st_uid}, mode: {stat.S_IMODE(status.st_mode):o}"],
            hint=f"remove the file; {AGAIN}",
        )
    try:
        data = json.loads(content)
        job, environ = data["job"], {str(name): str(value) for name, value in data["environ"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ConfigError(f"the settings of the package index in `{path}` are damaged", hint=AGAIN) from error
    return (str(job) if job else None), {name: value for name, value in environ.items() if is_index_setting(name)}


@contextlib.contextmanager
def settings_from(path: Path) -> Iterator[str | None]:
    """Run with the settings of a file, and then remove it.

    Without the file, run with the variables of the job; the value is the sentence that says so.

    Raises:
        ConfigError: the file cannot be read, or others could have written it; outside a job also: it does not exist.
    """
    here = job_here(os.environ)
    try:
        job, settings = read_settings(path)
    except FileNotFoundError as error:
        if here is None:
            raise ConfigError(
                f"the settings of the package index in `{path}` do not exist",
                evidence=["this is not a batch job: only there a build continues without them"],
                hint=AGAIN,
            ) from error
        yield _without(path)
        return
    if here is not None and job != here:
        # A job that is cancelled leaves the file: with its ID, the file can be removed (`submission.remove_left_settings`).
        with contextlib.suppress(StoreError):
            write_settings(path, settings, here)
    os.environ.update(settings)
    ended = True
    try:
        yield None
    except KeyboardInterrupt:
        ended = False
        raise
    finally:
        if ended:
            with contextlib.suppress(OSError):
                path.unlink()


def _without(path: Path) -> str:
    """What a build says that runs without its file."""
    names = sorted(name for name, value in os.environ.items() if value and is_index_setting(name))
    found = (
        f"those of the job's environment: {', '.join(names)}"
        if names
        else "none, because the job's environment has none"
    )
    return (
        f"the settings of the package index in `{path}` do not exist (an earlier job of this script removes them); "
        f"this build uses {found} ({AGAIN})"
    )
