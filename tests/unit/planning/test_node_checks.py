"""The checks of the node: each bad condition is made, on this machine where that is possible, and seen with its fix.

A condition that cannot be made here (another glibc, another driver, a site's modules) is a value of the facts.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from golden_files import facts_of, gpu_site, local_site, slurm_site, stack
from parts.disks import mounted
from provision.machine.probes.look_around import look_around, look_into, mount_of
from provision.machine.tables import read_combinations
from provision.model.facts import CompilerFacts, Cpu, Facts, GpuFacts, MpiFacts
from provision.model.observation import Observation
from provision.model.surroundings import Surroundings
from provision.planning.node_checks import check_node
from provision.profile.site import Site

KNOWN = read_combinations()
ROOT = Path("/")


@pytest.fixture(autouse=True)
def quiet_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shell without the settings of the machine that runs the tests."""
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "CONDA_PREFIX", "LC_ALL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "PYTHONUSERBASE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()


def observed(site: Site | None = None, root: Path = ROOT, **changes: Any) -> dict[str, Observation]:
    """What is seen on this machine, by the name of the check; `changes` are of the facts."""
    site = site or local_site()
    facts = facts_of(site, **changes)
    return judged(site, facts, look_around(facts, root))


def judged(site: Site, facts: Facts, around: Surroundings, *, runs_here: bool = True) -> dict[str, Observation]:
    """The observations on these surroundings, by the name of the check; every one that is not good has a fix or evidence."""
    found = check_node(site.archs[0], stack(), facts, around, KNOWN, runs_here=runs_here)
    assert all(seen.hint or seen.evidence for seen in found if seen.state != "good")
    return {seen.check: seen for seen in found}


def states(found: dict[str, Observation]) -> dict[str, str]:
    """The checks that are not good, and their states. A busy machine may have little memory or disk left."""
    of_machine = ("limit-memory", "limit-processes", "limit-shared-memory", "tmp-space", "wheel-avx")
    return {name: seen.state for name, seen in found.items() if seen.state != "good" and name not in of_machine}


def test_a_usual_machine_has_nothing_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert states(observed()) == {}


# Made for real


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    """A file system that starts no programs."""
    yield from mounted(tmp_path / "noexec", "noexec,size=4M")


@pytest.fixture
def readonly(tmp_path: Path) -> Iterator[Path]:
    """A file system that cannot be written."""
    yield from mounted(tmp_path / "readonly", "ro,size=4M")


def test_a_tmpdir_that_starts_no_programs(monkeypatch: pytest.MonkeyPatch, noexec: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(noexec))
    found = observed()
    assert found["tmp-runs"].state == "note"
    assert "noexec" in found["tmp-runs"].message
    assert found["tmp-space"].state == "note"  # 4 MB


def test_a_root_that_starts_no_programs_stops_a_build(noexec: Path) -> None:
    seen = observed(root=noexec / "below" / "it")["root-runs"]
    assert (seen.state, str(noexec) in seen.message) == ("bad", True)
    assert seen.problem("broken").subject == "root"


def test_a_tmpdir_that_cannot_be_written_or_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, readonly: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(readonly))
    # root may write everything that is not read-only: os.access asks the file system
    assert observed()["tmp-writable"].state == "bad"
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    assert "does not exist" in observed()["tmp-writable"].message


