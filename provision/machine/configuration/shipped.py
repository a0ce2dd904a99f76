"""Find and read the files that come with the tool (sites, stacks, locks, patches, templates) or replace those.

In a checkout the shipped files are next to the package; an installed wheel has them in `provision/_shipped`. The other
folders are in `search_path.py`, and `configuration.py` refuses a file that others may write.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from provision.errors import ConfigError
from provision.machine.configuration import search_path as folders
from provision.machine.configuration.permissions import parse, read_configuration
from provision.machine.configuration.search_path import known
from provision.machine.files.disk import disk_errors
from provision.model.lock import Lock, check_lock, parse_lock
from provision.model.patch import Patch, parse_patch
from provision.profile.document import join
from provision.profile.site import Site, blank_paths, read_site, read_unfinished, refuse_blanks
from provision.profile.stack import Stack, Wish, is_wish, read_stack, read_wish
from provision.wording import nearest, nearest_name

PACKAGE = Path(folders.PACKAGE)
EXAMPLE_DATA = PACKAGE / "proof" / "programs" / "data"


def place_of(name: str) -> str | None:
    """The first folder of the search path that has this relative name, whatever kind of file it is."""
    return next((place for place in folders.search_path() if os.path.exists(os.path.join(place, name))), None)


def read(name: str) -> str:
    """The text of a file on the search path; a missing file is a fault of the installation.

    Raises:
        ConfigError: it is missing, cannot be read, or others may write it.
    """
    place = place_of(name)
    if place is None:
        raise ConfigError(f"`{name}` is missing in this installation", evidence=folders.search_path())
    return _read(os.path.join(place, name), name, place)


def _read(path: str, name: str, place: str | None) -> str:
    try:
        return read_configuration(path, name, place)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` cannot be read", evidence=[str(error)], kind="invalid-file") from error


def own_files(site: Site, stack: str, locks: Sequence[str], horovod: str | None) -> tuple[str, ...]:
    """The paths of the files for a site and a stack that do not come with the tool; a folder for the patches.

    `stack` is a name or a path, `locks` are the names of inputs of locks. Templates count too, also those of other jobs.
    """
    shipped = folders.shipped_root()
    names = [name for name in (f"stacks/{stack}.toml",) if not stack.endswith(".toml")]
    names += [f"requirements/{lock}.in" for lock in locks] + ([f"patches/horovod-{horovod}"] if horovod else [])
    names += [f"{kind}/{name}" for kind in ("jobs", "modulefiles") for name in sorted(os.listdir(f"{shipped}/{kind}"))]
    found = [(place_of(name), name) for name in names]
    paths = [*(str(path) for _, path in profile_layers(site.origin)), *([stack] if stack.endswith(".toml") else [])]
    paths += [os.path.join(place, name) for place, name in found if place]
    return tuple(path for path in paths if not os.path.abspath(path).startswith(f"{shipped}/"))


def environment() -> dict[str, str]:
    """The variables that profiles may use; `PROVISION_ROOT` falls back to the user's data folder."""
    return {"PROVISION_ROOT": folders.default_root(), **os.environ}


def _load(kind: str, name: str) -> tuple[Mapping[str, Any], Path]:
    """The parsed TOML of `<kind>s/<name>.toml`, or of a path to such a file."""
    place, path, relative = None, name, f"{kind}s/{os.path.basename(name)}"
    if not name.endswith(".toml"):
        relative = f"{kind}s/{name}.toml"
        place = None if "/" in name else place_of(relative)
        path = os.path.join(place, relative) if place else ""
    if not os.path.exists(path):
        raise _unknown(kind, name)
    return parse(_read(path, relative, place), path), Path(path)


