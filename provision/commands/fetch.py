"""`provision fetch`: download everything that a build installs: packages, source, data set.

After that, a build needs no network. A file that was downloaded before is not downloaded again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.options import add_target
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import Target, read_target
from provision.errors import ConfigError, ProvisionError
from provision.machine.console import say

if TYPE_CHECKING:
    from provision.machine.store import Store
    from provision.model.lock import Lock
    from provision.model.request import Request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the build."""
    add_target(parser)
    parser.add_argument(
        "--python",
        metavar="VERSION",
        help="minor version (3.11) of the nodes' Python, if this machine does not have it",
    )


def run(args: argparse.Namespace) -> Outcome:
    """Download what is missing."""
    from provision.model.problem import raise_problems
    from provision.planning.preflight import place_problems

    target = read_target(args)
    if target.site.network.download_node:
        say(f"note: downloads of site `{target.site.name}` run on {target.site.network.where_to_download}")
    request = _request(target, args.python)
    raise_problems(place_problems(target.store.place(), installed=False))
    fetched, here = [], []
    for lock in request.locks:
        name = Path(lock.path).name
        if lock.sha256 in target.store.downloads.fetched():
            here.append(name)
            continue
        say(f"fetching {name}: {len(lock.pins)} packages")
        _fetch_lock(target, lock, request)
        fetched.append(name)
    if request.stack.horovod:
        (fetched if _fetch_source(target, request) else here).append(f"Horovod {request.stack.horovod}")
    data = fetch_data(target.store)
    text = f"fetched: {', '.join(fetched) or 'nothing'}; already there: {', '.join(here) or 'nothing'}; data: {data}"
    return Outcome(
        text=text,
        result={"fetched": fetched, "here": here, "data": data, "wheelhouse": str(target.store.layout.wheelhouse)},
    )


def _request(target: Target, python: str | None) -> Request:
    if python is None:
        return target.request(target.observe())
    if python not in target.stack.pythons:
        raise ConfigError(
            f"the stack `{target.stack.name}` has no lock for Python {python}",
            evidence=[f"it has: {', '.join(target.stack.pythons)}"],
            hint=f"`--python {target.stack.pythons[0]}`",
        )
    return target.request_for(python)


def _fetch_lock(target: Target, lock: Lock, request: Request) -> None:
    """Download into a temporary folder, move complete files to the wheelhouse, then write the receipt."""
    from provision.backends.venv.wheelhouse import download_argv
    from provision.knowledge.targets import family_of
    from provision.machine.probe import cpu_family

    target.store.downloads.make_wheelhouse()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=str(target.store.layout.wheelhouse)) as scratch:
        requirements = Path(scratch) / "requirements.txt"
        # Horovod is fetched as source: a wheel of it, if the index had one, would be for another MPI.
        requirements.write_text(lock.without("horovod"), encoding="utf-8")
        files = Path(scratch) / "files"
        here = cpu_family()
        family = family_of(request.arch.target, here)
        foreign = family if family != here else None
        _pip(
            download_argv(
                sys.executable,
                str(requirements),
                str(files),
                minor=request.minor,
                foreign=foreign,
            ),
            Path(scratch) / "log",
        )
        target.store.downloads.keep_fetched(files, lock.sha256, lock.path)


def _fetch_source(target: Target, request: Request) -> bool:
    from provision.backends.venv.wheelhouse import source_argv, source_name

    pin = request.lock.pin("horovod")
    if pin is None:
        raise ConfigError(f"`{request.lock.path}` does not pin horovod", hint="`provision lock`")
    path = str(target.store.layout.sources / source_name(pin))
    if target.store.downloads.has_source(path, pin.hashes):
        return False
    say(f"fetching {source_name(pin)}")
    with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
        requirements = Path(scratch) / "horovod.txt"
        requirements.write_text(pin.text, encoding="utf-8")
        files = Path(scratch) / "files"
        _pip(source_argv(sys.executable, str(requirements), str(files), pin.name), Path(scratch) / "log")
        target.store.downloads.keep_source(str(files), path, pin.hashes)
    return True


def _pip(argv: tuple[str, ...], log: Path) -> None:
    """Run pip; the error of a failure quotes pip's output."""
    from provision.launch.modules import clean_environ
    from provision.machine.failed_program import failed_program
    from provision.machine.run import stream

    result = stream(argv, environ=clean_environ(os.environ), log=log)
    if result.code:
        raise failed_program(
            "the download failed",
            result.tail,
            hint="run this on a machine with network; behind a proxy, set `https_proxy`",
        )


def fetch_data(store: Store) -> str:
    """Download MNIST for the proof. If that fails, print a note: the proof then trains on the digits that come with the tool."""
    from provision.machine import datasets as data

    places = data.mnist_places(Path(store.layout.data))
    if any(place.is_file() for place in places):
        return "mnist"
    say("fetching MNIST")
    try:
        with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
            file = Path(scratch) / "mnist.npz"
            _download(data.MNIST_URL, file)
            store.downloads.keep_source(scratch, str(places[0]), (f"sha256:{data.MNIST_SHA256}",))
    except (OSError, ProvisionError) as error:
        reason = error.message if isinstance(error, ProvisionError) else str(error)
        say(
            f"  not downloaded ({reason}); the proof will train on the digits that come with the tool; "
            f"to use MNIST, copy `mnist.npz` to `{places[0]}`"
        )
        return "digits"
    return "mnist"


def _download(url: str, file: Path) -> None:
    from urllib.request import urlopen

    with urlopen(url, timeout=30) as answer, file.open("wb") as out:
        shutil.copyfileobj(answer, out)
