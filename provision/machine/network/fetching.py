"""Download what a build installs: the packages of a lock, Horovod's source, and MNIST for the proof."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from provision.backends.venv.wheelhouse import download_argv, source_argv, source_name, wheel_argv
from provision.errors import ConfigError, ProvisionError
from provision.knowledge.targets import family_of
from provision.launch.modules import clean_environ
from provision.machine.network import datasets
from provision.machine.network.ask_index import hidden_answers
from provision.machine.probes.probe import cpu_family
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.installer_environ import installer_environ
from provision.machine.programs.run import stream
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.lock import Lock
from provision.model.operation import FetchLock
from provision.model.request import Request

TIME_LIMIT_S = 30


def fetch_lock(store: Store, lock: Lock, request: Request) -> None:
    """Download the packages of a lock to the wheelhouse."""
    # Horovod is fetched as source: a wheel of it, if the index had one, would be for another MPI.
    fetch_packages(
        store,
        FetchLock(
            path=lock.path,
            sha256=lock.sha256,
            requirements=lock.without("horovod"),
            minor=request.minor,
            target=request.arch.target,
        ),
    )


def fetch_packages(store: Store, lock: FetchLock) -> None:
    """Download into a temporary folder, move complete files to the wheelhouse, then write the receipt."""
    store.shared.make(store.downloads.wheelhouse)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=str(store.layout.wheelhouse)) as scratch:
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(lock.requirements, encoding="utf-8")
        files = Path(scratch) / "files"
        here = cpu_family()
        family = family_of(lock.target, here)
        foreign = family if family != here else None
        argv = download_argv(sys.executable, str(requirements), str(files), minor=lock.minor, foreign=foreign)
        _pip(argv, Path(scratch) / "log")
        store.downloads.keep_fetched(files, lock.sha256, lock.path)


def fetch_source(store: Store, request: Request) -> bool:
    """Download Horovod's source; False if it was downloaded before.

    Raises:
        ConfigError: the lock has no Horovod.
    """
    pin = request.lock.pin("horovod")
    if pin is None:
        raise ConfigError(f"`{request.lock.path}` does not pin horovod", hint=f"`provision lock {request.stack.name}`")
    path = str(store.layout.sources / source_name(pin))
    if store.downloads.has_source(path, pin.hashes):
        return False
    say(f"fetching {source_name(pin)}")
    with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
        requirements = Path(scratch) / "horovod.txt"
        requirements.write_text(pin.text, encoding="utf-8")
        files = Path(scratch) / "files"
        _pip(source_argv(sys.executable, str(requirements), str(files), pin.name), Path(scratch) / "log")
        store.downloads.keep_source(str(files), path, pin.hashes)
    return True


def fetch_wheel(store: Store, file: str, requirement: str, sha256: str) -> bool:
    """Download one wheel to the sources; False if it was downloaded before."""
    path = str(store.layout.sources / file)
    if store.downloads.has_source(path, (f"sha256:{sha256}",)):
        return False
    say(f"fetching {file}")
    with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
        files = Path(scratch) / "files"
        _pip(wheel_argv(sys.executable, str(requirements), str(files)), Path(scratch) / "log")
        store.downloads.keep_source(str(files), path, (f"sha256:{sha256}",))
    return True


def fetch_data(store: Store) -> str:
    """Download MNIST for the proof. If that fails, print a note: the proof then trains on the digits that come with the tool."""
    places = datasets.mnist_places(Path(store.layout.data))
    if any(place.is_file() for place in places):
        return "mnist"
    say("fetching MNIST")
    try:
        with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
            _download(datasets.MNIST_URL, Path(scratch) / "mnist.npz")
            store.downloads.keep_source(scratch, str(places[0]), (f"sha256:{datasets.MNIST_SHA256}",))
    except (OSError, ProvisionError) as error:
        reason = error.message if isinstance(error, ProvisionError) else str(error)
        say(
            f"  not downloaded ({reason}); the proof will train on the digits that come with the tool; "
            f"to use MNIST, copy `mnist.npz` to `{places[0]}`"
        )
        return "digits"
    return "mnist"


def _pip(argv: tuple[str, ...], log: Path) -> None:
    """Run pip; the error of a failure quotes pip's output."""
    environ = installer_environ(clean_environ(os.environ))
    result = stream(argv, environ=environ, log=log, needs="index")
    if result.code:
        raise failed_program(
            "the download failed",
            (*result.tail, *hidden_answers(argv, environ, result.tail)),
            hint="run this on a machine with network; behind a proxy, set `https_proxy`",
        )


def _download(url: str, file: Path) -> None:
    from urllib.request import urlopen

    with urlopen(url, timeout=TIME_LIMIT_S) as answer, file.open("wb") as out:
        shutil.copyfileobj(answer, out)
