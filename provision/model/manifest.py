"""The manifest: every file of an environment as it was when it passed its proof. Its text has one line for each file.

A line has six fields with tabs between them: the sha256 (of a link: `->` and its target), the mode, the size, the time of the
last change in nanoseconds, the package that the file belongs to (`-` if none), and the path from the prefix.

A Spack environment has links to packages in Spack's store. Their files are in its manifest too, with absolute paths.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from provision.model.stored import Stored
from provision.profile.reader import Key

# The two files of a manifest, among the records of an environment.
HEAD, FILES = "manifest.json", "manifest.txt"
LINK = "->"
OUTSIDE = (".provision", ".spack")
"""Folders of a prefix, or of a package, that the manifest leaves out: our records change when the proof is run again, and Spack's
records of a package are not part of it."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file, or one symbolic link, of an environment."""

    digest: str
    """The sha256; of a symbolic link `->` and its target."""
    mode: int
    size: int
    mtime_ns: int
    package: str
    """The package that it came with; empty if none is known."""


Files = Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHead(Stored):
    """`manifest.json`: what can be checked quickly, and the hash of the text with all files."""

    SCHEMA: ClassVar[int] = 1
    files: int
    size: Annotated[int, Key("bytes")]
    """Of the prefix alone: what goes when it is removed."""
    digest: Annotated[str, Key("sha256")]
    """The sha256 of `manifest.txt`."""
    first: tuple[str, ...]
    """Folders and programs near the top of the prefix: if one is missing, the environment is broken."""
    records: Mapping[str, str]
    """The sha256 of each file in `.provision` that does not change."""
    beside: tuple[str, ...] = ()
    """The folders of packages outside of the prefix whose files are in the manifest."""


def write_files(files: Files) -> str:
    """The text of the manifest."""
    lines = (
        f"{_escape(entry.digest)}\t{entry.mode:o}\t{entry.size}\t{entry.mtime_ns}\t{entry.package or '-'}\t{_escape(path)}\n"
        for path, entry in sorted(files.items())
    )
    return "".join(lines)


def read_files(text: str) -> dict[str, FileEntry]:
    """Read back what `write_files` returned. Raises `ValueError` if a line is damaged."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t")
        if len(fields) != 6:
            raise ValueError(f"line {number} has {len(fields)} fields, not 6")
        digest, mode, size, mtime_ns, package, path = fields
        found[_unescape(path)] = FileEntry(
            digest=_unescape(digest),
            mode=int(mode, 8),
            size=int(size),
            mtime_ns=int(mtime_ns),
            package="" if package == "-" else package,
        )
    return found


def _escape(path: str) -> str:
    """A path without tabs and line breaks; `str.splitlines` also splits at characters that are rare in paths."""
    if "\\" not in path and path.isprintable():
        return path
    return path.encode("unicode_escape").decode("ascii")


def _unescape(text: str) -> str:
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in text else text


def packages_of(paths: Iterable[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """The package of each path, from what the packages themselves record (path to package).

    Bytecode belongs to the package of its source. A file that no package records belongs to the one of its folder.
    """
    folders: dict[str, str] = {}
    for path, package in recorded.items():
        parts = path.split("/")
        for depth in range(len(parts) - 1, 3, -1):
            folders.setdefault("/".join(parts[:depth]), package)
    found = {}
    for path in paths:
        package = recorded.get(path) or recorded.get(source_of(path)) or ""
        parts = path.split("/")[:-1]
        while not package and len(parts) > 3:
            package = folders.get("/".join(parts), "")
            parts.pop()
        found[path] = package
    return found


def source_of(path: str) -> str:
    """The source of a file of bytecode: `a/__pycache__/b.cpython-311.pyc` is of `a/b.py`."""
    folder, separator, name = path.rpartition("/__pycache__/")
    return f"{folder}/{name.split('.')[0]}.py" if separator and name.endswith(".pyc") else path


def is_bytecode_of(path: str, files: Files) -> bool:
    """Whether a path is bytecode that Python wrote for a source of the environment."""
    source = source_of(path)
    return source != path and source in files
