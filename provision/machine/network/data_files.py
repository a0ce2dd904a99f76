"""Data sets and weights: for jobs downloaded to one place, and linked from where each Keras looks; for a proof; for a copy.

The place is below the site's scratch, so that a home folder does not fill up. Every Keras reads `~/.keras` unless
`KERAS_HOME` is set (`knowledge/keras_files.py`), so each file gets a link there; an own file of the user is never replaced.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError, ConfigError
from provision.knowledge.keras_files import TFDS, KerasFile
from provision.machine.files.archives import unpack
from provision.machine.files.disk import disk_errors, has_sha256, is_file
from provision.machine.files.tables import read_keras_files
from provision.machine.files.trusted_files import MIB
from provision.profile.site import Site

TIME_LIMIT_S = 60
CHUNK = 1 << 20
BLOCK = 4096
# What the Python of the user's environment does; 3 is its own exit code for a missing package.
PREPARE = """\
import sys
try:
    import tensorflow_datasets
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
tensorflow_datasets.builder(sys.argv[1], data_dir=sys.argv[2]).download_and_prepare()
"""


def keras_homes() -> tuple[Path, ...]:
    """The folders in which the Keras of this user looks: `~/.keras`, and `KERAS_HOME` if it is another."""
    home = _home() / ".keras"
    own = os.environ.get("KERAS_HOME")
    return (home,) if not own or Path(own) == home else (home, Path(own))


def sees(scratch: str) -> bool:
    """Whether this machine sees a site's scratch: its variables are set and the folder that contains it exists."""
    path = os.path.expandvars(scratch)
    return "$" not in path and os.path.isdir(os.path.dirname(path))  # noqa: PTH112


def place_of(site: Site) -> Path | None:
    """The site's scratch as this machine sees it; None if the profile has no scratch.

    Raises:
        ConfigError: this machine does not see the scratch.
    """
    scratch = site.files.scratch
    if scratch is None:
        return None
    if not sees(scratch):
        host = site.network.download_node or site.network.host or "HOST"
        raise ConfigError(
            f"this machine does not see the scratch of site `{site.name}`",
            evidence=[f"`files.scratch` in `{site.origin}` is `{scratch}`"],
            hint=f"`ssh {host}`, then run the same command there",
        )
    return Path(os.path.expandvars(scratch))


def download(url: str, file: Path, digest: str) -> bool:
    """Download a file unless it is there with this hash; returns whether it was downloaded.

    It gets its name when it is complete and its hash is right.

    Raises:
        CommandError: the download failed, or the file is another one.
        StoreError: the disk refuses.
    """
    from urllib.error import URLError
    from urllib.request import urlopen

    if file.is_file() and hash_of(file, digest) == digest:
        return False
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=file.parent) as folder:
            part = Path(folder) / "part"
            try:
                with urlopen(url, timeout=TIME_LIMIT_S) as answer, part.open("wb") as out:
                    shutil.copyfileobj(answer, out, CHUNK)
            except (URLError, TimeoutError, ConnectionError, ValueError) as error:
                raise CommandError(
                    f"`{url}` could not be downloaded",
                    evidence=[str(error)],
                    hint="run this on a node with network; behind a proxy, set `https_proxy`",
                ) from error
            found = hash_of(part, digest)
            if found != digest:
                raise CommandError(
                    f"`{url}` is not the file that was expected; nothing was kept",
                    evidence=[f"expected: {digest}", f"downloaded: {found}"],
                    hint="run the same command again; if the file has changed, ask its owner for the new hash",
                )
            part.chmod(0o644)
            part.replace(file)
    return True


def download_data(url: str, name: str, place: Path | None, digest: str) -> str:
    """Download a file to the folder `data` of the scratch, or of the home if the site has no scratch; returns its path.

    Raises:
        ConfigError: there is a folder of that name.
        CommandError: the download failed, or the file is another one.
    """
    file = (_home() if place is None else place) / "data" / name
    if file.is_dir():
        raise ConfigError(f"`{file}` is a folder", hint=f"`--name {name}.file`, or another name")
    download(url, file, digest)
    return str(file)


def _home() -> Path:
    return Path(os.path.expanduser("~"))


