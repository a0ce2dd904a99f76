"""Turns a site's launcher into an argv that starts a program as N ranks.

Sources: srun(1) of Slurm 22.05; aprun(1) of ALPS and the pages of ALCF Theta; mpiexec(1) of PALS and the pages of ALCF
Polaris; mpirun(1) of Open MPI 4; mpiexec of MPICH (Hydra).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from provision.errors import ConfigError
from provision.knowledge.index_settings import is_index_setting
from provision.knowledge.secret_names import is_secret_name
from provision.model.child_environ import holds_secret
from provision.model.quoting import words
from provision.profile.arch import Launcher
from provision.profile.choices import LauncherName

# The variables that hold a rank's number and its number on its node; None: no variable does, the program must ask MPI.
RANK_VARIABLES: dict[LauncherName, tuple[str | None, str | None]] = {
    "srun": ("SLURM_PROCID", "SLURM_LOCALID"),
    "aprun": ("ALPS_APP_PE", None),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "mpiexec-pals": ("PALS_RANKID", "PALS_LOCAL_RANKID"),
    "mpiexec": ("PMI_RANK", "MPI_LOCALRANKID"),
    "none": (None, None),
}


VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# The variables that ranks need from the caller. Some launchers pass no variable unless it is named.
RANK_VARIABLE_NAMES = (
    *("PATH", "LD_LIBRARY_PATH", "HOME", "USER", "TMPDIR", "VIRTUAL_ENV"),
    *("PROVISION_ENVIRONMENT", "LOADEDMODULES"),
)
RANK_VARIABLE_PREFIXES = (
    *("OMP_", "KMP_", "NUM_INT", "HOROVOD_", "TF_", "XLA_", "CUDA_", "NCCL_", "FI_", "MPICH_", "OMPI_MCA_"),
    *("PYTHON", "KERAS_", "PROVISION_"),
)


def select_rank_environ(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that ranks need, as `NAME=value`, sorted by name."""
    return tuple(
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if (name in RANK_VARIABLE_NAMES or name.startswith(RANK_VARIABLE_PREFIXES)) and not is_secret_name(name)
    )


def launch_argv(
    launcher: Launcher,
    program: Sequence[str],
    *,
    nodes: int,
    ranks_per_node: int,
    cpus: int = 0,
    environ: Sequence[str] = (),
    mpiexec: str = "mpiexec",
) -> tuple[str, ...]:
    """The command that runs `program` as `nodes * ranks_per_node` ranks.

    `cpus` is the number of CPUs of one rank, as the scheduler counts them (0: not given). `environ` holds the `NAME=value`
    pairs that must reach the ranks: srun, aprun and Hydra pass on the whole environment and do not need them; the other
    launchers get each one by name.

    Raises:
        ConfigError: several ranks are needed, but the launcher starts only one.
    """
    ranks = nodes * ranks_per_node
    options = option_words(launcher)
    match launcher.name:
        case "srun":
            # Without `--kill-on-bad-exit`, when one rank dies the others wait until the time limit. `--ntasks` and
            # `--nodes` are explicit because the values of the job may differ from the ones needed here.
            shape: tuple[str, ...] = (
                f"--nodes={nodes}",
                f"--ntasks={ranks}",
                f"--ntasks-per-node={ranks_per_node}",
                "--kill-on-bad-exit=1",
            )
            # Since Slurm 22.05 srun does not inherit this value from the job.
            shape += (f"--cpus-per-task={cpus}",) if cpus else ()
            return ("srun", *shape, *options, *program)
        case "mpiexec":
            return (mpiexec, "-n", str(ranks), *options, *program)
        case "aprun":
            shape = ("-n", str(ranks), "-N", str(ranks_per_node))
            shape += ("-d", str(cpus)) if cpus else ()
            # Binds each rank to its own `-d` processors. Without `-cc depth` all threads of a rank share one.
            shape += () if "-cc" in options else ("-cc", "depth" if cpus else "none")
            return ("aprun", *shape, *options, *program)
        case "mpiexec-pals":
            shape = ("-n", str(ranks), "--ppn", str(ranks_per_node))
            shape += ("--depth", str(cpus)) if cpus else ()
            binding_given = any(option.startswith("--cpu-bind") for option in options)
            shape += () if binding_given else ("--cpu-bind", "depth" if cpus else "none")
            return ("mpiexec", *shape, *_each("--env", environ), *options, *program)
        case "mpirun":
            # By default Open MPI binds a rank to one core, which all threads of the rank would then share.
            shape = ("-np", str(ranks), "--map-by", f"ppr:{ranks_per_node}:node", "--bind-to", "none")
            return ("mpirun", *shape, *_each("-x", environ), *options, *program)
        case "none":
            if ranks != 1:
                raise ConfigError(
                    f"the launcher `none` starts one process, but {ranks} ranks are needed",
                    hint="set the launcher of the arch in the profile: `launcher = { name = … }`",
                )
            return tuple(program)


def node_argv(launcher: Launcher, program: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that runs `program` once on a whole node, started from the node that runs the job script.

    The whole environment reaches it, because no list has all the variables that a compiler wrapper needs from its modules.
    A launcher that gets variables by name gets no exported bash functions, because none accepts their names, and nothing
    that can hold a password, because every user of the machine can read a command line: no secrets, and no settings of
    the package index.
    """
    words = tuple(
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if VARIABLE_NAME.fullmatch(name) and not is_index_setting(name) and not holds_secret(name, value)
    )
    return launch_argv(launcher, program, nodes=1, ranks_per_node=1, environ=words)


def launcher_command(launcher: Launcher) -> str:
    """The launcher and the options of the profile, as a person types them before `-n RANKS PROGRAM`; empty: there is none.

    Every launcher here takes `-n`. Open MPI's would bind all threads of a rank to one core.
    """
    if launcher.name == "none":
        return ""
    program = "mpiexec" if launcher.name == "mpiexec-pals" else launcher.name
    bound = ("--bind-to", "none") if launcher.name == "mpirun" else ()
    return words((program, *bound, *option_words(launcher)))


def option_words(launcher: Launcher) -> tuple[str, ...]:
    """The launcher options of the profile as words of an argv: `--mca pml ob1` is three words, `--comment=a b` is one."""
    return tuple(word for option in launcher.options for word in ([option] if "=" in option else option.split()))


def _each(option: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (option, value))
