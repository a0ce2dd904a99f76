"""The planner: a function of its arguments. Every fact that decides an environment is in its fingerprint, no other is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import Golden, Words, cray_site, facts_of, local_site, lock_of, place, request_for, slurm_site
from provision.errors import ConfigError, PlanError
from provision.horovod.flags import build_environ
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.model.facts import Cpu, Existing, Facts, Interpreter
from provision.model.operation import Command, InstallWheel, Prove, WriteFile
from provision.model.plan import Plan, Step, differences, fingerprint, held
from provision.model.problem import Problem
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.profile.site import Site
from provision.profile.stack import ONE_PROCESS_PROGRAMS, PROGRAMS

STEPS = ("create", "install", "bytecode", "compile", "horovod", "inspect", "candidate", "proof", "publish")
BEFORE_PUBLISH = frozenset(STEPS) - {"compile", "publish"}


def plan_for(site: Site, existing: Existing | None = None, **changes: object) -> Plan:
    """The plan at this site, with these facts changed."""
    return make_plan(request_for(site), facts_of(site, **changes), existing or Existing())


def step(plan: Plan, name: str) -> Step:
    """The step called `name`."""
    return next(one for one in plan.steps if one.name == name)


def commands(one: Step) -> list[Command]:
    """All commands of a step, those within other operations too."""
    found = []
    for operation in one.operations:
        for candidate in (operation, getattr(operation, "command", None), getattr(operation, "download", None)):
            if isinstance(candidate, Command):
                found.append(candidate)
    return found


def existing_for(plan: Plan, receipts: frozenset[str], *, wheel: bool = True, published: bool = True) -> Existing:
    """What would be there after these steps of `plan`."""
    environment = plan.environment
    pointer = f"{environment.arch}/{environment.name}/{environment.version}"
    return Existing(
        receipts={str(environment): receipts | ({"publish"} if published else set())},
        wheels=frozenset({plan.abi_key} if wheel else ()),
        pointers={pointer: str(environment)} if published else {},
    )


def actions(plan: Plan) -> dict[str, str]:
    """Each step's action."""
    return {one.name: one.action for one in plan.steps}


SITES = pytest.mark.parametrize("make_site", [local_site, slurm_site])


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_proof_runs_the_program_that_the_stack_names(program: str) -> None:
    request = request_for(local_site())
    request = dataclasses.replace(request, stack=dataclasses.replace(request.stack, proof_program=program))
    (proof,) = step(make_plan(request, facts_of(local_site()), Existing()), "proof").operations

    assert isinstance(proof, Prove)
    assert proof.program == f"/site/provision/proof/programs/{program}.py"


@pytest.mark.parametrize("program", ONE_PROCESS_PROGRAMS)
def test_the_proof_of_one_process_is_one_task_on_one_node(program: str, words: Words) -> None:
    request = request_for(slurm_site())
    arch = dataclasses.replace(
        request.arch,
        proof=dataclasses.replace(request.arch.proof, ranks_per_node=3),
        job=dataclasses.replace(request.arch.job, cpus_per_task=4),
    )
    stack = dataclasses.replace(request.stack, proof_program=program)
    request = dataclasses.replace(request, arch=arch, stack=stack)
    plan = make_plan(request, facts_of(slurm_site()), Existing())
    (proof,) = step(plan, "proof").operations

    assert isinstance(proof, Prove)
    assert (proof.strategy, proof.nodes, proof.ranks_per_node, proof.processes) == (program, 1, 1, 1)
    assert proof.devices == (arch.proof.ranks_per_node if program == "mirrored" else 1)
    assert proof.cpus_per_task == 4 * proof.devices
    devices = ", 3 devices each" if program == "mirrored" else ""
    assert held(plan)["proof"] == f"{program}: 1 nodes, 1 ranks each{devices}, srun --mpi=pmi2"
    for shape in ({"ranks_per_node": 2}, {"nodes": 2}):
        with pytest.raises(ConfigError, match=f"`{program}`") as caught:
            dataclasses.replace(proof, **shape)
        assert caught.value.exit_code == 2 and "proof.program" in str(caught.value.hint)
        words("plan", "\n".join(caught.value.to_lines()))


@SITES
def test_the_same_input_gives_the_same_plan_and_it_is_json(make_site: Callable[[], Site]) -> None:
    one, two = plan_for(make_site()).to_dict(), plan_for(make_site()).to_dict()
    assert one == two
    assert json.loads(json.dumps(one))["environment"] == one["environment"]


