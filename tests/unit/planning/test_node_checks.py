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

from golden_files import facts_of, gpu_site, local_site, stack
from parts.disks import mounted
from provision.machine.configuration.shipped import load_stack
from provision.machine.files.tables import read_combinations
from provision.machine.probes.look_around import look_around, look_into, mount_of
from provision.model.check import Check
from provision.model.facts import CompilerFacts, Cpu, Facts, GpuFacts, MpiFacts, Surroundings
from provision.planning.node_checks import check_node, faults_of
from provision.profile.arch import Launcher
from provision.profile.site import Site

KNOWN = read_combinations()
ROOT = Path("/")


@pytest.fixture(autouse=True)
def quiet_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shell without the settings of the machine that runs the tests."""
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "CONDA_PREFIX", "LC_ALL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "PYTHONUSERBASE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()


def observed(site: Site | None = None, root: Path = ROOT, **changes: Any) -> dict[str, Check]:
    """What is seen on this machine, by the name of the check; `changes` are of the facts."""
    site = site or local_site()
    facts = facts_of(site, **changes)
    return judged(site, facts, look_around(facts, root))


def judged(site: Site, facts: Facts, around: Surroundings, *, runs_here: bool = True) -> dict[str, Check]:
    """The observations on these surroundings, by the name of the check; every one that is not good has a fix or evidence."""
    found = check_node(site.archs[0], stack(), facts, around, KNOWN, runs_here=runs_here)
    assert all(seen.hint or seen.evidence for seen in found if seen.state != "good")
    return {seen.name: seen for seen in found}


def states(found: dict[str, Check]) -> dict[str, str]:
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
    assert [fault.subject for fault in faults_of((seen,))] == ["root"]


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


PROXY = {"http_proxy": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("environ", "path", "seen"),
    [
        ({"PYTHONPATH": "/x"}, "/usr/bin", {"shell-python": "note"}),
        ({"HOROVOD_RANK": "3"}, "/usr/bin", {"shell-horovod": "note"}),
        (PROXY, "/usr/bin", {"shell-proxy": "note"}),
        ({**PROXY, "no_proxy": "localhost"}, "/usr/bin", {}),
        ({"LC_ALL": "xx_YY.UTF-8"}, "/usr/bin", {"shell-locale": "note"}),
        ({"LC_ALL": "C.UTF-8"}, "/usr/bin", {}),
        ({"CONDA_PREFIX": "/conda"}, "/conda/bin:/usr/bin", {"shell-conda": "note"}),
        ({"CONDA_PREFIX": "/conda"}, "/usr/bin", {}),
        ({"REQUESTS_CA_BUNDLE": "/gone.pem"}, "/usr/bin", {"shell-certificates": "note"}),
        ({"REQUESTS_CA_BUNDLE": __file__}, "/usr/bin", {}),
        ({"LDFLAGS": "-static", "CCL_ROOT": "/y"}, "/usr/bin", {}),  # a build does not see them: `shell-build` is good
    ],
)
def test_variables_of_the_shell(
    environ: dict[str, str], path: str, seen: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TMPDIR": "/tmp", **environ}.items():
        monkeypatch.setenv(name, value)
    found = observed(environ={"PATH": path})
    assert states(found) == seen
    assert "LDFLAGS" not in environ or found["shell-build"].message.endswith("CCL_ROOT LDFLAGS")


def test_the_tools_own_folder_on_path_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool, link = tmp_path / "tool" / "bin", tmp_path / "link"
    tool.mkdir(parents=True)
    (tool / "python3").symlink_to("/bin/true")
    link.symlink_to(tool)
    monkeypatch.setattr(sys, "executable", str(tool / "python3"))
    monkeypatch.setattr(sys, "prefix", str(tool.parent))
    for path, named in ((f"{tool}:/usr/bin", tool), (f"{link}:/bin", link), (f"/usr/bin:{tool}", None), ("/bin", None)):
        monkeypatch.setenv("PATH", path)
        found = observed().get("shell-tool")
        assert (found.state, f"`{named}` is on PATH" in found.message) == ("note", True) if found else named is None


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
    assert seen.message.endswith("numpy tensorflow-cpu")
    assert str(folder) in seen.evidence[0]


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "tmpdir"
    assert look_into(folder, try_program=True).runs
    assert list(folder.iterdir()) == []


# Values of the facts


def test_the_build_environment_of_the_profile_wins_over_the_modules() -> None:
    site = local_site()
    own = (("CRAYPE_LINK_TYPE", "dynamic"), ("CCL_ROOT", ""), ("LDFLAGS", ""))
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], build_environ=own),))
    set_by_modules = {"CRAYPE_LINK_TYPE": "static", "CCL_ROOT": "/x", "LDFLAGS": "-static"}
    found = observed(site, environ={"PATH": "/usr/bin", **set_by_modules})
    assert not [name for name in found if name.startswith("modules-")]


MPICH = MpiFacts(
    family="mpich", version="4.0.2", cxx="/opt/mpich/bin/mpicxx", show="g++", libraries=("/opt/mpich/lib/libmpi.so",)
)
KNL, MPIEXEC = {"target": "mic_knl"}, {"launcher": Launcher(name="mpiexec", options=())}
TMP = look_into(Path("/tmp"), try_program=False)
FEW_FILES = dataclasses.replace(TMP, free_files=1000)


def compiler(family: str, version: str) -> dict[str, Any]:
    """The facts of a machine with this compiler."""
    return {"compiler": CompilerFacts(family=family, version=version, cxx="/usr/bin/c++")}


def modules_set(**variables: str) -> dict[str, Any]:
    """The facts of a machine on which the modules set these variables."""
    return {"environ": {"PATH": "/usr/bin", **variables}}


def cuda(version: str) -> dict[str, Any]:
    """The facts of a machine with this CUDA."""
    return {"gpu": GpuFacts(cuda_home="/opt/cuda", cuda_version=version)}


@pytest.mark.parametrize(
    ("check", "state", "arch", "facts", "around"),
    [
        ("modules-python-home", "bad", {}, modules_set(PYTHONHOME="/x"), {}),
        ("modules-python-path", "note", {}, modules_set(PYTHONPATH="/x"), {}),
        ("modules-ccl", "bad", {}, modules_set(CCL_ROOT="/opt/intel/oneapi/ccl/latest"), {}),
        ("modules-flags", "note", {}, modules_set(LDFLAGS="-L/x"), {}),
        ("modules-flags", "bad", {}, modules_set(CXXFLAGS="-O2 -static"), {}),
        ("modules-horovod", "note", {}, modules_set(HOROVOD_GPU="CUDA"), {}),
        ("modules-static", "bad", {}, modules_set(CRAYPE_LINK_TYPE="static"), {}),
        (
            "modules-stubs",
            "note",
            {},
            {**cuda("12.4"), **modules_set(LD_LIBRARY_PATH="/cuda/lib64/stubs:/cuda/lib64")},
            {},
        ),
        ("modules-stubs", None, {}, {**cuda("12.4"), **modules_set(LD_LIBRARY_PATH="/cuda/lib64")}, {}),
        *(("wheel-glibc", "bad", {}, {}, {"glibc": glibc}) for glibc in ("2.12", "2.16")),
        *(("wheel-glibc", None, {}, {}, {"glibc": glibc}) for glibc in ("2.17", "2.36", None)),
        ("wheel-avx", "bad", {}, {"cpu": Cpu(target="nehalem", features=frozenset({"sse2", "ssse3"}))}, {}),
        ("compiler-target", "bad", KNL, compiler("gcc", "15.1.0"), {}),
        ("compiler-target", "note", KNL, compiler("clang", "19.1.0"), {}),
        ("compiler-target", None, KNL, compiler("gcc", "14.2.0"), {}),
        ("compiler-age", "note", {}, compiler("gcc", "7.5.0"), {}),
        ("mpi-static", "bad", {}, {"mpi": dataclasses.replace(MPICH, show="g++ -static -lmpi")}, {}),
        ("mpi-two", "bad", {}, {"mpi": MPICH, "modules": ("gcc/12", "openmpi/4.1", "mpich/4.0")}, {}),
        ("mpi-launcher", "note", MPIEXEC, {"mpi": MPICH}, {"mpiexec": "/opt/openmpi/bin/mpiexec"}),
        ("mpi-launcher", None, MPIEXEC, {"mpi": MPICH}, {"mpiexec": "/opt/mpich/bin/mpiexec"}),
        ("mpi-launcher", None, MPIEXEC, {"mpi": MPICH}, {"mpiexec": None}),
        ("driver-cuda", "bad", {}, cuda("12.4.131"), {"driver": "470.57.02"}),
        ("driver-cuda", "note", {}, cuda("11.8"), {"driver": "440.33"}),
        *(("driver-cuda", None, {}, cuda("12.4.131"), {"driver": driver}) for driver in ("525.60.13", None)),
        ("limit-shared-memory", "note", {}, {}, {"shared_memory_bytes": 64 * 2**20}),
        ("limit-memory", "note", {}, {}, {"available_memory_bytes": 10**8}),
        ("limit-processes", "note", {}, {}, {"process_limit": 100}),
        ("limit-open-files", "note", {}, {}, {"open_files_limit": 256}),
        ("limit-locked-memory", "note", {}, {}, {"infiniband": True, "locked_memory_bytes": 65536}),
        ("limit-locked-memory", None, {}, {}, {"infiniband": False, "locked_memory_bytes": 65536}),
        ("limit-locked-memory", None, {}, {}, {"infiniband": True, "locked_memory_bytes": None}),
        ("tmp-files", "note", {}, {}, {"tmp": FEW_FILES}),
        ("tmp-files", None, {}, {}, {"tmp": dataclasses.replace(TMP, free_files=None)}),
        ("root-files", "note", {}, {}, {"root": FEW_FILES}),
        ("root-locks", "note", {}, {}, {"root_mount": ("lustre", "rw,lazystatfs")}),
        ("root-locks", "note", {}, {}, {"root_mount": ("nfs", "rw,nolock,vers=3")}),
        ("root-locks", None, {}, {}, {"root_mount": ("lustre", "rw,flock,lazystatfs")}),
        ("root-locks", None, {}, {}, {"root_mount": ("lustre", "rw,localflock")}),
        ("root-locks", None, {}, {}, {"root_mount": ("nfs4", "rw,local_lock=none")}),
        ("root-locks", None, {}, {}, {"root_mount": ("ext4", "rw")}),
    ],
)
def test_a_bad_value_of_the_machine_is_seen(
    check: str, state: str | None, arch: dict[str, Any], facts: dict[str, Any], around: dict[str, Any]
) -> None:
    """And a good one of the same check is not."""
    site = gpu_site() if "gpu" in facts else local_site()
    site = dataclasses.replace(site, archs=(dataclasses.replace(site.archs[0], **arch),))
    seen = facts_of(site, **facts)
    found = judged(site, seen, dataclasses.replace(look_around(seen, ROOT), **around))
    assert (found[check].state if check in found else None) == state


def test_the_cpu_of_a_login_node_is_not_judged() -> None:
    facts = facts_of(local_site(), cpu=Cpu(target="nehalem", features=frozenset({"sse2"})))
    assert "wheel-avx" not in judged(local_site(), facts, look_around(facts, ROOT), runs_here=False)


def test_a_root_with_spaces() -> None:
    facts = facts_of(local_site())
    place = dataclasses.replace(facts.place, path="/site/my root")
    facts = dataclasses.replace(facts, place=place)
    assert observed(place=place)["root-spaces"].state == "bad"
    without = dataclasses.replace(stack(), horovod=None)
    around = look_around(facts, ROOT)
    seen = check_node(local_site().archs[0], without, facts, around, KNOWN, runs_here=True)
    assert [found.state for found in seen if found.name == "root-spaces"] == ["note"]
    arch = local_site().archs[0]
    arch = dataclasses.replace(arch, mpi=dataclasses.replace(arch.mpi, provider="site"))
    assert observed(dataclasses.replace(local_site(), archs=(arch,)), place=place)["root-spaces"].state == "note"


@pytest.mark.parametrize(
    ("check", "state", "modules", "driver"),
    [
        ("driver-cuda", "bad", (), "570.124.06"),
        ("driver-cuda", None, (), "580.95.05"),
        ("modules-cuda", "note", ("CUDA/12.6.0", "cuDNN/9.5.0.50-CUDA-12.6.0"), None),
        ("modules-cuda", None, ("gcc/12.2.0",), None),
    ],
)
def test_wheels_that_bring_cuda_need_a_driver_and_no_module(
    check: str, state: str | None, modules: tuple[str, ...], driver: str | None
) -> None:
    pytorch, facts = load_stack("pytorch-2.14.1"), facts_of(gpu_site(), gpu=None, modules=modules)
    around = dataclasses.replace(look_around(facts, ROOT), driver=driver)
    found = {seen.name: seen for seen in check_node(gpu_site().archs[0], pytorch, facts, around, KNOWN, runs_here=True)}
    assert (found[check].state if check in found else None) == state


# The page


def test_every_check_is_on_the_page_and_in_a_test() -> None:
    here = Path(__file__)
    source = (here.parents[3] / "provision/planning/node_checks.py").read_text(encoding="utf-8")
    checks = set(re.findall(r'(?:\b(?:bad|note|good)\(|\)\()\s*"([a-z-]+)",', source))
    checks |= set(re.findall(r'\("([a-z-]+)", around', source))
    assert {"tmp-writable", "root-files", "quota"} <= checks
    assert len(checks) > 20
    page = (here.parents[3] / "docs/reference/node-checks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE)) == checks
    tests = here.read_text(encoding="utf-8")
    assert [name for name in sorted(checks) if f'"{name}"' not in tests] == []


# File systems, limits, certificates and stubs


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