def _unknown(kind: str, name: str) -> ConfigError:
    """The error for a site or stack that is in no folder; the working directory, which may have it, is not searched."""
    if "/" in name:
        return ConfigError(
            f"there is no {kind} at `{name}`",
            evidence=[
                "the path of a profile ends in `.toml`"
                if os.path.exists(name)
                else f"looked for: {os.path.abspath(name)}"
            ],
            hint=f"`provision {kind} list`",
            kind="unknown-site" if kind == "site" else "unknown-stack",
        )
    names = known(f"{kind}s")
    near = nearest_name(name, names)
    evidence = [f"known: {', '.join(names)}", *(f"searched: {place}/{kind}s" for place in folders.search_path())]
    here = f"./{kind}s/{name}.toml"
    better = here if os.path.isfile(here) else near
    if better == here:
        evidence.append(f"not searched: the working directory, which has `{here}`")
    hint = f"`--{kind} {better}`" if better else f"`provision {kind} list`"
    return ConfigError(
        f"there is no {kind} `{name}`{nearest(name, names)}",
        evidence=evidence,
        kind="unknown-site" if kind == "site" else "unknown-stack",
        hint=hint,
        correction=(name, better) if better else None,
    )


def _refuse_other_name(kind: str, data: Mapping[str, Any], path: Path) -> None:
    """Raise a `ConfigError` if the `name` in a file is another one: a copy with an unchanged name would pass for the original."""
    name = data.get("name")
    if isinstance(name, str) and name != path.stem:
        raise ConfigError(
            f"`{path}` describes the {kind} `{name}`, but its file name says `{path.stem}`",
            evidence=[f'`name = "{name}"` in `{path}`'],
            hint=f'set `name = "{path.stem}"` in it, or rename the file to `{name}.toml`',
            kind="invalid-file",
        )


def profile_layers(name: str) -> list[tuple[Mapping[str, Any], Path]]:
    """The profile called `name` with its path, then what it extends.

    Raises:
        ConfigError: one of them does not exist, is not TOML, or extends itself.
    """
    return _with_extended(*_load("site", name))


def _with_extended(data: Mapping[str, Any], path: Path) -> list[tuple[Mapping[str, Any], Path]]:
    """A profile and what it extends: `sites/vendors/NAME.toml`, or another site."""
    layers = [(data, path)]
    while isinstance(base := layers[-1][0].get("extends"), str):
        relative = f"sites/vendors/{base}.toml"
        place = None if "/" in base else place_of(relative)
        if place is None:
            layers.append(_load("site", base))
        else:
            file = os.path.join(place, relative)
            layers.append((parse(_read(file, relative, place), file), Path(file)))
        if layers[-1][1] in [path for _, path in layers[:-1]]:
            evidence = [str(path) for _, path in layers]
            raise ConfigError(f"`{path}` extends itself", evidence=evidence, hint=f"edit `{path}`", kind="invalid-file")
    return layers


def parse_profile(text: str, origin: str) -> Mapping[str, Any]:
    """The text of a profile, parsed, with what it extends.

    Raises:
        ConfigError: as of `profile_layers`.
    """
    return join([data for data, _ in _with_extended(parse(text, origin), Path(origin))])


def load_profile(name: str) -> tuple[Mapping[str, Any], Path]:
    """The profile called `name`, with its blanks and what it extends, and its path."""
    layers = profile_layers(name)
    return join([data for data, _ in layers]), layers[0][1]


def load_site(name: str, *, unfinished: bool = False) -> Site:
    """The site called `name`, or described by the file `name`; `unfinished`: also if its profile has blanks."""
    data, path = load_profile(name)
    _refuse_other_name("site", data, path)
    if unfinished and blank_paths(data):
        return read_unfinished(data, str(path), environment(), name)
    known_as = os.path.join(folders.own_folder(), "sites", f"{path.stem}.toml")
    is_own = os.path.exists(known_as) and os.path.samefile(known_as, path)
    new = f"{shlex.quote(path.stem)}` fills" if is_own else f"SITE --from {shlex.quote(name)}` copies it, fills"
    refuse_blanks(data, str(path), f"`provision site new {new} in what it finds on this machine and asks for the rest")
    return read_site(data, str(path), environment(), name)


