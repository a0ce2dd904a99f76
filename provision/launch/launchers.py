"""Launchers as data to argv: how a program is started as N ranks.

Sources: srun(1) of Slurm 22.05; aprun(1) of ALPS and the pages of ALCF Theta; mpiexec(1) of PALS and the pages of ALCF
Polaris; mpirun(1) of Open MPI 4; mpiexec of MPICH (Hydra).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from provision.errors import ConfigError
from provision.profile.launcher import Launcher, LauncherName

# Where a rank finds its number and its number on its node; None: nowhere, the program has to ask MPI.
RANK_VARIABLES: dict[LauncherName, tuple[str, str | None] | None] = {
    "srun": ("SLURM_PROCID", "SLURM_LOCALID"),
    "aprun": ("ALPS_APP_PE", None),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "mpiexec-pals": ("PALS_RANKID", "PALS_LOCAL_RANKID"),
    "mpiexec": ("PMI_RANK", "MPI_LOCALRANKID"),
    "none": None,
}


VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY$", re.IGNORECASE)

# What ranks need of their caller's environment, where the launcher does not hand it on by itself.
RANK_VARIABLE_NAMES = (
    *("PATH", "LD_LIBRARY_PATH", "HOME", "USER", "TMPDIR", "VIRTUAL_ENV"),
    *("PROVISION_ENVIRONMENT", "LOADEDMODULES"),
)
RANK_VARIABLE_PREFIXES = (
    *("OMP_", "KMP_", "NUM_INT", "HOROVOD_", "TF_", "XLA_", "CUDA_", "NCCL_", "FI_", "MPICH_", "OMPI_MCA_"),
    *("PYTHON", "KERAS_", "PROVISION_"),
)


def select_rank_environ(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The `NAME=value` of an environment that ranks need, in order of their names."""
    return tuple(
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if name in RANK_VARIABLE_NAMES or name.startswith(RANK_VARIABLE_PREFIXES)
    )


def launch_argv(
    launcher: Launcher,
    program: Sequence[str],
    *,
    nodes: int,
    ranks_per_node: int,
    cpus: int = 0,
    cpus_per_core: int = 1,
    environ: Sequence[str] = (),
    mpiexec: str = "mpiexec",
) -> tuple[str, ...]:
    """The command that runs `program` as `nodes * ranks_per_node` ranks.

    `cpus` are those of one rank, as the scheduler counts them (0: unsaid), `cpus_per_core` how many of one core's
    threads are used. `environ` are `NAME=value` that must reach the ranks: srun and Hydra hand on everything and get
    none, the others get each by name.

    Raises:
        ConfigError: several ranks, and the launcher starts one.
    """
    ranks = nodes * ranks_per_node
    options = option_words(launcher)
    match launcher.name:
        case "srun":
            # Without `--kill-on-bad-exit` the other ranks of a dead one wait for the time limit. `--ntasks` and
            # `--nodes` are explicit: a job's own values may differ from what is asked for here.
            shape: tuple[str, ...] = (
                f"--nodes={nodes}",
                f"--ntasks={ranks}",
                f"--ntasks-per-node={ranks_per_node}",
                "--kill-on-bad-exit=1",
            )
            # Since Slurm 22.05 srun does not inherit the job's value.
            shape += (f"--cpus-per-task={cpus}",) if cpus else ()
            return ("srun", *shape, *options, *program)
        case "mpiexec":
            return (mpiexec, "-n", str(ranks), *options, *program)
        case "aprun":
            shape = ("-n", str(ranks), "-N", str(ranks_per_node))
            shape += ("-d", str(cpus)) if cpus else ()
            shape += ("-j", str(cpus_per_core)) if cpus_per_core > 1 else ()
            # Each rank on `-d` processors of its own; without it all threads of a rank share one.
            shape += () if "-cc" in options else ("-cc", "depth" if cpus else "none")
            return ("aprun", *shape, *_each("-e", environ), *options, *program)
        case "mpiexec-pals":
            shape = ("-n", str(ranks), "--ppn", str(ranks_per_node))
            shape += ("--depth", str(cpus)) if cpus else ()
            own = any(option.startswith("--cpu-bind") for option in options)
            shape += () if own else ("--cpu-bind", "depth" if cpus else "none")
            return ("mpiexec", *shape, *_each("--env", environ), *options, *program)
        case "mpirun":
            # Bound to one core by default, in which all threads of a rank would share it.
            shape = ("-np", str(ranks), "--map-by", f"ppr:{ranks_per_node}:node", "--bind-to", "none")
            return ("mpirun", *shape, *_each("-x", environ), *options, *program)
        case "none":
            if ranks != 1:
                raise ConfigError(
                    f"{ranks} ranks, and the launcher `none` starts one process",
                    hint="name the arch's launcher in the site's file: `launcher = { name = … }`",
                )
            return tuple(program)


def node_argv(launcher: Launcher, program: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that runs `program` once, with a whole node, from where a job's script runs.

    It gets the whole environment: what a compiler's wrapper needs of its modules nobody lists. Exported functions of bash
    are left out, whose names no launcher takes, and what looks like a password: all may read a command line.
    """
    words = tuple(
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if VARIABLE_NAME.fullmatch(name) and not SECRET_NAME.search(name)
    )
    return launch_argv(launcher, program, nodes=1, ranks_per_node=1, environ=words)


def option_words(launcher: Launcher) -> tuple[str, ...]:
    """The site's options as words of an argv: `--mca pml ob1` is three, `--comment=a b` one."""
    return tuple(word for one in launcher.options for word in ([one] if "=" in one else one.split()))


def _each(option: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (option, value))
