"""The operations of the backend `spack`: run Spack, judge its lock, try the site's MPI with a small program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from provision.backends.spack.lock_checks import judge_lock
from provision.errors import ProvisionError, raise_faults
from provision.knowledge.index_settings import is_index_setting
from provision.launch.launchers import launch_argv, select_rank_environ
from provision.machine.files.disk import read_given, write
from provision.machine.install.read_objects import linked_mpi
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.installer_environ import installer_environ
from provision.machine.programs.run import capture, stream
from provision.model.event import Event, Listener
from provision.model.operation import CheckSpackLock, RunSpack, TryMpi

TRY_LIMIT_S = 120
# Each rank prints one line; the sum is right only if all ranks see each other.
MPI_PROGRAM = """\
#include <mpi.h>
#include <cstdio>
int main(int argc, char **argv) {
  int rank = 0, size = 0, one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("rank %d of %d, sum %d\\n", rank, size, sum);
  MPI_Finalize();
}
"""
RANK_LINE = re.compile(r"rank \d+ of (\d+), sum (\d+)")


def run_spack(
    spack: RunSpack, step: str, environ: Mapping[str, str], mark: Mapping[str, str], log: Path, listen: Listener
) -> None:
    """Run Spack in its own environment; of the caller's it gets only the settings of the package index and the proxy.

    `mark` is what programs below a lock get.

    Raises:
        CommandError: it failed, and the build needs what it does.
    """
    settings = {name: value for name, value in installer_environ(environ).items() if is_index_setting(name)}
    own = dict(spack.environ)
    Path(own["HOME"]).mkdir(parents=True, exist_ok=True)
    result = stream(
        spack.argv,
        environ={**settings, **own, **mark},
        log=log,
        needs="index",
        on_line=lambda line: listen(Event(kind="progress", step=step, text=line)),
    )
    if result.code and spack.without:
        text = f"warning: `spack` ended with code {result.code}; {spack.without}; see `{log}`"
        listen(Event(kind="say", text=f"{step}: {text}"))
    elif result.code:
        raise failed_program(
            f"step `{step}` failed",
            result.tail,
            otherwise=f"`spack` ended with code {result.code}",
            hint=f"read `{log}`, fix the cause, then run the same command again: what is installed is kept",
            log=str(log),
        )


def check_lock(expected: CheckSpackLock) -> None:
    """Refuse a spack.lock that does not fit its spack.yaml or this machine.

    Raises:
        ConfigError: it is missing or damaged.
        ProvisionError: it has faults; the error lists them.
    """
    # Judged again before an install: spack.yaml may have been edited, or solved again, since then.
    faults = judge_lock(read_given(expected.path, "lock"), expected, lambda path: Path(path).exists())
    raise_faults(faults, ProvisionError, "inspection")


def try_mpi(mpi: TryMpi, environ: Mapping[str, str], log: Path) -> None:
    """Compile a small program, look at what it links, and start its ranks.

    Raises:
        ProvisionError: it does not compile, links another MPI, or its ranks do not see each other.
    """
    folder = Path(mpi.folder)
    source, program = folder / "try_mpi.cpp", folder / "try_mpi"
    write(source, MPI_PROGRAM)
    compiled = capture((mpi.wrapper, str(source), "-o", str(program)), environ, TRY_LIMIT_S, folder=str(folder))
    if compiled.returncode:
        raise ProvisionError(
            f"the MPI compiler `{mpi.wrapper}` cannot compile a program that uses MPI",
            evidence=compiled.stderr.splitlines()[:8],
            hint=f"run `{mpi.wrapper} -show`, and check the MPI module of the arch",
            kind="inspection",
        )
    linked, expected = linked_mpi(program, environ), set(map(os.path.realpath, mpi.libraries))
    if expected and not (linked and linked <= expected):
        raise ProvisionError(
            f"what `{mpi.wrapper}` compiles loads another MPI than the wrapper links",
            evidence=[f"linked: {' '.join(sorted(expected))}", f"loaded: {' '.join(sorted(linked)) or 'no libmpi'}"],
            hint="check `module list` and LD_LIBRARY_PATH with the arch's modules loaded",
            kind="inspection",
        )
    argv = launch_argv(
        mpi.launcher,
        (str(program),),
        nodes=mpi.nodes,
        ranks_per_node=mpi.ranks_per_node,
        environ=select_rank_environ(environ),
    )
    result = stream(argv, environ=environ, log=log, timeout_s=TRY_LIMIT_S)
    lines = [RANK_LINE.search(line) for line in result.tail]
    sizes = [(int(match[1]), int(match[2])) for match in lines if match]
    ranks = mpi.nodes * mpi.ranks_per_node
    if result.code or sizes != [(ranks, ranks)] * ranks:
        raise failed_program(
            f"{ranks} ranks of a small MPI program did not see each other",
            result.tail,
            hint=f"set the launcher of the arch in the profile; run it yourself: `{' '.join(argv)}`",
            log=str(log),
        )
