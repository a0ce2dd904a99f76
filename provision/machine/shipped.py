"""The files that come with the tool (sites, stacks, locks, templates), and a site's own files, which come first.

In a checkout they are next to the package; an installed wheel has them in `provision/_shipped`. The folder
`PROVISION_CONFIG` is searched first, then the working directory if it contains `sites/` or `stacks/`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.errors import ConfigError
from provision.machine import search_path as folders
from provision.machine.search_path import known
from provision.model.lock import Lock, check_lock, parse_lock
from provision.model.patch import Patch, parse_patch
from provision.profile.site import Site, read_site
from provision.profile.stack import Stack, read_stack
from provision.wording import nearest, nearest_name

PACKAGE = Path(folders.PACKAGE)


def shipped_root() -> Path:
    """The folder of the shipped files."""
    return Path(folders.shipped_root())


def search_path() -> tuple[Path, ...]:
    """The folders that are searched; the first one that has a file wins."""
    return tuple(map(Path, folders.search_path()))


def find(name: str) -> Path | None:
    """The file of this relative name in the first folder that has it."""
    return next((folder / name for folder in search_path() if (folder / name).is_file()), None)


def read(name: str) -> str:
    """The text of a shipped file; a missing file is a fault of the installation."""
    path = find(name)
    if path is None:
        raise ConfigError(f"`{name}` is missing in this installation", evidence=map(str, search_path()))  # type: ignore[arg-type]
    return path.read_text(encoding="utf-8")


def environment() -> dict[str, str]:
    """The variables that profiles may use; `PROVISION_ROOT` falls back to the user's data folder."""
    return {"PROVISION_ROOT": folders.default_root(), **os.environ}


def parse(text: str, origin: str) -> Mapping[str, Any]:
    """A text of TOML, parsed.

    Raises:
        ConfigError: it is not TOML.
    """
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"`{origin}` is not TOML", evidence=[str(error)], hint=f"edit `{origin}`", kind="invalid-file"
        ) from error
    return data


def _load(kind: str, name: str) -> tuple[Mapping[str, Any], Path]:
    """The parsed TOML of `<kind>s/<name>.toml`, or of a path to such a file."""
    path = Path(name) if name.endswith(".toml") else find(f"{kind}s/{name}.toml")
    if path is None or not path.is_file():
        names = known(f"{kind}s")
        near = nearest_name(name, names)
        raise ConfigError(
            f"there is no {kind} `{name}`{nearest(name, names)}",
            evidence=[f"known: {', '.join(names)}", *(f"searched: {place / (kind + 's')}" for place in search_path())],
            kind="unknown-site" if kind == "site" else "unknown-stack",
            hint=f"`--{kind} {near}`" if near else f"`provision {kind} list`",
            correction=(name, near) if near else None,
        )
    try:
        return parse(path.read_text(encoding="utf-8"), str(path)), path
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` cannot be read", evidence=[str(error)], kind="invalid-file") from error


def _refuse_other_name(kind: str, data: Mapping[str, Any], path: Path) -> None:
    """Raise for a file whose `name` is that of another file: a copy with an unchanged name would be taken for the original.

    Raises:
        ConfigError: the two differ.
    """
    name = data.get("name")
    if isinstance(name, str) and name != path.stem:
        raise ConfigError(
            f"`{path}` describes the {kind} `{name}`, but its file name says `{path.stem}`",
            evidence=[f'`name = "{name}"` in `{path}`'],
            hint=f'set `name = "{path.stem}"` in it, or rename the file to `{name}.toml`',
            kind="invalid-file",
        )


def load_profile(name: str) -> tuple[Mapping[str, Any], Path]:
    """The profile called `name`, with its blanks, and its path."""
    return _load("site", name)


def load_site(name: str) -> Site:
    """The site called `name`, or described by the file `name`."""
    data, path = _load("site", name)
    _refuse_other_name("site", data, path)
    return read_site(data, str(path), environment(), name)


def load_stack(name: str) -> Stack:
    """The stack called `name`, or described by the file `name`."""
    data, path = _load("stack", name)
    _refuse_other_name("stack", data, path)
    return read_stack(data, str(path))


def load_patches(horovod: str) -> tuple[Patch, ...]:
    """Our patches to this release of Horovod, from the first folder of the search path that has any for it."""
    for place in search_path():
        files = sorted((place / "patches" / f"horovod-{horovod}").glob("*.patch"))
        if files:
            return tuple(parse_patch(file.name, file.read_text(encoding="utf-8")) for file in files)
    return ()


def lock_name(requirements: str, minor: str) -> str:
    """The lock of `requirements/<requirements>.in` for this Python minor version."""
    return f"requirements/{requirements}-py{minor.replace('.', '')}.txt"


def load_lock(requirements: str, minor: str) -> Lock:
    """The lock of these requirements for Python `minor`, compared with its input.

    Raises:
        ConfigError: it is missing or damaged, or it was compiled from another input.
    """
    source, name = find(f"requirements/{requirements}.in"), lock_name(requirements, minor)
    if source is None:
        raise ConfigError(f"there is no `requirements/{requirements}.in`", hint="write it, then `provision lock`")
    path = source.parent / Path(name).name
    if not path.is_file():
        raise ConfigError(
            f"`{source}` has no lock for Python {minor}",
            evidence=[f"expected: {path}"],
            hint="compile it (this needs the network): `provision lock`",
        )
    lock = parse_lock(path.read_text(encoding="utf-8"), str(path))
    check_lock(lock, source.read_text(encoding="utf-8"), str(source))
    return lock
