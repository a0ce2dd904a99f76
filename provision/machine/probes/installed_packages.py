"""Which packages are installed below a prefix: counted while an installer runs (uv and pip do not print it), and listed."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from provision.model.lock import normalized
from provision.model.manifest import FILES
from provision.model.progress import package_line

# Both write INSTALLER (PEP 376) when all files of a package are in their place.
FINISHED = "lib/python*/site-packages/*.dist-info/INSTALLER"
IN_MANIFEST = r"\tlib/python[^/]+/site-packages/([^/]+\.dist-info)/INSTALLER$"


def installed_packages(prefix: Path) -> frozenset[str]:
    """The packages that are completely installed below this prefix, by the names of their folders.

    Those of an environment without files are in its manifest.
    """
    found = frozenset(path.parent.name for path in prefix.glob(FINISHED))
    if not found:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (prefix / ".provision" / FILES).read_text(encoding="utf-8")
            return frozenset(re.findall(IN_MANIFEST, text, re.MULTILINE))
    return found


def installed_versions(prefix: Path) -> tuple[tuple[str, str], ...]:
    """The name and the version of each package that is completely installed below this prefix, sorted."""
    parts = (name.removesuffix(".dist-info").rpartition("-") for name in installed_packages(prefix))
    return tuple(sorted((normalized(name), version) for name, _, version in parts))


def installed_in(folders: Iterable[Path]) -> dict[str, str]:
    """The name and the version of each package in folders of packages, sorted; the first folder that has a package wins.

    The folder of a package has both (PEP 427 and 376): `tensorflow_cpu-2.21.0.dist-info`.
    """
    names = [path.name for folder in reversed(tuple(folders)) for path in folder.glob("[!~]*.dist-info")]
    parts = (name.removesuffix(".dist-info").rpartition("-") for name in names)
    return dict(sorted((normalized(name), version) for name, _, version in parts))


@dataclass(slots=True)
class PackageCounter:
    """Reports each increase of the number of installed packages of `total`; packages that were there before do not count."""

    prefix: Path
    total: int
    report: Callable[[str], None]
    before: frozenset[str] = field(init=False)
    reported: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Remember the packages that are already installed."""
        self.before = installed_packages(self.prefix)

    def look(self) -> None:
        """Count, and report a new number."""
        done = min(self.total, len(installed_packages(self.prefix) - self.before))
        if done > self.reported:
            self.reported = done
            self.report(package_line(done, self.total))


def shadows_on(pythonpath: str, prefix: Path) -> list[str]:
    """The files on PYTHONPATH that Python imports instead of a package of an environment."""
    own = {name for folder in prefix.glob("lib/python3*/site-packages") for name, _ in _importable(folder)}
    folders = [Path(folder) for folder in pythonpath.split(os.pathsep)] if pythonpath else []
    return [str(path) for folder in folders for name, path in _importable(folder) if name in own]


def _importable(folder: Path) -> list[tuple[str, Path]]:
    """The names that a folder gives to `import`; of folders only packages, because another one hides none behind it."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    modules = [(path.name.partition(".")[0], path) for path in entries if path.suffix in (".py", ".so")]
    return modules + [(path.name, path) for path in entries if (path / "__init__.py").is_file()]