def load_stack(name: str) -> Stack:
    """The stack called `name`, or described by the file `name`.

    Raises:
        ConfigError: there is none, its file has faults, or it has ranges instead of versions.
    """
    data, path = _load("stack", name)
    _refuse_other_name("stack", data, path)
    if is_wish(data):
        raise ConfigError(
            f"the stack `{name}` has ranges, and this verb needs one with versions",
            evidence=[f"`[choose]` in `{path}`"],
            hint=f"`provision plan --stack {name}` shows which stack it chooses",
        )
    return read_stack(data, str(path))


def load_wish(name: str) -> Wish | None:
    """The stack with ranges called `name`, or described by the file `name`; None if it has versions."""
    data, path = _load("stack", name)
    if not is_wish(data):
        return None
    _refuse_other_name("stack", data, path)
    return read_wish(data, str(path))


def stacks_with_versions() -> tuple[Stack, ...]:
    """All stacks on the search path that have versions; files with faults are left out.

    `provision stack list` names those.
    """
    stacks = []
    for name in known("stacks"):
        with contextlib.suppress(ConfigError):
            stacks.append(load_stack(name))
    return tuple(stacks)


def load_patches(horovod: str) -> tuple[Patch, ...]:
    """Our patches to this release of Horovod, from the first folder of the search path that has any for it."""
    folder = f"patches/horovod-{horovod}"
    for place in folders.search_path():
        try:
            names = sorted(name for name in os.listdir(os.path.join(place, folder)) if name.endswith(".patch"))
        except OSError:
            continue
        if names:
            return tuple(
                parse_patch(name, _read(os.path.join(place, folder, name), f"{folder}/{name}", place)) for name in names
            )
    return ()


def lock_name(requirements: str, minor: str) -> str:
    """The lock of `requirements/<requirements>.in` for this Python minor version."""
    return f"requirements/{requirements}-py{minor.replace('.', '')}.txt"


@contextlib.contextmanager
def use_locks(folder: str) -> Iterator[None]:
    """Use the locks of this folder, in this process and in what it starts or submits."""
    before = os.environ.get("PROVISION_LOCKS")
    os.environ["PROVISION_LOCKS"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["PROVISION_LOCKS"]
        else:
            os.environ["PROVISION_LOCKS"] = before


def load_lock(requirements: str, minor: str) -> Lock:
    """The lock of these requirements for Python `minor`, compared with its input.

    Raises:
        ConfigError: it is missing or damaged, or it was compiled from another input.
    """
    source, name = f"requirements/{requirements}.in", lock_name(requirements, minor)
    place = place_of(source)
    if place is None:
        raise ConfigError(f"there is no `{source}`", hint=f"write it, then `provision lock {requirements}`")
    own = os.path.join(place, source)
    given, path = _read(own, source, place), os.path.join(place, name)
    newer = folders.locks_folder()
    if newer is not None and os.path.exists(os.path.join(newer, os.path.basename(name))):
        place, path = newer, os.path.join(newer, os.path.basename(name))
    elif not os.path.exists(path):
        raise ConfigError(
            f"`{own}` has no lock for Python {minor}",
            evidence=[f"expected: {path}"],
            hint=f"compile it (this needs the network): `provision lock {requirements}`",
        )
    lock = parse_lock(_read(path, name, place), path)
    check_lock(lock, given, own)
    return lock


def copy_example(name: str, folder: str) -> tuple[str, ...]:
    """Copy the example, and the digits as its folder `data`; returns the files that were written, relative to `folder`.

    Raises:
        ConfigError: `folder` exists and is not empty.
        StoreError: the disk refuses.
    """
    target = Path(folder)
    with disk_errors(folder):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ConfigError(
                f"`{folder}` is not an empty folder",
                evidence=["nothing was copied: a file of yours could be replaced"],
                hint=f"`provision example {name} DIR` with a new DIR",
            )
        # Contents alone: the files of an installation may be read-only, and belong to an admin.
        for source, place in (
            (Path(folders.shipped_root(), "examples", name), target),
            (EXAMPLE_DATA, target / "data"),
        ):
            place.mkdir(parents=True, exist_ok=True)
            for file in sorted(source.iterdir()):
                if file.is_file():
                    shutil.copyfile(file, place / file.name)
    return tuple(sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()))