@SITES
def test_planning_looks_at_no_environment_variable_and_no_folder(
    make_site: Callable[[], Site], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = plan_for(make_site()).to_dict()
    for name in ("PROVISION_ROOT", "HOME", "CXX", "PATH", "SLURM_JOB_ID", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.chdir(tmp_path)
    assert plan_for(make_site()).to_dict() == before


def test_the_plan_of_a_bare_machine_is_the_golden_one(golden: Golden) -> None:
    golden("local/plan.json", json.dumps(plan_for(local_site()).to_dict(), indent=1) + "\n")


@SITES
def test_where_nothing_exists_everything_is_created_in_order(make_site: Callable[[], Site]) -> None:
    plan = plan_for(make_site())
    assert tuple(one.name for one in plan.steps) == STEPS
    assert set(actions(plan).values()) == {"create"}
    assert not plan.done
    assert all(one.operations and one.reason for one in plan.steps)


def test_where_all_is_done_and_published_nothing_is_left_to_do() -> None:
    plan = plan_for(local_site())
    again = plan_for(local_site(), existing_for(plan, BEFORE_PUBLISH))
    assert set(actions(again).values()) == {"keep"}
    assert again.done
    assert not any(one.operations for one in again.steps)


def test_an_installed_wheel_is_not_compiled_again_without_the_cache() -> None:
    plan = plan_for(local_site())
    assert plan_for(local_site(), existing_for(plan, BEFORE_PUBLISH, wheel=False)).done


def test_a_compiled_wheel_is_reused_by_a_new_environment() -> None:
    plan = plan_for(local_site())
    again = actions(plan_for(local_site(), existing_for(plan, frozenset(), published=False)))
    assert again == {**dict.fromkeys(STEPS, "create"), "compile": "reuse"}


def test_another_wheel_is_not_reused() -> None:
    assert actions(plan_for(local_site(), Existing(wheels=frozenset({"0123456789abcdef"}))))["compile"] == "create"


def test_what_is_proved_and_not_published_is_published_only() -> None:
    plan = plan_for(local_site())
    again = actions(plan_for(local_site(), existing_for(plan, BEFORE_PUBLISH, published=False)))
    assert again == {**dict.fromkeys(STEPS, "keep"), "publish": "create"}


def test_a_pointer_to_another_environment_is_flipped() -> None:
    plan = plan_for(local_site())
    pointers = {"haswell/tensorflow/2.15.1": "haswell/tensorflow/2.15.1-0000000000"}
    existing = dataclasses.replace(existing_for(plan, BEFORE_PUBLISH), pointers=pointers)
    assert actions(plan_for(local_site(), existing))["publish"] == "create"


@pytest.mark.parametrize("missing", ["horovod", "bytecode", "inspect", "candidate", "proof"])
def test_a_build_continues_at_the_first_step_without_a_receipt(missing: str) -> None:
    plan = plan_for(local_site())
    found = actions(plan_for(local_site(), existing_for(plan, BEFORE_PUBLISH - {missing})))
    place_in_order = STEPS.index(missing)
    for index, name in enumerate(STEPS):
        wanted = "create" if place_in_order <= index else "keep"
        if name == "compile" and missing in ("bytecode", "horovod"):
            wanted = "reuse"
        assert found[name] == ("create" if name == "publish" else wanted), name


@pytest.mark.parametrize("missing", ["create", "install"])
def test_a_half_installed_prefix_starts_over(missing: str) -> None:
    plan = plan_for(local_site())
    again = plan_for(local_site(), existing_for(plan, BEFORE_PUBLISH - {missing}, wheel=False))
    assert set(actions(again).values()) == {"create"}
    reason = "done again, because `install` did not finish; "
    assert again.steps[0].reason.startswith(reason) == (missing == "install")
    assert not again.steps[1].reason.startswith(reason), "it was not done before"


def test_the_receipts_of_another_environment_count_for_nothing() -> None:
    plan = plan_for(local_site())
    other = plan_for(local_site(), compiler=dataclasses.replace(facts_of(local_site()).compiler, version="13.1.0"))
    found = actions(plan_for(local_site(), existing_for(other, BEFORE_PUBLISH, published=False)))
    assert plan.environment != other.environment
    assert set(found.values()) == {"create"}


# What decides an environment


def compiler_13(facts: Facts) -> Facts:
    """Another compiler version."""
    assert facts.compiler is not None
    return dataclasses.replace(facts, compiler=dataclasses.replace(facts.compiler, version="13.1.0"))


def compiler_elsewhere(facts: Facts) -> Facts:
    """The same compiler version at another place."""
    assert facts.compiler is not None
    return dataclasses.replace(facts, compiler=dataclasses.replace(facts.compiler, cxx="/opt/gcc/bin/g++"))


def other_mpi(facts: Facts) -> Facts:
    """Another MPI version."""
    assert facts.mpi is not None
    return dataclasses.replace(facts, mpi=dataclasses.replace(facts.mpi, version="4.1.0"))


def other_mpi_flags(facts: Facts) -> Facts:
    """The same MPI version, linked otherwise."""
    assert facts.mpi is not None
    return dataclasses.replace(facts, mpi=dataclasses.replace(facts.mpi, show="g++ -L/opt/mpich/lib -lmpi"))


def other_python(facts: Facts) -> Facts:
    """Another patch level of Python."""
    assert facts.python is not None
    return dataclasses.replace(facts, python=dataclasses.replace(facts.python, version="3.11.9"))


def other_modules(facts: Facts) -> Facts:
    """The same modules in another order."""
    return dataclasses.replace(facts, modules=tuple(reversed(facts.modules)))


DECISIVE = [compiler_13, compiler_elsewhere, other_mpi, other_mpi_flags, other_python, other_modules]


@pytest.mark.parametrize("change", DECISIVE, ids=lambda change: change.__name__)
def test_a_decisive_fact_makes_another_environment_and_is_shown(change: Callable[[Facts], Facts]) -> None:
    request, facts = request_for(slurm_site()), facts_of(slurm_site())
    planned = make_plan(request, facts, Existing())
    here = make_plan(request, change(facts), Existing())
    assert here.environment.fingerprint != planned.environment.fingerprint
    assert here.prefix != planned.prefix
    assert len(differences(planned.identity, here.identity)) == 1


def other_lock(request: Request) -> Request:
    """One package more in the lock."""
    pins = ("horovod==0.28.1", "numpy==1.26.4", "six==1.17.0", "tensorflow-cpu==2.15.1")
    return dataclasses.replace(request, lock=lock_of("tensorflow-2.15.1", *pins))


def other_target(request: Request) -> Request:
    """Another CPU, and with it other flags."""
    return dataclasses.replace(request, arch=dataclasses.replace(request.arch, target="x86_64_v3"))


def other_environ(request: Request) -> Request:
    """Another variable set by the modulefile."""
    return dataclasses.replace(request, arch=dataclasses.replace(request.arch, environ=(("OMP_NUM_THREADS", "2"),)))


@pytest.mark.parametrize("change", [other_lock, other_target, other_environ], ids=lambda change: change.__name__)
def test_a_decisive_wish_makes_another_environment(change: Callable[[Request], Request]) -> None:
    request, facts = request_for(slurm_site()), facts_of(slurm_site())
    planned, here = make_plan(request, facts, Existing()), make_plan(change(request), facts, Existing())
    assert here.environment.fingerprint != planned.environment.fingerprint
    assert differences(planned.identity, here.identity)


def test_the_cpu_decides_where_the_target_is_native() -> None:
    zen3 = Cpu(target="zen3", features=frozenset())
    assert plan_for(local_site(), cpu=zen3).environment.arch == "zen3"
    assert plan_for(slurm_site(), cpu=zen3).environment == plan_for(slurm_site()).environment


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "n2"},
        {"cores": 64},
        {"uv": None},
        {"job": "43"},
        {"tool_python": "/opt/python"},
        {"place": place(free_bytes=1, free_inodes=1, writable=False)},
        {"environ": {"HOME": "/site/home/a", "PATH": "/x"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_circumstance_decides_nothing(changes: dict[str, object]) -> None:
    one, two = plan_for(slurm_site()), plan_for(slurm_site(), **changes)
    assert one.environment == two.environment
    assert one.identity == two.identity
    assert one.abi_key == two.abi_key


def test_the_shape_of_the_proof_and_of_the_job_decides_nothing() -> None:
    request, facts = request_for(slurm_site()), facts_of(slurm_site())
    arch = dataclasses.replace(request.arch, proof=dataclasses.replace(request.arch.proof, nodes=1))
    changed = make_plan(dataclasses.replace(request, arch=arch), facts, Existing())
    assert changed.environment == make_plan(request, facts, Existing()).environment


def test_the_fingerprint_depends_on_every_value_but_not_on_the_order() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert fingerprint({"a": "1", "b": "2"}) != fingerprint({"a": "1", "b": "3"})
    assert len(fingerprint({})) == 10


def test_each_difference_has_one_line(words: Words) -> None:
    assert differences({"a": "1"}, {"a": "1"}) == []
    lines = differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"})
    assert [line.partition(":")[0] for line in lines] == ["b", "c", "d"]
    assert "'2'" in lines[0] and "'4'" in lines[0] and "'3'" in lines[1] and "'5'" in lines[2]
    words("build", "\n".join(lines))


# The key of a wheel


@SITES
def test_the_wheels_key_depends_on_framework_lock_and_compiler(make_site: Callable[[], Site]) -> None:
    request, facts = request_for(make_site()), facts_of(make_site())
    key = make_plan(request, facts, Existing()).abi_key
    assert make_plan(request, compiler_13(facts), Existing()).abi_key != key
    assert make_plan(other_lock(request), facts, Existing()).abi_key == key, "six is not in the ABI"


def test_the_wheels_key_depends_on_the_sites_mpi() -> None:
    facts = facts_of(slurm_site())
    key = plan_for(slurm_site()).abi_key
    for change in (other_mpi, other_mpi_flags):
        assert make_plan(request_for(slurm_site()), change(facts), Existing()).abi_key != key


def test_the_wheels_key_does_not_depend_on_the_prefix_with_an_mpi_wheel() -> None:
    site = local_site()
    elsewhere = dataclasses.replace(site, root="/other/root")
    assert plan_for(site).abi_key == plan_for(elsewhere).abi_key
    assert plan_for(site).prefix != plan_for(elsewhere).prefix
    other = make_plan(other_lock(request_for(site)), facts_of(site), Existing())
    assert other.prefix != plan_for(site).prefix
    assert other.abi_key == plan_for(site).abi_key


# What the steps do


@SITES
def test_horovods_flags_are_explicit(make_site: Callable[[], Site]) -> None:
    build = next(one for one in commands(step(plan_for(make_site()), "compile")) if "wheel" in one.argv)
    environ = dict(build.environ)
    wanted = {
        "HOROVOD_WITH_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "CXX": "/site/gcc/bin/g++",
    }
    assert {name: environ.get(name) for name in wanted} == wanted
    assert environ["HOROVOD_BUILD_ARCH_FLAGS"] == "-march=haswell -mtune=haswell"
    for flag in ("HOROVOD_WITHOUT_MPI", "HOROVOD_WITH_GLOO", "HOROVOD_WITHOUT_TENSORFLOW", "HOROVOD_GPU_OPERATIONS"):
        assert flag not in environ


def test_the_flags_say_nothing_twice_and_nothing_by_leaving_it_out() -> None:
    names = set(build_environ(cxx="c", arch_flags="-march=x"))
    for name in names:
        assert name.replace("_WITHOUT_", "_WITH_") not in names - {name}


@SITES
def test_tensorflow_is_installed_before_horovod_is_compiled_and_installed(make_site: Callable[[], Site]) -> None:
    plan = plan_for(make_site())
    order = [one.name for one in plan.steps]
    assert order.index("install") < order.index("compile") < order.index("horovod") < order.index("proof")
    files = [one for one in step(plan, "install").operations if isinstance(one, WriteFile)]
    assert "tensorflow-cpu==2.15.1" in files[0].text
    assert not any("horovod==" in file.text for file in files)
    build = next(one for one in commands(step(plan, "compile")) if "wheel" in one.argv)
    assert "--no-build-isolation" in build.argv, "isolated it would not see the TensorFlow it is compiled against"
    assert build.argv[0] == f"{plan.prefix}/bin/python"


@SITES
@pytest.mark.parametrize("uv", ["/site/provision/bin/uv", None])
def test_everything_is_installed_by_its_hashes(make_site: Callable[[], Site], uv: str | None) -> None:
    plan = plan_for(make_site(), uv=uv)
    program = "/site/provision/bin/uv" if uv else "/site/provision/bin/python"
    installs = [one for name in ("install", "compile") for one in commands(step(plan, name)) if "-r" in one.argv]
    assert len(installs) == (4 if make_site is local_site else 3)
    for one in installs:
        assert "--require-hashes" in one.argv
        assert "--no-deps" in one.argv
        # What pip downloads is compiled for the environment: its own pip downloads it.
        assert one.argv[0] == (f"{plan.prefix}/bin/python" if "download" in one.argv else program)
    horovod = next(one for one in step(plan, "horovod").operations if isinstance(one, InstallWheel))
    assert horovod.key == plan.abi_key
    assert horovod.command.argv[0] == program


@SITES
def test_nothing_is_written_outside_of_the_root(make_site: Callable[[], Site]) -> None:
    plan = plan_for(make_site())
    for one in plan.steps:
        for operation in one.operations:
            path = getattr(operation, "path", None)
            if isinstance(path, str):
                assert path.startswith("/site/root/"), path
    create = step(plan, "create").operations[0]
    assert getattr(create, "path", None) == plan.prefix


def test_publishing_is_the_last_step_and_the_proof_comes_before_it() -> None:
    names = [one.name for one in plan_for(slurm_site()).steps]
    assert names[-2:] == ["proof", "publish"]


# What is refused


def test_all_problems_of_the_probes_are_in_one_error() -> None:
    problems = (
        Problem(
            kind="missing",
            subject="python",
            message="there is no Python",
            hint="install one",
            evidence=("looked at PATH",),
        ),
        Problem(
            kind="missing",
            subject="compiler",
            message="there is no compiler",
            hint="install gcc",
            evidence=("looked too",),
        ),
    )
    with pytest.raises(PlanError, match="there is no Python") as caught:
        plan_for(local_site(), problems=problems, python=None)
    assert caught.value.hint == "install one"
    evidence = ("looked at PATH", "also: there is no compiler", "  looked too", "  hint: install gcc")
    assert caught.value.evidence == evidence
    assert [problem["subject"] for problem in caught.value.to_dict()["problems"]] == ["python", "compiler"]


@pytest.mark.parametrize("pins", [("tensorflow-cpu==2.15.0", "horovod==0.28.1"), ("tensorflow-cpu==2.15.1", "six==1")])
def test_a_lock_that_does_not_match_the_stack_is_refused(pins: tuple[str, ...], words: Words) -> None:
    request = dataclasses.replace(request_for(local_site()), lock=lock_of("tensorflow-2.15.1", *pins))
    with pytest.raises(PlanError) as caught:
        make_plan(request, facts_of(local_site()), Existing())
    assert "provision lock" in str(caught.value.hint)
    words("plan", "\n".join(caught.value.to_lines()))


def test_facts_without_a_part_and_without_a_reason_are_refused() -> None:
    with pytest.raises(PlanError, match="gave no reason"):
        plan_for(local_site(), python=None)
    with pytest.raises(PlanError, match="gave no reason"):
        plan_for(slurm_site(), mpi=None)


def test_a_python_of_another_minor_version_has_other_paths() -> None:
    older = Interpreter(executable="/site/python/bin/python3.10", version="3.10.9", tag="cpython-310 linux")
    bytecode = commands(step(plan_for(local_site(), python=older), "bytecode"))[0]
    assert bytecode.argv[-1].endswith("/lib/python3.10/site-packages")


OLD = Interpreter(executable="/site/python/bin/python3.7", version="3.7.16", tag="cpython-37m linux", own_venv=True)


@pytest.mark.parametrize("uv", [None, "/site/provision/bin/uv"])
def test_a_python_that_virtualenv_has_outlived_makes_its_own_environments(uv: str | None) -> None:
    plan = plan_for(local_site(), python=OLD, uv=uv)
    assert commands(step(plan, "create"))[0].argv == (OLD.executable, "-m", "venv", plan.prefix)
    tools = next(one.argv for one in commands(step(plan, "compile")) if "venv" in one.argv)
    # The folder of build tools needs a pip of its own only where pip has to install into it.
    assert ("--without-pip" in tools) is (uv is not None)
    assert not [one for every in plan.steps for one in commands(every) if "virtualenv" in one.argv]


def test_the_tools_own_pip_is_not_run_by_a_python_that_it_does_not_support() -> None:
    plan = plan_for(local_site(), python=OLD, uv=None)
    installs = [one.argv for every in plan.steps for one in commands(every) if "install" in one.argv]
    assert len(installs) == 4
    assert not [argv for argv in installs if "--python" in argv]
    assert [argv[0] for argv in installs].count(f"{plan.prefix}/bin/python") == 3


# What is wrong


def test_a_python_whose_pip_is_too_old_for_the_packages_needs_uv(words: Words) -> None:
    oldest = Interpreter(
        executable="/site/python/bin/python3.6", version="3.6.1", tag="cpython-36m linux", own_venv=True
    )
    assert plan_for(local_site(), python=oldest, uv="/site/provision/bin/uv").steps
    with pytest.raises(PlanError, match=r"`uv`.* 3\.6\.1 ") as caught:
        plan_for(local_site(), python=oldest, uv=None)
    words("plan", "\n".join(caught.value.to_lines()))


def test_two_environments_of_one_module_are_distinguished() -> None:
    request, facts = request_for(slurm_site()), facts_of(slurm_site())
    prints = set()
    for environ in ((("A", "1 B=2"),), (("A", "1"), ("B", "2"))):
        arch = dataclasses.replace(request.arch, environ=environ)
        plan = make_plan(dataclasses.replace(request, arch=arch), facts, Existing())
        prints.add(plan.environment.fingerprint)
    assert len(prints) == 2


# Other keys of a profile.


def test_wrappers_and_switches_of_a_cray_reach_the_compiler_and_the_fingerprint() -> None:
    plan = plan_for(cray_site())
    (wheel,) = [one for one in commands(step(plan, "compile")) if "wheel" in one.argv]
    assert dict(wheel.environ)["CC"] == "cc"
    assert dict(wheel.environ)["CRAYPE_LINK_TYPE"] == "dynamic"
    assert plan.identity["build environment"] == "CC=cc CRAYPE_LINK_TYPE=dynamic"
    assert plan.identity["modules"] == "-PrgEnv-intel -atp PrgEnv-gnu"
    assert "build environment" not in plan_for(slurm_site()).identity


def test_the_modulefile_unloads_what_the_build_unloaded() -> None:
    plan = plan_for(cray_site())
    assert plan.modulefile.unload == ("PrgEnv-intel", "atp")
    assert dict(plan.modulefile.environ)["OMP_NUM_THREADS"] == "32"
    lua, tcl = (emit_modulefile(plan.modulefile, kind, "p") for kind in ("lua", "tcl"))
    assert lua.index('unload("PrgEnv-intel")') < lua.index('depends_on("PrgEnv-gnu")')
    assert tcl.index('module unload "atp"') < tcl.index('depends-on "PrgEnv-gnu"')


def test_on_a_service_node_the_launcher_starts_what_needs_the_archs_cpu() -> None:
    plan = plan_for(cray_site(script_on="service-node"))
    (wheel,) = [one for one in commands(step(plan, "compile")) if "wheel" in one.argv]
    (inspect,) = commands(step(plan, "inspect"))
    for one in (wheel, inspect):
        assert one.launcher is not None
        assert one.launcher.name == "aprun"
    # What fetches and installs runs where the script runs: there is no network beyond.
    for name in ("create", "install", "horovod"):
        assert all(one.launcher is None for one in commands(step(plan, name)))
    (here,) = [one for one in commands(step(plan_for(cray_site()), "compile")) if "wheel" in one.argv]
    assert here.launcher is None


def builds(*finished: str, unfinished: str | None = None, broken: str | None = None) -> Existing:
    """These builds of the environment exist."""
    first = plan_for(local_site()).environment
    names = {f"{first}{number}": BEFORE_PUBLISH | {"publish"} for number in finished}
    if unfinished is not None:
        names[f"{first}{unfinished}"] = frozenset({"create"})
    return Existing(receipts=names, broken={} if broken is None else {f"{first}{broken}": "tensorflow: it is missing"})


@pytest.mark.parametrize(
    ("existing", "rebuild", "number"),
    [
        (builds(), False, 1),
        (builds(""), False, 1),
        (builds("", broken=""), False, 2),
        (builds("", ".2", broken=""), False, 2),
        (builds("", ".2", broken=".2"), False, 3),
        (builds(""), True, 2),
        (builds("", ".9"), True, 10),
        (builds("", unfinished=".2"), True, 2),
        (builds("", unfinished=".2", broken=""), False, 2),
        (builds(unfinished=""), True, 1),
    ],
)
def test_a_broken_environment_is_built_again_beside(existing: Existing, rebuild: bool, number: int) -> None:
    request = dataclasses.replace(request_for(local_site()), rebuild=rebuild)
    plan = make_plan(request, facts_of(local_site()), existing)
    assert plan.environment.number == number
    assert plan.prefix.endswith(str(plan.environment).rpartition("/")[2])
    assert fingerprint(plan.identity) == plan.environment.base
    assert (plan.broken is not None) == (number > 1 and f"{plan.environment.rebuilt(number - 1)}" in existing.broken)
