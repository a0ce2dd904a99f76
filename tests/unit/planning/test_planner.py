"""The planner: a function of its arguments. Every fact that decides an environment is in its fingerprint, no other is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from golden_files import Golden, Words, cray_site, facts_of, local_site, lock_of, place, request_for, slurm_site
from provision.errors import ConfigError, Fault, PlanError
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.model.facts import Cpu, Existing, Interpreter
from provision.model.operation import Command, InstallWheel, Prove
from provision.model.plan import Plan, Step, differences, fingerprint, held
from provision.planning.planner import make_plan
from provision.planning.preflight import image_faults
from provision.profile.site import Site
from provision.profile.stack import ONE_PROCESS_PROGRAMS

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
    assert proof.cpus_per_task == 4 * (arch.proof.ranks_per_node if program == "mirrored" else 1)
    devices = ", 3 devices each" if program == "mirrored" else ""
    assert held(plan)["proof"] == f"{program}: 1 nodes, 1 ranks each{devices}, srun --mpi=pmi2"
    for shape in ({"ranks_per_node": 2}, {"nodes": 2}):
        with pytest.raises(ConfigError, match=f"`{program}`") as caught:
            dataclasses.replace(proof, **shape)
        assert caught.value.exit_code == 2 and "proof.program" in str(caught.value.hint)
        words("plan", "\n".join(caught.value.to_lines()))


def test_the_plan_of_a_bare_machine_is_the_golden_one(golden: Golden) -> None:
    golden("local/plan.json", json.dumps(plan_for(local_site()).to_dict(), indent=1) + "\n")


def test_a_pointer_to_another_environment_is_flipped() -> None:
    plan = plan_for(local_site())
    pointers = {"haswell/tensorflow/2.15.1": "haswell/tensorflow/2.15.1-0000000000"}
    existing = dataclasses.replace(existing_for(plan, BEFORE_PUBLISH), pointers=pointers)
    assert actions(plan_for(local_site(), existing))["publish"] == "create"


def from_step(first: str | None, **others: str) -> dict[str, str]:
    """The actions of a build that has done everything before this step; None: everything."""
    done = STEPS.index(first) if first else len(STEPS)
    return {name: "keep" if index < done else "create" for index, name in enumerate(STEPS)} | others


@pytest.mark.parametrize(
    ("done", "wheel", "published", "wanted"),
    [
        (BEFORE_PUBLISH, True, True, from_step(None)),
        (BEFORE_PUBLISH, False, True, from_step(None)),  # the installed wheel needs no cache
        (BEFORE_PUBLISH, True, False, from_step("publish")),
        (frozenset(), True, True, from_step(None)),  # sealed: nothing in it is written any more
        (frozenset(), True, False, from_step("create", compile="reuse")),
        # A prefix that is half installed starts over.
        (BEFORE_PUBLISH - {"create"}, False, False, from_step("create")),
        (BEFORE_PUBLISH - {"install"}, False, False, from_step("create")),
        (BEFORE_PUBLISH - {"bytecode"}, True, False, from_step("bytecode", compile="reuse")),
        (BEFORE_PUBLISH - {"horovod"}, True, False, from_step("horovod", compile="reuse")),
        (BEFORE_PUBLISH - {"inspect"}, True, False, from_step("inspect")),
        (BEFORE_PUBLISH - {"candidate"}, True, False, from_step("candidate")),
        (BEFORE_PUBLISH - {"proof"}, True, False, from_step("proof")),
    ],
)
def test_a_build_continues_at_the_first_step_without_a_receipt(
    done: frozenset[str], wheel: bool, published: bool, wanted: dict[str, str]
) -> None:
    existing = existing_for(plan_for(local_site()), done, wheel=wheel, published=published)
    plan = plan_for(local_site(), existing)
    assert actions(plan) == wanted
    assert plan.done is (set(wanted.values()) == {"keep"})
    assert all(bool(one.operations) is (one.action == "create") and one.reason for one in plan.steps)
    if "install" not in done and "create" in done:
        assert plan.steps[0].reason.startswith("done again, because `install` did not finish; ")


def test_the_receipts_of_another_environment_count_for_nothing() -> None:
    plan = plan_for(local_site())
    other = plan_for(local_site(), compiler=dataclasses.replace(facts_of(local_site()).compiler, version="13.1.0"))
    found = actions(plan_for(local_site(), existing_for(other, BEFORE_PUBLISH, published=False)))
    assert plan.environment != other.environment
    assert set(found.values()) == {"create"}, "nor is the wheel of another compiler reused"


# What decides an environment


OTHER_LOCK = lock_of("tensorflow-2.15.1", "horovod==0.28.1", "numpy==1.26.4", "six==1.17.0", "tensorflow-cpu==2.15.1")


@pytest.mark.parametrize(
    ("part", "changes", "other_wheel"),
    [
        ("compiler", {"version": "13.1.0"}, True),
        ("compiler", {"cxx": "/opt/gcc/bin/g++"}, True),
        ("mpi", {"version": "4.1.0"}, True),
        ("mpi", {"show": "g++ -L/opt/mpich/lib -lmpi"}, True),
        ("python", {"version": "3.11.9"}, False),
        ("modules", None, False),  # in another order
        ("arch", {"target": "x86_64_v3"}, True),
        ("arch", {"environ": (("OMP_NUM_THREADS", "2"),)}, False),
        ("lock", None, False),  # six is not in the ABI
    ],
)
def test_a_decisive_fact_or_wish_makes_another_environment_and_is_shown(
    part: str, changes: dict[str, Any] | None, other_wheel: bool
) -> None:
    request, facts = request_for(slurm_site()), facts_of(slurm_site())
    asked: Any = request if part in ("arch", "lock") else facts
    before = getattr(asked, part)
    value = (
        OTHER_LOCK if part == "lock" else before[::-1] if changes is None else dataclasses.replace(before, **changes)
    )
    changed = dataclasses.replace(asked, **{part: value})
    here = make_plan(*((changed, facts) if asked is request else (request, changed)), Existing())
    planned = plan_for(slurm_site())
    assert here.environment.fingerprint != planned.environment.fingerprint
    assert here.prefix != planned.prefix
    assert len(differences(planned.identity, here.identity)) == 1 or part == "arch"
    assert (here.abi_key != planned.abi_key) is other_wheel


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
    """Nor the shape of the proof."""
    one, request = plan_for(slurm_site()), request_for(slurm_site())
    arch = dataclasses.replace(request.arch, proof=dataclasses.replace(request.arch.proof, nodes=1))
    two = make_plan(dataclasses.replace(request, arch=arch), facts_of(slurm_site(), **changes), Existing())
    assert (one.environment, one.identity, one.abi_key) == (two.environment, two.identity, two.abi_key)


def test_the_fingerprint_depends_on_every_value_but_not_on_the_order() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert fingerprint({"a": "1", "b": "2"}) != fingerprint({"a": "1", "b": "3"})
    assert len(fingerprint({})) == 10


def test_each_difference_has_one_line(words: Words) -> None:
    assert differences({"a": "1"}, {"a": "1"}) == []
    lines = differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"})
    assert [line.partition(":")[0] for line in lines] == ["b", "c", "d"]
    words("build", "\n".join(lines))


# The key of a wheel


def test_the_wheels_key_does_not_depend_on_the_prefix_with_an_mpi_wheel() -> None:
    site = local_site()
    elsewhere = dataclasses.replace(site, root="/other/root")
    other = make_plan(dataclasses.replace(request_for(site), lock=OTHER_LOCK), facts_of(site), Existing())
    for plan in (plan_for(elsewhere), other):
        assert plan.prefix != plan_for(site).prefix
        assert plan.abi_key == plan_for(site).abi_key


# What the steps do


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


# What is refused


def test_all_problems_of_the_probes_are_in_one_error() -> None:
    faults = tuple(
        Fault("missing", subject, f"no {subject}", hint=f"install {subject}", evidence=("x",))
        for subject in ("python", "compiler")
    )
    with pytest.raises(PlanError, match="no python") as caught:
        plan_for(local_site(), faults=faults, python=None)
    assert caught.value.hint == "install python"
    assert caught.value.evidence == ("x", "also: no compiler", "  x", "  hint: install compiler")
    assert [fault["subject"] for fault in caught.value.to_dict()["problems"]] == ["python", "compiler"]


@pytest.mark.parametrize("pins", [("tensorflow-cpu==2.15.0", "horovod==0.28.1"), ("tensorflow-cpu==2.15.1", "six==1")])
def test_a_lock_that_does_not_match_the_stack_is_refused(pins: tuple[str, ...], words: Words) -> None:
    request = dataclasses.replace(request_for(local_site()), lock=lock_of("tensorflow-2.15.1", *pins))
    with pytest.raises(PlanError) as caught:
        make_plan(request, facts_of(local_site()), Existing())
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


def test_an_image_is_packed_before_the_proof_and_on_the_path_of_users() -> None:
    site = local_site()
    packed = dataclasses.replace(site, archs=tuple(dataclasses.replace(arch, deliver="image") for arch in site.archs))
    before, after = plan_for(site), plan_for(packed)
    assert tuple(one.name for one in after.steps) == (*STEPS[:6], "pack", *STEPS[6:])
    assert after.environment != before.environment, "it is proved another way"
    folder = f"{after.prefix}/.provision/images"
    assert ("PATH", folder) in after.modulefile.prepend
    (proof,) = [one for one in step(after, "proof").operations if isinstance(one, Prove)]
    assert proof.deliver == f"{folder}/provision-deliver"
    request = request_for(packed)
    spack = dataclasses.replace(request, stack=dataclasses.replace(request.stack, backend="spack"))
    (fault,) = image_faults(spack)
    assert "cannot be packed into an image" in fault.message
    assert image_faults(request) == ()
