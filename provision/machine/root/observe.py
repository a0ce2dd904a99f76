"""All that planning needs to know of this machine and of a root: facts, what exists, and the space for a build."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from provision.errors import StoreError
from provision.launch.modules import resolve_loaded
from provision.machine.probes.look_around import closed_python, cpu
from provision.machine.probes.probe import Probes
from provision.machine.root.checking import glance, read_head
from provision.machine.root.spack import find_spack, seconds_before
from provision.machine.root.store import Store
from provision.model.facts import Existing, Facts
from provision.model.layout import EnvironmentId
from provision.model.lock import Lock
from provision.planning.preflight import Space, space_of_earlier, space_of_wheels, usual_space
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.schedulers import job_here


def observe(site: Site, arch: Arch, stack: Stack, store: Store) -> Facts:
    """All facts that planning needs."""
    probes = Probes(site, arch)
    environ = probes.environment()
    broken = bool(probes.faults)
    probes.packer(environ)
    our_folder = Path(sys.executable).parent
    # If the modules cannot be loaded, faults with Python, compiler and MPI would only repeat that.
    python = None if broken else probes.python(stack, environ)
    # If nothing is compiled, the compiler and MPI may be missing.
    compiler = None if broken or not stack.from_source else probes.compiler(environ)
    spack = None
    if stack.backend == "spack":
        spack = probes.ask("spack", "", lambda: find_spack(site, store, environ))
        spack = replace(spack, took_s=seconds_before(store, stack, arch.name)) if spack else None
    uv = shutil.which("uv", path=f"{our_folder}{os.pathsep}{environ.get('PATH', '')}")
    return Facts(
        host=socket.gethostname(),
        job=job_here(os.environ),
        cpu=cpu(),
        python=python,
        compiler=compiler,
        mpi=None if broken or not stack.from_source else probes.mpi(environ),
        gpu=None
        if broken or not stack.uses_cuda_of_site
        else probes.gpu(environ, compiler, compiles=stack.horovod is not None),
        spack=spack,
        modules=resolve_loaded(arch.modules, environ),
        tool_python=sys.executable,
        uv=None if os.environ.get("PROVISION_INSTALLER") == "pip" else uv,
        cores=len(os.sched_getaffinity(0)),
        place=store.place(),
        faults=tuple(probes.faults),
        closed=closed_python(python.executable, str(store.root)) if python else (),
        environ=environ,
    )


def existing(store: Store, module: str | None = None) -> Existing:
    """Everything below the root that the planner needs to know; of environments only those of this module, if one is given.

    A finished environment is used as it is, or is broken. One that another admin began has no receipts: its prefix can be written
    by that admin alone, so another one starts over.
    """
    receipts, broken, pointers = {}, {}, store.pointers()
    envs = {str(env): env for env in store.environments(module)}
    loaded = {environment for name, environment in pointers.items() if module in (None, name.partition("/")[2])}
    for name in loaded - envs.keys():  # it is gone; what is unfinished must not be where users load it
        with contextlib.suppress(ValueError):
            envs[name] = EnvironmentId.parse(name)
    for name, env in envs.items():
        seen = glance(store, env, loaded=name in loaded)
        if seen.why:
            broken[name] = seen.why
        if seen.finished:
            receipts[name] = frozenset({"publish"})
        elif os.access(store.layout.records_folder(env), os.W_OK):
            receipts[name] = store.receipts(env)
    wheels = [path.parent for path in (store.root / "wheels").glob("[!.]*/wheel.json")]
    return Existing(
        receipts=receipts,
        wheels=frozenset(path.name for path in wheels if store.wheels.has(path.name)),
        pointers=pointers,
        fetched=frozenset(store.downloads.fetched()),
        sources=store.downloads.sources(),
        broken=broken,
    )


def needed_space(store: Store, stack: Stack, locks: Sequence[Lock]) -> Space:
    """The bytes and files that a build of this stack from these locks needs below the root."""
    compiles = bool(stack.from_source)
    fetched = store.downloads.fetched()
    if locks and all(fetched.get(lock.sha256) for lock in locks):
        with contextlib.suppress(OSError, zipfile.BadZipFile):
            return _unpacked({path for lock in locks for path in fetched[lock.sha256]}, compiles=compiles)
    return _earlier(store, stack, compiles=compiles) or usual_space(stack)


def _unpacked(paths: set[Path], *, compiles: bool) -> Space:
    """What these wheels need; 46 wheels of TensorFlow take a tenth of a second.

    Raises:
        OSError: one cannot be read.
        zipfile.BadZipFile: one is not a wheel.
    """
    size = files = modules = modules_size = 0
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            for file in wheel.infolist():
                size, files = size + file.file_size, files + 1
                if file.filename.endswith(".py"):
                    modules, modules_size = modules + 1, modules_size + file.file_size
    return space_of_wheels(len(paths), size, files, modules, modules_size, compiles=compiles)


def _earlier(store: Store, stack: Stack, *, compiles: bool) -> Space | None:
    """What the newest environment of this stack takes; None if there is none that can be read."""
    found = []
    for env in store.environments(stack.module):
        with contextlib.suppress(StoreError):
            record = store.record(env)
            if record is not None and record.stack == stack.name:
                head, _ = read_head(store, env, record)
                found += [(record.built, head.size, head.files, str(env))] if head else []
    if not found:
        return None
    _, size, files, name = max(found)
    return space_of_earlier(name, size, files, compiles=compiles)