def test_the_hint_names_a_folder_elsewhere_that_the_command_makes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", "/scratch/missing")
    assert observed()["tmp-writable"].hint == "`export TMPDIR=/tmp`"
    monkeypatch.setenv("TMPDIR", "/tmp/missing")
    hint = observed()["tmp-writable"].hint or ""
    shell = ("bash", "-euc", f"{hint.strip('`')}; printf %s $TMPDIR")
    done = subprocess.run(shell, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert (done.stdout, (tmp_path / "tmp").is_dir()) == (f"{tmp_path}/tmp", True)


def test_a_tmpdir_too_long_for_sockets_and_with_spaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / ("with spaces " + "x" * 60)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    assert {"tmp-length": "note", "tmp-spaces": "note"}.items() <= states(observed()).items()


def test_variables_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    for name, value in {"PYTHONPATH": "/x", "HOROVOD_RANK": "3", "LDFLAGS": "-static", "CCL_ROOT": "/y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    found = observed()
    assert states(found) == {"shell-horovod": "note", "shell-python": "note", "shell-proxy": "note"}
    assert found["shell-build"].message.endswith("CCL_ROOT LDFLAGS")
    monkeypatch.setenv("no_proxy", "localhost")
    assert "shell-proxy" not in observed()


def test_the_umask_of_the_shell_is_known_and_does_not_matter() -> None:
    program = (
        "from provision.machine.programs.shell import set_umask, umask_of_shell; import os;"
        "set_umask(); print(oct(umask_of_shell()), oct(os.umask(0)))"
    )
    done = subprocess.run(
        ["bash", "-c", f"umask 0077; exec {sys.executable} -c '{program}'"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0o77", "0o22"]
    around = dataclasses.replace(look_around(facts_of(local_site()), ROOT), umask=0o077)
    assert judged(local_site(), facts_of(local_site()), around)["shell-umask"].state == "good"


def test_packages_in_the_home_are_named(tmp_path: Path) -> None:
    python = facts_of(local_site()).python
    assert python is not None
    folder = tmp_path / f"home/.local/lib/python{python.minor}/site-packages"
    for name in ("numpy-2.1.0", "tensorflow_cpu-2.15.1", "rich-13.0.0"):
        (folder / f"{name}.dist-info").mkdir(parents=True)
    seen = observed()["home-packages"]
    assert seen.message.endswith("numpy tensorflow_cpu")
    assert str(folder) in seen.evidence[0]


def test_a_locale_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    assert observed()["shell-locale"].state == "note"
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert "shell-locale" not in observed()


def test_few_processes() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (100, 100));"
        "from pathlib import Path; from provision.machine.probes import look_around as s;"
        "print(s._limit(resource.RLIMIT_NPROC))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    limit = int(done.stdout)
    around = dataclasses.replace(look_around(facts_of(local_site()), ROOT), process_limit=limit)
    assert judged(local_site(), facts_of(local_site()), around)["limit-processes"].state == "note"


def test_a_conda_environment_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    assert observed(environ={"PATH": f"{tmp_path}/bin:/usr/bin"})["shell-conda"].state == "note"
    assert "shell-conda" not in observed(environ={"PATH": "/usr/bin"})


def test_the_glibc_of_this_system_is_the_one_that_it_prints() -> None:
    try:
        printed = subprocess.run(["ldd", "--version"], capture_output=True, text=True, check=True).stdout
    except OSError:
        pytest.skip("this system has no `ldd`")
    around = look_around(facts_of(local_site()), ROOT)
    assert around.glibc is None or around.glibc in printed


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "tmpdir"
    assert look_into(folder, try_program=True).runs
    assert list(folder.iterdir()) == []


# Values of the facts


@pytest.mark.parametrize(
    ("variables", "check", "state"),
    [
        ({"PYTHONHOME": "/x"}, "modules-python-home", "bad"),
        ({"PYTHONPATH": "/x"}, "modules-python-path", "note"),
        ({"CCL_ROOT": "/opt/intel/oneapi/ccl/latest"}, "modules-ccl", "bad"),
        ({"LDFLAGS": "-L/x"}, "modules-flags", "note"),
        ({"CXXFLAGS": "-O2 -static"}, "modules-flags", "bad"),
        ({"HOROVOD_GPU": "CUDA"}, "modules-horovod", "note"),
        ({"CRAYPE_LINK_TYPE": "static"}, "modules-static", "bad"),
    ],
)
def test_variables_that_modules_set(variables: dict[str, str], check: str, state: str) -> None:
    found = observed(environ={"PATH": "/usr/bin", **variables})
    assert found[check].state == state
    assert check not in observed(environ={"PATH": "/usr/bin"})


def test_the_build_environment_of_the_profile_wins_over_the_modules() -> None:
    site = local_site()
    own = (("CRAYPE_LINK_TYPE", "dynamic"), ("CCL_ROOT", ""), ("LDFLAGS", ""))
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], build_environ=own),))
    set_by_modules = {"CRAYPE_LINK_TYPE": "static", "CCL_ROOT": "/x", "LDFLAGS": "-static"}
    found = observed(site, environ={"PATH": "/usr/bin", **set_by_modules})
    assert not [name for name in found if name.startswith("modules-")]


@pytest.mark.parametrize(
    ("glibc", "state"), [("2.12", "bad"), ("2.16", "bad"), ("2.17", None), ("2.36", None), (None, None)]
)
def test_a_glibc_that_is_older_than_the_wheel_needs(glibc: str | None, state: str | None) -> None:
    facts = facts_of(local_site())
    around = dataclasses.replace(look_around(facts, ROOT), glibc=glibc)
    found = judged(local_site(), facts, around)
    assert (found["wheel-glibc"].state if "wheel-glibc" in found else None) == state


