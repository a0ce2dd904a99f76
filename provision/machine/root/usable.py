"""What users get: does each module that they can load lead to what passed its proof? For `verify`, `doctor`, `list` and `build`.

It starts at the pointers and the modulefiles, not at the records: what was purged, moved or exchanged has no record that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.errors import ProvisionError
from provision.machine.programs.run import capture
from provision.machine.programs.shell import environ
from provision.machine.root.checking import glance
from provision.machine.root.generations import ABOUT
from provision.machine.root.image_only import is_image_only
from provision.machine.root.store import Store
from provision.model.check import Check, observed
from provision.model.layout import KINDS, EnvironmentId
from provision.model.record import Record

STARTS = "provision: the Python starts"
ILLEGAL_INSTRUCTION = -4
START_S = 60.0


def unusable(store: Store, arch: str | None = None, only: EnvironmentId | None = None) -> list[Check]:
    """What users of one arch, or of all, can load but does not lead to what passed its proof. Starts each Python once.

    Each module, or file of what users load, is the name of a failed check, and its environment the group.

    `only`: of the modules the one of this environment.
    """
    archs = [one for one in store.generations.archs() if arch in (None, one)]
    return [found for one in archs for found in _of_arch(store, one, only)]


def _of_arch(store: Store, arch: str, only: EnvironmentId | None) -> Iterator[Check]:
    generations = store.generations
    pointer, back = generations.pointer(arch), f"`provision rollback --arch {arch}` goes back to one that is there"
    modules = generations.modules_in(pointer)

    def is_meant(module: str) -> bool:
        mine = only is not None and module == f"{only.name}/{only.version}"
        return only is None or (mine and modules.get(module) in (None, str(only)))

    for path, reason in generations.damaged(arch).items():
        module = "/".join(path.parts[-2:]).removesuffix(".lua")
        again = f"`provision publish {modules[module]}` writes it again" if module in modules else back
        if is_meant(module) or path in (pointer, pointer / ABOUT):
            yield observed(modules.get(module, ""), "bad", reason, hint=again, name=str(path))
    for module in filter(is_meant, sorted(modulefiles(pointer) - modules.keys())):
        reason = "no file says to which environment it leads"
        yield observed("", "bad", reason, hint=back, name=f"module {arch}/{module}")
    for module, environment in modules.items():
        why = _why_unusable(store, environment) if is_meant(module) else None
        if why is not None:
            hint = "`provision rollback` goes back, `provision build` builds another one beside it"
            yield observed(environment, "bad", why, hint=hint, name=f"module {arch}/{module}")


def modulefiles(pointer: Path) -> set[str]:
    """The modules that the module system shows."""
    paths = [(kind, path) for kind in KINDS for path in pointer.glob(f"{kind}/[!.]*/[!.]*")]
    return {f"{path.parent.name}/{path.stem if kind == 'lua' else path.name}" for kind, path in paths}


def _why_unusable(store: Store, environment: str) -> str | None:
    """Why a module that loads this environment does not give what passed its proof; None if it does."""
    try:
        env = EnvironmentId.parse(environment)
    except ValueError:
        return f"`{environment}` is not an environment"
    if not Path(store.layout.prefix(env)).is_dir():
        return f"{environment} is gone"
    seen = glance(store, env, loaded=True)
    return seen.why or (_why_not_starting(store, env, seen.record) if seen.record else None)


def _why_not_starting(store: Store, env: EnvironmentId, record: Record) -> str | None:
    """Why the Python of an environment does not start here; None if it does, or this machine cannot tell."""
    prefix = Path(store.layout.prefix(env))
    if is_image_only(prefix):
        return None  # a node that cannot mount the image may still be none of those that it is for
    python = f"{prefix}/bin/python"
    try:
        done = capture([python, "-I", "-c", f"print({STARTS!r})"], environ(), START_S)
    except ProvisionError as error:
        return f"bin/python does not start: {error.message}"
    needs_modules = record.modules and "shared librar" in done.stderr
    if done.returncode == ILLEGAL_INSTRUCTION or needs_modules or STARTS in done.stdout:
        return None  # it is for another CPU, or needs libraries of modules that are not loaded here
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return f"bin/python does not start: {last}"
