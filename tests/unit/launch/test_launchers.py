"""Launchers: the whole argv of each one, and that every launcher of a profile has one."""

from __future__ import annotations

from typing import get_args

import pytest

from golden_files import Words
from provision.errors import EXIT_USAGE, ConfigError
from provision.launch.launchers import RANK_VARIABLES, launch_argv, node_argv, select_rank_environ
from provision.profile.arch import Launcher
from provision.profile.choices import LAUNCHERS, LauncherName

PROGRAM = ("python", "train.py")


def argv(name: LauncherName, *options: str, **shape: int) -> str:
    """The command of this launcher for 2 nodes of 4 ranks, as one string."""
    launcher = Launcher(name=name, options=options)
    environ = ("OMP_NUM_THREADS=8", "X=a b")
    whole = {"nodes": 2, "ranks_per_node": 4, **shape}
    return "|".join(launch_argv(launcher, PROGRAM, environ=environ, **whole))  # type: ignore[arg-type]


def test_srun_gets_nodes_and_ranks_and_stops_when_one_rank_fails() -> None:
    shape = "srun|--nodes=2|--ntasks=8|--ntasks-per-node=4|--kill-on-bad-exit=1"
    assert argv("srun", "--mpi=pmi2") == f"{shape}|--mpi=pmi2|python|train.py"
    assert argv("srun", cpus=16) == f"{shape}|--cpus-per-task=16|python|train.py"


def test_hydra_gets_the_number_of_ranks() -> None:
    assert argv("mpiexec", "-bind-to none") == "mpiexec|-n|8|-bind-to|none|python|train.py"
    other = launch_argv(Launcher(name="mpiexec", options=()), PROGRAM, nodes=1, ranks_per_node=2, mpiexec="/x/mpiexec")
    assert other == ("/x/mpiexec", "-n", "2", *PROGRAM)


def test_aprun_gets_depth_and_threads_per_core_and_forwards_the_variables_itself() -> None:
    assert argv("aprun", cpus=32) == "aprun|-n|8|-N|4|-d|32|-cc|depth|python|train.py"
    assert argv("aprun", "-b").endswith("-N|4|-cc|none|-b|python|train.py")
    assert argv("aprun", "-cc node", cpus=32).endswith("-d|32|-cc|node|python|train.py"), "the binding of the profile"


def test_pals_gets_ranks_per_node_depth_and_each_variable() -> None:
    shape = "mpiexec|-n|8|--ppn|4|--depth|16|--cpu-bind|depth|--env|OMP_NUM_THREADS=8|--env|X=a b"
    assert argv("mpiexec-pals", cpus=16) == f"{shape}|python|train.py"
    assert "--cpu-bind|depth" not in argv("mpiexec-pals", "--cpu-bind=list:24:16:8:0", cpus=16)


def test_open_mpi_places_ranks_by_node_without_binding() -> None:
    shape = "mpirun|-np|8|--map-by|ppr:4:node|--bind-to|none|-x|OMP_NUM_THREADS=8|-x|X=a b"
    mca = "--mca|pml|ob1|--mca|btl|^openib"
    assert argv("mpirun", "--mca pml ob1", "--mca btl ^openib") == f"{shape}|{mca}|python|train.py"


def test_the_launcher_none_starts_one_process_only(words: Words) -> None:
    assert argv("none", nodes=1, ranks_per_node=1) == "python|train.py"
    with pytest.raises(ConfigError, match=r"`none` .*8 ranks") as caught:
        argv("none")
    assert caught.value.exit_code == EXIT_USAGE
    words("job", "\n".join(caught.value.to_lines()))


def test_a_build_step_gets_a_whole_node_and_no_secret_variables() -> None:
    environ = {"A": "1", "BASH_FUNC_x%%": "() { :; }", "MY_TOKEN": "x", "AWS_ACCESS_KEY": "x"}
    aprun = node_argv(Launcher(name="aprun", options=("-b",)), ("make",), environ)
    assert " ".join(aprun) == "aprun -n 1 -N 1 -cc none -b make"
    pals = Launcher(name="mpiexec-pals", options=())
    argv = node_argv(pals, ("make",), environ)
    assert " ".join(argv) == "mpiexec -n 1 --ppn 1 --cpu-bind none --env A=1 make"
    settings = {"PIP_INDEX_URL": "https://h/x", "https_proxy": "a:b@h:1", "DATABASE": "pg://a:b@h/x", "HF_TOKEN": "x"}
    assert node_argv(pals, ("make",), {"A": "1", **settings}) == argv
    assert select_rank_environ({"TF_API_TOKEN": "x", "TF_CPP_MIN_LOG_LEVEL": "1"}) == ("TF_CPP_MIN_LOG_LEVEL=1",)


def test_every_launcher_of_a_profile_has_an_argv_and_rank_variables() -> None:
    names = set(get_args(LauncherName))
    assert names == set(RANK_VARIABLES) == {name for known in LAUNCHERS.values() for name in known}
    for name in names - {"none"}:
        assert "train.py" in argv(name)