def test_a_cpu_without_avx() -> None:
    facts = facts_of(local_site(), cpu=Cpu(target="nehalem", features=frozenset({"sse2", "ssse3", "sse4_2"})))
    around = look_around(facts, ROOT)
    assert judged(local_site(), facts, around)["wheel-avx"].state == "bad"
    # A login node: the arch has another CPU.
    assert "wheel-avx" not in judged(local_site(), facts, around, runs_here=False)


@pytest.mark.parametrize(
    ("family", "version", "state"), [("gcc", "15.1.0", "bad"), ("gcc", "14.2.0", None), ("clang", "19.1.0", "note")]
)
def test_a_compiler_that_dropped_the_target(family: str, version: str, state: str | None) -> None:
    site = local_site()
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], target="mic_knl"),))
    facts = facts_of(site, compiler=CompilerFacts(family=family, version=version, cxx="/usr/bin/c++"))
    found = judged(site, facts, look_around(facts, ROOT))
    assert (found["compiler-target"].state if "compiler-target" in found else None) == state


def test_a_compiler_that_is_too_old_for_c17_is_only_a_note() -> None:
    found = observed(compiler=CompilerFacts(family="gcc", version="7.5.0", cxx="/usr/bin/g++"))
    assert found["compiler-age"].state == "note"


def mpi(**changes: str) -> MpiFacts:
    """An MPI below /opt."""
    values = {"family": "mpich", "version": "4.0.2", "cxx": "/opt/mpich/bin/mpicxx", "show": "g++ -lmpi", **changes}
    return MpiFacts(libraries=("/opt/mpich/lib/libmpi.so",), **values)


def test_two_mpis_a_static_one_and_the_launcher_of_another() -> None:
    site = slurm_site()
    found = observed(site, mpi=mpi(show="g++ -static -lmpi"), modules=("gcc/12", "openmpi/4.1", "mpich/4.0"))
    assert (found["mpi-static"].state, found["mpi-two"].state) == ("bad", "bad")
    site = local_site()
    launcher = dataclasses.replace(site.archs[0].launcher, name="mpiexec")
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], launcher=launcher),))
    facts = facts_of(site, mpi=mpi())
    for path, seen in (("/opt/openmpi/bin/mpiexec", True), ("/opt/mpich/bin/mpiexec", False), (None, False)):
        around = dataclasses.replace(look_around(facts, ROOT), mpiexec=path)
        assert ("mpi-launcher" in judged(site, facts, around)) == seen


@pytest.mark.parametrize(
    ("driver", "cuda", "state"),
    [
        ("470.57.02", "12.4.131", "bad"),
        ("525.60.13", "12.4.131", None),
        ("440.33", "11.8", "note"),
        (None, "12.4.131", None),
    ],
)
def test_a_driver_that_is_too_old_for_cuda(driver: str | None, cuda: str, state: str | None) -> None:
    site = gpu_site()
    facts = facts_of(site, gpu=GpuFacts(cuda_home="/opt/cuda", cuda_version=cuda))
    around = dataclasses.replace(look_around(facts, ROOT), driver=driver)
    found = judged(site, facts, around)
    assert (found["driver-cuda"].state if "driver-cuda" in found else None) == state


def test_little_shared_memory_and_little_memory() -> None:
    facts = facts_of(local_site())
    around = dataclasses.replace(look_around(facts, ROOT), shared_memory_bytes=64 * 2**20, available_memory_bytes=10**8)
    found = judged(local_site(), facts, around)
    assert (found["limit-shared-memory"].state, found["limit-memory"].state) == ("note", "note")


def test_a_root_with_spaces() -> None:
    facts = facts_of(local_site())
    place = dataclasses.replace(facts.place, path="/site/my root")
    facts = dataclasses.replace(facts, place=place)
    assert observed(place=place)["root-spaces"].state == "bad"
    without = dataclasses.replace(stack(), horovod=None)
    around = look_around(facts, ROOT)
    seen = check_node(local_site().archs[0], without, facts, around, KNOWN, runs_here=True)
    assert [found.state for found in seen if found.check == "root-spaces"] == ["note"]
    site = local_site()
    mpi = dataclasses.replace(site.archs[0].mpi, provider="site")
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], mpi=mpi),))
    assert judged(site, facts, look_around(facts, ROOT))["root-spaces"].state == "note"


# The page


