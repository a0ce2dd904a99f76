"""Download what a build installs: the packages of a lock, the sources of what is compiled, and MNIST for the proof."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from provision.backends.venv.wheelhouse import download_argv, file_argv, source_name
from provision.errors import ProvisionError
from provision.knowledge.targets import family_of
from provision.launch.modules import clean_environ
from provision.machine.network.ask_index import hidden_answers
from provision.machine.network.data_files import download, mnist, mnist_places
from provision.machine.probes.look_around import cpu_family
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.installer_environ import installer_environ
from provision.machine.programs.run import stream
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.lock import Pin
from provision.model.operation import FetchLock
from provision.wording import duration

SAYS_EVERY_S = 20
NETWORK = "run this on a machine with network; behind a proxy, set `https_proxy`"


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
        run_installer(argv, Path(scratch) / "log")
        store.downloads.keep_fetched(files, lock.sha256, lock.path)


def fetch_source(store: Store, pin: Pin) -> bool:
    """Download the source of a package that is compiled; False if it was downloaded before."""
    return fetch_file(store, source_name(pin), pin.text, pin.hashes, "--no-binary", pin.name)


def fetch_file(store: Store, file: str, requirement: str, hashes: tuple[str, ...], *kind: str) -> bool:
    """Download one file of the package index to the sources; False if it was downloaded before. `kind` as of `file_argv`."""
    path = str(store.layout.sources / file)
    if store.downloads.has_source(path, hashes):
        return False
    say(f"fetching {file}")
    with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
        requirements, files = Path(scratch) / "requirements.txt", f"{scratch}/files"
        requirements.write_text(requirement, encoding="utf-8")
        run_installer(file_argv(sys.executable, str(requirements), files, *kind), Path(scratch) / "log")
        store.downloads.keep_source(files, path, hashes)
    return True


def fetch_data(store: Store) -> str:
    """Download MNIST for the proof. If that fails, print a note: the proof then trains on the digits that come with the tool."""
    places = mnist_places(Path(store.layout.data))
    if any(place.is_file() for place in places):
        return "mnist"
    say("fetching MNIST")
    try:
        store.shared.make(places[0].parent)
        download(mnist().url, places[0], mnist().hash)
    except ProvisionError as error:
        say(
            f"  not downloaded ({error.message}); the proof will train on the digits that come with the tool; "
            f"to use MNIST, copy `mnist.npz` to `{places[0]}`"
        )
        return "digits"
    return "mnist"


def run_installer(
    argv: tuple[str, ...],
    log: Path,
    *,
    what: str = "the download failed",
    hint: str = NETWORK,
    doing: str = "downloading",
) -> None:
    """Run pip, or a program that calls pip, with the user's settings of the index; the error of a failure quotes its output.

    Such programs are silent for minutes, so a line with what is being done (`doing`) comes every 20 seconds.
    """
    environ = installer_environ(clean_environ(os.environ))
    started, said = time.monotonic(), 0

    def look() -> None:
        nonlocal said
        if time.monotonic() - started >= SAYS_EVERY_S * (said + 1):
            said += 1
            say(f"{doing}: {duration(time.monotonic() - started)} so far")

    result = stream(argv, environ=environ, log=log, needs="index", on_second=look)
    if result.code:
        raise failed_program(what, (*result.tail, *hidden_answers(argv, environ, result.tail)), hint=hint)
