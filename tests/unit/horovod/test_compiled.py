"""Packages of `[compiled]`: compiled by Horovod's steps with the wrapper for C, with a key and an identity of their own."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words, cray_site, facts_of, local_site, lock_of, request_for, slurm_site
from provision.errors import PlanError
from provision.horovod.wheel import QUICK, c_wrapper, linker_options
from provision.knowledge.compilable import COMPILABLE
from provision.model.facts import Existing, Facts
from provision.model.operation import Command, FetchSource, Inspect, KeepWheel, Together, Unpack, WriteFile
from provision.model.plan import Plan, Step
from provision.model.request import Request
from provision.planning.plan_text import plan_lines, sum_of
from provision.planning.planner import make_plan
from provision.profile.site import Site

NAME = next(iter(COMPILABLE))
PINS = ("horovod==0.28.1", f"{NAME}==4.1.2", "numpy==1.26.4", "tensorflow-cpu==2.15.1")


def request_with(site: Site, *, horovod: bool = True) -> Request:
    """A request for a stack that names the package."""
    request = request_for(site)
    stack = dataclasses.replace(request.stack, compiled=((NAME, "4.1.2"),))
    if not horovod:
        stack = dataclasses.replace(stack, horovod=None, proof_program="multiworker")
    return dataclasses.replace(request, stack=stack, lock=lock_of("tensorflow-2.15.1", *PINS))


def facts_with(site: Site, **changes: object) -> Facts:
    """A machine whose MPI has a wrapper for C."""
    facts = facts_of(site)
    mpi = dataclasses.replace(facts.mpi, cc="/site/mpich/bin/mpicc") if facts.mpi else None
    return dataclasses.replace(facts, **{"mpi": mpi, **changes})  # type: ignore[arg-type]


def plan_of(site: Site, request: Request | None = None, **changes: object) -> Plan:
    """The plan at this site, with these facts changed."""
    return make_plan(request or request_with(site), facts_with(site, **changes), Existing())


def step(plan: Plan, name: str) -> Step:
    """The step called `name`."""
    return next(one for one in plan.steps if one.name == name)


def compiler(plan: Plan) -> Command:
    """The command that compiles the package."""
    (together,) = [one for one in step(plan, "compile").operations if isinstance(one, Together)]
    return dict(together.commands)[f"compile-{NAME}"]


@pytest.mark.parametrize("make_site", [local_site, slurm_site])
def test_the_package_is_compiled_beside_horovod_in_one_step(make_site: Callable[[], Site]) -> None:
    plan = plan_of(make_site())
    names = [one.name for one in plan.steps]
    assert names[3:6] == ["compile", "horovod", NAME]
    assert step(plan, "compile").title == f"Horovod 0.28.1+provision.1 and {NAME} 4.1.2 from source"
    operations = step(plan, "compile").operations
    (together,) = [one for one in operations if isinstance(one, Together)]
    assert [log for log, _ in together.commands] == ["compile", f"compile-{NAME}"]
    wheels = [command.argv[command.argv.index("--wheel-dir") + 1] for _, command in together.commands]
    kept = [one for one in operations if isinstance(one, KeepWheel)]
    assert ([one.folder for one in kept], tuple(one.key for one in kept)) == (wheels, plan.wheels)
    assert sum("virtualenv" in one.argv for one in operations if isinstance(one, Command)) == 1
    assert ", 1 to compile" in sum_of(plan, {})
    text = "\n".join(plan_lines(plan, expected={}, commands=True))
    assert text.count("-m pip wheel") == 2
    installed = next(one for one in step(plan, "install").operations if isinstance(one, WriteFile))
    assert NAME not in installed.text and "horovod" not in installed.text and "numpy" in installed.text


@pytest.mark.parametrize("number", [0, 1])
def test_only_a_wheel_that_is_not_cached_is_compiled(number: int) -> None:
    site = slurm_site()
    keys = plan_of(site).wheels
    plan = make_plan(request_with(site), facts_with(site), Existing(wheels=frozenset({keys[number]})))
    compiling = step(plan, "compile")
    assert (compiling.action, compiling.reason) == ("create", f"no wheel {keys[1 - number]} yet")
    assert [one.key for one in compiling.operations if isinstance(one, KeepWheel)] == [keys[1 - number]]
    assert not any(isinstance(one, Together) for one in compiling.operations)
    both = make_plan(request_with(site), facts_with(site), Existing(wheels=frozenset(keys)))
    assert step(both, "compile").action == "reuse" and all(key in step(both, "compile").reason for key in keys)


def test_a_launcher_that_may_refuse_a_second_program_starts_one_after_the_other() -> None:
    operations = step(plan_of(cray_site(script_on="service-node")), "compile").operations
    assert not any(isinstance(one, Together) for one in operations)
    launched = [one for one in operations if isinstance(one, Command) and one.launcher]
    assert [one.argv[-1].rpartition("/")[2] for one in launched] == ["horovod", NAME]


def test_the_wrapper_for_c_compiles_it_and_the_linker_gets_a_path_that_no_shell_expands() -> None:
    site, here = slurm_site(), local_site()
    environ = dict(compiler(plan_of(site)).environ)
    assert environ["MPICC"] == "/site/mpich/bin/mpicc"
    assert "-march=haswell" in environ["CFLAGS"]
    assert environ["PYTHONPATH"].endswith("/tools/lib/python3.11/site-packages")
    assert environ["LDFLAGS"].startswith("-L/site/mpich/lib -Wl,@")
    plan = plan_of(here)
    environ = dict(compiler(plan).environ)
    assert environ["MPICC"] == f"{plan.prefix}/bin/mpicc"
    (link,) = [one for one in step(plan, "compile").operations if isinstance(one, WriteFile) and "link" in one.path]
    assert environ["LDFLAGS"] == f"-L{plan.prefix}/lib -Wl,@{link.path}" and link.text == '-rpath="$ORIGIN/../../.."\n'
    assert linker_options(("/a/lib/libmpi.so", "/a/lib/libmpicxx.so")) == '-rpath="/a/lib"\n'


def test_the_wrapper_in_a_prefix_leaves_that_prefix_out_of_the_wheel(tmp_path: Path) -> None:
    """The wrapper of the `mpich` wheel adds `-Wl,-rpath -Wl,PREFIX/lib`; another prefix uses the compiled wheel too."""
    plan = plan_of(local_site())
    environ = dict(compiler(plan).environ)
    (program,) = [
        one for one in step(plan, "compile").operations if isinstance(one, WriteFile) and one.path.endswith("/cc")
    ]
    assert environ["MPICH_CC"] == environ["OMPI_CC"] == program.path
    script = tmp_path / "cc"
    script.write_text(program.text.replace("exec gcc", "printf '%s\\n'"))
    words = [
        "-shared",
        "-Wl,@/link.txt",
        "-Wl,-rpath",
        "-Wl,/prefix/lib",
        "-Wl,-rpath=/a",
        "-L/prefix/lib",
        "a b.o",
        "-lmpi",
    ]
    done = subprocess.run(["bash", str(script), *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-shared", "-Wl,@/link.txt", "-L/prefix/lib", "a b.o", "-lmpi"]
    assert "MPICH_CC" not in dict(compiler(plan_of(slurm_site())).environ)


def test_only_the_source_of_the_lock_is_downloaded_and_no_patch_of_horovod_applies() -> None:
    operations = step(plan_of(local_site()), "compile").operations
    _, fetch = (one for one in operations if isinstance(one, FetchSource))
    argv = fetch.download.argv
    assert argv[argv.index("--no-binary") + 1] == NAME and "--require-hashes" in argv
    assert PurePosixPath(fetch.path).name == f"{NAME}-4.1.2.tar.gz"
    assert [len(one.patches) for one in operations if isinstance(one, Unpack)] == [1, 0]


def test_its_wheel_serves_every_framework_of_one_python_and_mpi() -> None:
    site = slurm_site()
    request = request_with(site)
    newer = dataclasses.replace(request.stack.framework, version="2.15.0")
    lock = lock_of("tensorflow-2.15.1", *PINS[:-1], "tensorflow-cpu==2.15.0")
    other = plan_of(
        site, dataclasses.replace(request, stack=dataclasses.replace(request.stack, framework=newer), lock=lock)
    )
    one, facts = plan_of(site), facts_with(site)
    assert one.wheels[1] == other.wheels[1] and one.wheels[0] != other.wheels[0]
    assert facts.mpi and facts.python and facts.compiler
    for changes in (
        {"mpi": dataclasses.replace(facts.mpi, version="4.1")},
        {"python": dataclasses.replace(facts.python, tag="cpython-312")},
        {"compiler": dataclasses.replace(facts.compiler, version="13.1.0")},
    ):
        assert plan_of(site, **changes).wheels[1] != one.wheels[1]


def test_the_package_is_in_the_identity_and_a_stack_without_it_keeps_its_fingerprint() -> None:
    site = slurm_site()
    plan = plan_of(site)
    assert plan.identity["compiled"].startswith(f"{NAME} 4.1.2 sha256:") and plan.identity["compiled"].endswith(QUICK)
    without = make_plan(request_for(site), facts_of(site), Existing())
    assert "compiled" not in without.identity and len(without.wheels) == 1


def test_the_inspection_loads_the_compiled_module_and_compares_its_version() -> None:
    plan = plan_of(slurm_site())
    (inspect,) = step(plan, "inspect").operations
    assert isinstance(inspect, Inspect)
    argv = inspect.command.argv
    assert argv[argv.index("--compiled") + 1] == COMPILABLE[NAME].module
    assert (NAME, "4.1.2") in inspect.expectation.versions


def test_it_is_compiled_without_horovod_too() -> None:
    plan = plan_of(slurm_site(), request_with(slurm_site(), horovod=False))
    assert [one.name for one in plan.steps][3:5] == ["compile", NAME]
    assert plan.abi_key is None and len(plan.wheels) == 1
    assert plan.identity["compiler"] and plan.identity["mpi"] and "horovod" not in plan.identity


def test_an_mpi_without_a_wrapper_for_c_is_refused(words: Words) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(request_with(slurm_site()), facts_of(slurm_site()), Existing())
    words("plan", "\n".join(caught.value.to_lines()))


def test_a_lock_that_allows_wheels_of_what_is_compiled_is_refused(words: Words) -> None:
    request = request_with(local_site())
    text = request.lock.text
    two = dataclasses.replace(
        request.lock,
        pins=tuple(
            dataclasses.replace(pin, hashes=(*pin.hashes, "sha256:" + "1" * 64)) if pin.name == NAME else pin
            for pin in request.lock.pins
        ),
        text=text,
    )
    with pytest.raises(PlanError) as caught:
        plan_of(local_site(), dataclasses.replace(request, lock=two))
    words("plan", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize(
    ("cxx", "cc"),
    [
        ("/opt/mpich/bin/mpicxx", "/opt/mpich/bin/mpicc"),
        ("/usr/bin/mpicxx.mpich", "/usr/bin/mpicc.mpich"),
        ("/usr/bin/mpic++", "/usr/bin/mpicc"),
        ("/opt/openmpi/bin/mpiCC", "/opt/openmpi/bin/mpicc"),
        ("/opt/intel/bin/mpiicpc", "/opt/intel/bin/mpiicc"),
        ("/opt/intel/bin/mpiicpx", "/opt/intel/bin/mpiicx"),
        ("/opt/cray/pe/bin/CC", "/opt/cray/pe/bin/cc"),
        ("mpicxx", "mpicc"),
        ("/site/bin/our-wrapper", "/site/bin/mpicc"),
    ],
)
def test_the_wrapper_for_c_is_beside_that_for_cxx(cxx: str, cc: str) -> None:
    assert c_wrapper(cxx) == cc