def hash_of(file: Path, like: str) -> str:
    """The hash of a file, of the kind of this one: sha256, or MD5, which shows damage but not intention."""
    digest = hashlib.sha256() if len(like) == 64 else hashlib.md5(usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def fetch_keras(rows: Iterable[KerasFile], place: Path | None) -> tuple[list[str], list[str]]:
    """Download files of Keras and link them; returns the paths of the files and of the links.

    Raises:
        ConfigError: a file of the user is in the way of a link.
        CommandError: a download failed.
    """
    homes = keras_homes()
    store = homes[0] if place is None else place / "keras"
    files, links = [], []
    for row in rows:
        file = store / row.folder / row.file
        download(row.url, file, row.hash)
        files.append(str(file))
        targets = {home / row.folder / name: file for home in homes for name in row.names}
        if row.archive_of:
            # Keras 2 unpacks an archive once, Keras 3 each time; both beside it. Here the contents are on scratch.
            for name, unpacked in ((row.archive_of, True), (f"{row.archive_of}-target", False)):
                folder = file.with_name(name)
                if unpacked and not folder.is_dir():
                    unpack(file, folder, without_top=True)
                folder.mkdir(exist_ok=True)
                targets |= {home / row.folder / name: folder for home in homes}
        for path, target in targets.items():
            if path != target:
                link(path, target, row.hash)
                links.append(str(path))
    return files, links


def link(path: Path, target: Path, digest: str) -> None:
    """Make `path` a link to `target`. What the user has there stays: a good file is used, another one is reported.

    Raises:
        ConfigError: something else is at `path`.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() and path.resolve() == target.resolve():
            return
        if path.is_symlink() and not path.exists():
            path.unlink()  # the site has emptied the folder to which it points
        if path.exists():
            if path.is_dir() or hash_of(path, digest) == digest:
                return
            raise ConfigError(
                f"`{path}` is not the file that Keras downloads, and was not replaced",
                evidence=[f"the right file is `{target}`"],
                hint=f"`mv {shlex.quote(str(path))} {shlex.quote(str(path) + '.old')}`, then run the same command again",
            )
        path.symlink_to(target)


def fetch_tfds(name: str, place: Path | None, data_dir: str | None = None) -> tuple[str, str]:
    """Let TensorFlow Datasets of the user's Python prepare a data set, in `data_dir` or below `place`.

    Returns that Python, and the folder.

    Raises:
        ConfigError: there is no Python with TensorFlow Datasets on PATH.
        CommandError: it failed.
    """
    from provision.machine.programs.failed_program import failed_program
    from provision.machine.programs.run import stream

    python, folder = shutil.which("python") or shutil.which("python3"), data_dir or tfds_folder(place)
    missing = ConfigError(
        "the Python on PATH has no TensorFlow Datasets",
        evidence=[f"Python: {python or 'there is none'}"],
        hint="load the environment of your job, then `pip install tensorflow-datasets` into your own packages",
    )
    if python is None:
        raise missing
    with tempfile.TemporaryDirectory(prefix="provision-fetch-") as scratch:
        argv = (python, "-c", PREPARE, name, str(folder))
        result = stream(argv, environ=os.environ, log=Path(scratch) / "log", needs="everything")
    if result.code == 3:
        raise missing
    if result.code:
        raise failed_program(
            f"TensorFlow Datasets could not prepare `{name}`",
            result.tail,
            hint="run this on a node with network; behind a proxy, set `https_proxy`",
        )
    return python, str(folder)


def tfds_folder(place: Path | None) -> Path:
    """The folder of TensorFlow Datasets; its own default if the site has no scratch."""
    return (_home() if place is None else place) / "tensorflow_datasets"


def is_fetched(name: str, rows: Iterable[KerasFile], place: Path | None) -> bool:
    """Whether a job finds a data set or weights: Keras a file in its folder, TensorFlow Datasets the folder of the set."""
    if rows:
        return any((home / row.folder / row.file).exists() for row in rows for home in keras_homes())
    set_name = re.split("[/:]", name.removeprefix(TFDS))[0]
    return any((tfds_folder(folder) / set_name).is_dir() for folder in (place, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set of the proof, in MNIST's layout."""

    name: str
    path: Path


def mnist() -> KerasFile:
    """The file of MNIST that Keras downloads."""
    return read_keras_files()["mnist"][0]


def mnist_places(cache: Path) -> tuple[Path, ...]:
    """The possible paths of `mnist.npz`: in the site's cache, then in the folder of Keras 3."""
    return (cache / mnist().file, keras_homes()[-1] / mnist().folder / mnist().file)


def choose_data(cache: Path, program: str) -> DataSet:
    """MNIST if one of its paths has the correct file, otherwise the digits next to the proof programs. Never downloads."""
    for path in mnist_places(cache):
        if has_sha256(path, mnist().hash, limit=16 * MIB):
            return DataSet(name="mnist", path=path)
    return DataSet(name="digits", path=Path(program).parent / "data" / "digits.npz")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A folder or file to copy, measured. Each file and folder counts as whole blocks, as on a disk."""

    path: str
    is_folder: bool
    bytes: int
    files: int


def measure(path: str) -> DataSource:
    """Measure a folder or file; links are not followed.

    Raises:
        ConfigError: it does not exist, is empty, or cannot be read.
    """
    source = Path(path)
    wrong: list[str] = []
    paths = [source] if is_file(path) else []
    for folder, folders, names in () if paths else os.walk(source, onerror=lambda error: wrong.append(str(error))):
        paths += [Path(folder, name) for name in (*folders, *names)]
    size = 0
    for inner in paths:
        try:
            size += -(-inner.lstat().st_size // BLOCK) * BLOCK
        except OSError as error:
            wrong.append(str(error))
    if wrong or not paths:
        raise ConfigError(
            f"the data `{source}` cannot be read" if wrong else f"there is nothing in `{source}`",
            evidence=wrong[:6],
            hint=f"`ls -l {shlex.quote(str(source))}`",
        )
    return DataSource(path=str(source), is_folder=source.is_dir(), bytes=size, files=len(paths))
