"""The operations of the backend `spack`, with a real MPI and with a stand-in of Spack."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import CommandError, ConfigError, ProvisionError
from provision.knowledge.index_settings import is_index_setting
from provision.machine.install.spack_steps import check_lock, run_spack, try_mpi
from provision.model.event import Event
from provision.model.operation import CheckSpackLock, RunSpack, TryMpi
from provision.profile.arch import Launcher

MPICH, OPENMPI = shutil.which("mpicxx.mpich"), shutil.which("mpicxx.openmpi")


def trial(folder: Path, wrapper: str, *libraries: str, launcher: str = "mpiexec") -> TryMpi:
    """A trial of two ranks on this machine."""
    return TryMpi(
        wrapper=wrapper,
        libraries=libraries,
        launcher=Launcher(name=launcher, options=()),  # type: ignore[arg-type]
        nodes=1,
        ranks_per_node=2,
        folder=str(folder),
    )


def path_with(folder: Path, **programs: str) -> dict[str, str]:
    """An environment in which these programs come first."""
    (folder / "bin").mkdir()
    for name, target in programs.items():
        # Not a link: Hydra looks for its proxy beside the path with which it was started.
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {target} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.fixture
def mpich() -> str:
    """MPICH's wrapper, and its mpiexec beside it."""
    if not (MPICH and shutil.which("mpiexec.mpich")):
        pytest.skip("there is no MPICH here (`.ci/install` brings it)")
    return MPICH


def test_ranks_of_the_real_mpi_see_each_other(mpich: str, tmp_path: Path) -> None:
    environ = path_with(tmp_path, mpiexec=str(shutil.which("mpiexec.mpich")))
    library = next(Path("/usr/lib").glob("*/libmpich.so"))
    try_mpi(trial(tmp_path, mpich, str(library)), environ, tmp_path / "log")


def test_a_program_that_loads_another_mpi_is_refused(mpich: str, tmp_path: Path, words: Words) -> None:
    """Trap: an MPICH external at /usr silently links Open MPI."""
    with pytest.raises(ProvisionError) as caught:
        try_mpi(trial(tmp_path, mpich, "/site/openmpi/lib/libmpi.so.40"), dict(os.environ), tmp_path / "log")
    words("spack", caught.value.message.replace(mpich, "MPICXX"))


def test_ranks_that_do_not_see_each_other_are_refused(mpich: str, tmp_path: Path, words: Words) -> None:
    """Another MPI's mpiexec starts each as rank 0 of 1, and ends with 0."""
    alone = tmp_path / "alone"
    alone.write_text('#!/bin/sh\nshift 2\n"$@"\n"$@"\n')
    alone.chmod(0o755)
    environ = path_with(tmp_path, mpiexec=str(alone))
    with pytest.raises(ProvisionError, match="2 ranks") as caught:
        try_mpi(trial(tmp_path, mpich), environ, tmp_path / "log")
    words("spack", caught.value.message)


def test_a_wrapper_that_cannot_compile_is_refused(tmp_path: Path, words: Words) -> None:
    with pytest.raises(ProvisionError, match="`/bin/false`") as caught:
        try_mpi(trial(tmp_path, "/bin/false"), dict(os.environ), tmp_path / "log")
    words("spack", caught.value.message)


def test_spack_gets_its_own_environment_and_the_settings_of_the_index(tmp_path: Path) -> None:
    """Nothing of the caller, such as a setting of Spack; stdin is a pipe."""
    script = "env >$0/env; [ -p /dev/stdin ] && echo pipe >$0/stdin"
    run = RunSpack(
        argv=("bash", "-c", 'exec "$@" < <(:)', "spack", "/bin/bash", "-c", script, str(tmp_path)),
        environ=(("HOME", str(tmp_path / "home")), ("PATH", "/usr/bin:/bin")),
    )
    environ = {"SPACK_USER_CONFIG_PATH": "/mine", "X": "1", "https_proxy": "http://p:1", "PIP_INDEX_URL": "http://i"}
    run_spack(run, "install", environ, {"MARK": "1"}, tmp_path / "log", lambda event: None)
    seen = (tmp_path / "env").read_text().splitlines()
    names = {line.split("=")[0] for line in seen} - {"_", "PWD", "SHLVL", "OLDPWD"}
    assert {name for name in names if not is_index_setting(name)} == {"HOME", "MARK", "PATH"}
    assert {"https_proxy", "PIP_INDEX_URL"} < names
    assert (tmp_path / "stdin").read_text() == "pipe\n"
    assert stat.S_ISDIR((tmp_path / "home").stat().st_mode)


def expected(path: Path) -> CheckSpackLock:
    """A check of a lock of one package."""
    return CheckSpackLock(path=str(path), root_specs=("py-horovod@0.28.1",), targets=(), externals=())


def test_a_missing_or_damaged_lock_is_an_error(tmp_path: Path) -> None:
    lock = tmp_path / "spack.lock"
    with pytest.raises(ConfigError):
        check_lock(expected(lock))
    for text in ("{", "[]", "{}", "[" * 100_000):
        lock.write_text(text)
        with pytest.raises(ConfigError, match=rf"`{lock}`"):
            check_lock(expected(lock))


def test_a_stale_lock_is_refused_before_spack_runs(tmp_path: Path, words: Words) -> None:
    lock = tmp_path / "spack.lock"
    lock.write_text(json.dumps({"roots": [{"spec": "py-horovod@0.27"}], "concrete_specs": {}}))
    with pytest.raises(ProvisionError, match=r"spack\.yaml") as error:
        check_lock(expected(lock))
    assert "py-horovod@0.27" in " ".join(error.value.evidence)
    words("spack", error.value.message)


def test_a_push_that_fails_is_a_warning_and_any_other_failure_ends_the_build(tmp_path: Path, words: Words) -> None:
    """A build cache on a full disk does not keep a proved environment from its users."""
    events: list[Event] = []
    run = RunSpack(argv=("bash", "-c", "echo '==> Error: full' >&2; exit 3"), environ=(("HOME", str(tmp_path)),))
    run_spack(dataclasses.replace(run, without="nothing is lost"), "cache", {}, {}, tmp_path / "log", events.append)
    (said,) = (event.text for event in events if event.kind == "say")
    assert said.startswith("cache: ") and "`spack`" in said and "code 3" in said and f"`{tmp_path / 'log'}`" in said
    words("build", said)
    with pytest.raises(CommandError):
        run_spack(run, "install", {}, {}, tmp_path / "log", events.append)
