"""Launchers as data to argv: how a program is started as N ranks."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.launcher import Launcher


def launch_argv(
    launcher: Launcher,
    program: Sequence[str],
    *,
    nodes: int,
    ranks_per_node: int,
    cpus: int = 0,
    mpiexec: str = "mpiexec",
) -> tuple[str, ...]:
    """The command that runs `program` as `nodes * ranks_per_node` ranks.

    srun gets `--kill-on-bad-exit`: without it the other ranks of a dead one wait for the time limit. `--ntasks` and
    `--nodes` are explicit, a job's own values may differ from what the proof needs.
    """
    ranks = nodes * ranks_per_node
    match launcher.name:
        case "srun":
            shape: tuple[str, ...] = (
                f"--nodes={nodes}",
                f"--ntasks={ranks}",
                f"--ntasks-per-node={ranks_per_node}",
                "--kill-on-bad-exit=1",
            )
            # Since Slurm 22.05 srun does not inherit the job's value.
            shape += (f"--cpus-per-task={cpus}",) if cpus else ()
            return ("srun", *shape, *launcher.options, *program)
        case "mpiexec":
            return (mpiexec, "-n", str(ranks), *launcher.options, *program)
