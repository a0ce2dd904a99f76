"""All facts that planning needs: of this machine, and of a root."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

from provision.launch.modules import resolve_loaded
from provision.machine.probes.look_around import closed_python
from provision.machine.probes.probe import Probes, cpu
from provision.machine.root.spack import find_spack, seconds_before
from provision.machine.root.store import Store
from provision.model.facts import Facts
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.schedulers import job_here


def observe(site: Site, arch: Arch, stack: Stack, store: Store) -> Facts:
    """All facts that planning needs."""
    probes = Probes(site, arch)
    environ = probes.environment()
    broken = bool(probes.problems)
    probes.packer(environ)
    our_folder = Path(sys.executable).parent
    # If the modules cannot be loaded, problems with Python, compiler and MPI would only repeat that.
    python = None if broken else probes.python(stack, environ)
    # Without Horovod nothing is compiled, so the compiler and MPI may be missing.
    compiler = None if broken or stack.horovod is None else probes.compiler(environ)
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
        mpi=None if broken or stack.horovod is None else probes.mpi(environ),
        gpu=None if broken else probes.gpu(environ, compiler, compiles=stack.horovod is not None),
        spack=spack,
        modules=resolve_loaded(arch.modules, environ),
        tool_python=sys.executable,
        uv=None if os.environ.get("PROVISION_INSTALLER") == "pip" else uv,
        cores=len(os.sched_getaffinity(0)),
        place=store.place(),
        problems=tuple(probes.problems),
        closed=closed_python(python.executable, str(store.root)) if python else (),
        environ=environ,
    )