def test_every_check_is_on_the_page_and_in_a_test() -> None:
    here = Path(__file__)
    planning = here.parents[3] / "provision/planning"
    source = "".join(
        (planning / f"{name}.py").read_text(encoding="utf-8") for name in ("node_checks", "node_surroundings")
    )
    checks = set(re.findall(r'(?:_seen\(\s*|\()"([a-z-]+)"(?:,\s*"(?:bad|note|good)"|, around)', source))
    assert {"tmp-writable", "root-files", "quota"} <= checks
    assert len(checks) > 20
    page = (here.parents[3] / "docs/reference/node-checks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE)) == checks
    tests = here.read_text(encoding="utf-8")
    assert [name for name in sorted(checks) if f'"{name}"' not in tests] == []


# File systems, limits, certificates and stubs


def around_with(**changes: Any) -> dict[str, str]:
    """The states of the checks on surroundings with these values."""
    facts = facts_of(local_site())
    return states(judged(local_site(), facts, dataclasses.replace(look_around(facts, ROOT), **changes)))


def test_a_quota_that_is_used_up_is_seen_with_what_quota_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "quota").write_text("#!/bin/sh\necho 'Block limit reached on /home'\nexit 1\n")
    (tmp_path / "quota").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert observed()["quota"].evidence == ("Block limit reached on /home",)
    (tmp_path / "quota").write_text("#!/bin/sh\necho 'Disk quotas for user u: none'\nexit 0\n")
    assert "quota" not in observed()


def test_few_files_that_may_be_made_are_noted_and_no_limit_is_not() -> None:
    tmp = look_into(Path("/tmp"), try_program=False)
    assert around_with(tmp=dataclasses.replace(tmp, free_files=1000)) == {"tmp-files": "note"}
    assert around_with(root=dataclasses.replace(tmp, free_files=1000), tmp=tmp) == {"root-files": "note"}
    assert around_with(tmp=dataclasses.replace(tmp, free_files=None)) == {}


@pytest.mark.parametrize(
    ("mount", "noted"),
    [
        (("lustre", "rw,lazystatfs"), True),
        (("lustre", "rw,flock,lazystatfs"), False),
        (("lustre", "rw,localflock"), False),
        (("nfs", "rw,nolock,vers=3"), True),
        (("nfs4", "rw,local_lock=none"), False),
        (("ext4", "rw"), False),
    ],
)
def test_a_file_system_without_locks_is_noted(mount: tuple[str, str], noted: bool) -> None:
    tmp = look_into(Path("/tmp"), try_program=False)
    assert around_with(tmp=tmp, root_mount=mount) == ({"root-locks": "note"} if noted else {})


MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:41 / /scratch rw,nosuid shared:2 - lustre 10.0.0.1@o2ib:/s rw,flock
41 22 0:42 / /scratch/my\\040files rw - nfs server:/x rw,nolock
broken
"""


def test_the_file_system_of_a_folder_is_the_deepest_mount_above_it() -> None:
    assert mount_of("/home/u", MOUNTS) == ("ext4", "rw,relatime,rw")
    assert mount_of("/scratch/a", MOUNTS)[0] == mount_of("/scratch", MOUNTS)[0] == "lustre"
    assert mount_of("/scratches", MOUNTS)[0] == "ext4"
    assert mount_of("/scratch/my files/a", MOUNTS) == ("nfs", "rw,rw,nolock")
    assert mount_of("/x", "") == ("", "")


def test_limits_of_open_files_and_locked_memory_are_noted() -> None:
    tmp = look_into(Path("/tmp"), try_program=False)
    assert around_with(tmp=tmp, open_files_limit=256) == {"limit-open-files": "note"}
    assert around_with(tmp=tmp, infiniband=True, locked_memory_bytes=65536) == {"limit-locked-memory": "note"}
    assert around_with(tmp=tmp, infiniband=False, locked_memory_bytes=65536) == {}
    assert around_with(tmp=tmp, infiniband=True, locked_memory_bytes=None) == {}


def test_certificates_that_are_not_there_are_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "gone.pem"))
    assert observed()["shell-certificates"].evidence == (f"REQUESTS_CA_BUNDLE={tmp_path / 'gone.pem'}",)
    (tmp_path / "gone.pem").touch()
    assert "shell-certificates" not in observed()


def test_stubs_of_cuda_on_the_library_path_are_noted() -> None:
    site = gpu_site()
    facts = facts_of(site, environ={"LD_LIBRARY_PATH": "/cuda/lib64/stubs:/cuda/lib64", "PATH": "/usr/bin"})
    found = judged(site, facts, look_around(facts, ROOT))
    assert found["modules-stubs"].evidence == ("/cuda/lib64/stubs",)
    facts = facts_of(site, environ={"LD_LIBRARY_PATH": "/cuda/lib64", "PATH": "/usr/bin"})
    assert "modules-stubs" not in judged(site, facts, look_around(facts, ROOT))
