"""Which variables a program gets that the tool starts. Pure; `machine/programs/run.py` asks before each start.

The code of a package runs when it is built and when its environment is proved. So a program gets no secret that it does not
need: no token of another service (`HF_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `WANDB_API_KEY`), no address with a password.

Licences (`LM_LICENSE_FILE`), the marks of schedulers, launchers and fabrics (`PBS_JOBCOOKIE`, `PMI_GNI_COOKIE`,
`UCX_IB_PKEY`), and what a profile sets have other names, and stay: a profile with a secret is refused.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Literal

from provision.knowledge.index_settings import PROXIES, is_index_setting, is_installer_setting
from provision.knowledge.secret_names import has_user, is_secret_name

Needs = Literal["nothing", "index", "everything"]
"""What a program needs of the secrets of the user:

- `nothing`: probes, compilers, Horovod's build, proofs, the scheduler's commands;
- `index`: installers, Spack, and the job of a build: how they reach the package index and the network;
- `everything`: what acts for the user or the site (git, which asks helpers for a password; a user's own job, TensorBoard and
  TensorFlow Datasets; the site's hook), and the module system, because other programs get the variables that it prints.
"""
LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "aprun", "srun")
# What some programs need, whatever they are started for.
ALSO: Mapping[str, tuple[str, ...]] = {
    # Slurm's commands, where users authenticate with tokens: slurm(1), `auth/jwt`.
    "SLURM_JWT": ("sbatch", "squeue", "scontrol", "sinfo", "sacct", "srun", "mpirun", "mpiexec", "mpiexec.hydra"),
    # The user's keys for other machines: launchers may start the ranks of other nodes with ssh.
    "SSH_AUTH_SOCK": LAUNCHERS,
}


def child_environ(program: str, environ: Mapping[str, str], needs: Needs = "nothing") -> dict[str, str]:
    """The variables that `program` gets of these."""
    if needs == "everything":
        return dict(environ)
    also = [name for name, programs in ALSO.items() if os.path.basename(program) in programs]
    return {
        name: value
        for name, value in environ.items()
        if name in also or (needs == "index" and is_index_setting(name)) or not holds_secret(name, value)
    }


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable gives access to something: it has the name of a secret, or an address with a user or of an index."""
    of_an_index = is_installer_setting(name) and ("://" in value or name.endswith("_USERNAME"))
    return is_secret_name(name) or name in ALSO or of_an_index or has_user(value) or (name in PROXIES and "@" in value)
