"""Backends: the planner knows none by name, and everything but a backend's own steps is the same for each."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from golden_files import Words, facts_of, local_site, request_for
from provision import backends
from provision.backends import backend_for
from provision.backends.backend import Construction, Row
from provision.errors import ConfigError
from provision.model.facts import Existing, Facts
from provision.model.layout import EnvironmentId, Layout
from provision.model.operation import Command, Inspect
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.profile.stack import BACKENDS, BackendName, Stack, read_stack

OURS = ("inspect", "candidate", "proof", "publish")


@dataclasses.dataclass(frozen=True)
class CopyDraft:
    """A backend of this test: it copies a folder of packages that is ready."""

    commit: str
    identity: Mapping[str, str]
    compiler: str = ""
    mpi: str = "MPICH 9.9; from the copy"
    horovod: str = "0.28.1+copied"
    abi_key: str | None = None

    def construct(self, layout: Layout, environment: EnvironmentId, existing: Existing, plan_text: str) -> Construction:
        """Copy, then install."""
        view = f"{layout.prefix(environment)}/view"
        return Construction(
            python=f"{view}/bin/python3",
            rows=(
                Row(name="copy", title="a copy", reason="of the view", operations=(Command(argv=("cp", view)),)),
                Row(name="install", title="links", reason=plan_text, operations=(Command(argv=("ln", view)),)),
            ),
            not_fetched=() if self.commit in existing.sources else (self.commit,),
            prepend=(("PATH", f"{view}/bin"), ("CMAKE_PREFIX_PATH", view)),
            environ=(("COPY_VIEW", view),),
            mpi_libraries=(f"{view}/lib/libmpi.so",),
        )


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> Request:
    """A request whose stack names a backend `copy`, which is registered for this test only."""

    def draft(request: Request, facts: Facts, target: str) -> CopyDraft:
        return CopyDraft(commit="abc", identity={"commit": "abc", "target": f"{target} copied"})

    module: Any = types.ModuleType("copying_backend")
    module.draft = draft
    monkeypatch.setitem(sys.modules, "copying_backend", module)
    monkeypatch.setitem(backends.MODULES, "copy", "copying_backend")  # type: ignore[misc]
    request = request_for(local_site())
    stack = dataclasses.replace(request.stack, backend="copy")  # type: ignore[arg-type]
    return dataclasses.replace(request, stack=stack)


def plan_of(request: Request, existing: Existing | None = None) -> Plan:
    """The plan on the hand-made machine."""
    return make_plan(request, facts_of(local_site()), existing or Existing())


def test_another_backend_brings_its_own_steps_before_those_that_all_have(copying: Request) -> None:
    plan = plan_of(copying)
    assert tuple(step.name for step in plan.steps) == ("copy", "install", *OURS)
    assert plan.steps[0].operations == (Command(argv=("cp", f"{plan.prefix}/view")),)
    venv = plan_of(dataclasses.replace(copying, stack=dataclasses.replace(copying.stack, backend="venv")))
    assert [step.title for step in plan.steps[-4:]] == [step.title for step in venv.steps[-4:]]


def test_its_paths_and_variables_are_in_the_modulefile(copying: Request) -> None:
    plan = plan_of(copying)
    view = f"{plan.prefix}/view"
    assert plan.modulefile.prepend == (("PATH", f"{view}/bin"), ("CMAKE_PREFIX_PATH", view))
    assert dict(plan.modulefile.environ)["COPY_VIEW"] == view
    assert "VIRTUAL_ENV" not in dict(plan.modulefile.environ)
    assert dict(plan.modulefile.facts)["horovod"] == "0.28.1+copied"
    assert dict(plan.modulefile.facts)["mpi"] == "MPICH 9.9"


def test_the_inspection_runs_its_python_and_expects_its_mpi(copying: Request) -> None:
    plan = plan_of(copying)
    (inspect,) = next(step for step in plan.steps if step.name == "inspect").operations
    assert isinstance(inspect, Inspect)
    assert inspect.command.argv[0] == f"{plan.prefix}/view/bin/python3"
    assert inspect.expectation.mpi_libraries == (f"{plan.prefix}/view/lib/libmpi.so",)


def test_its_identity_decides_the_fingerprint_and_names_the_backend(copying: Request) -> None:
    plan = plan_of(copying)
    assert plan.identity["backend"] == "copy"
    assert plan.identity["commit"] == "abc"
    assert plan.identity["target"].endswith(" copied")
    assert "lock" not in plan.identity
    assert list(plan.identity)[:2] == ["recipe", "backend"]


def test_what_it_has_to_download_is_in_the_plan(copying: Request) -> None:
    assert plan_of(copying).not_fetched == ("abc",)
    assert plan_of(copying).asks_network
    assert plan_of(copying, Existing(sources=frozenset({"abc"}))).not_fetched == ()


def test_a_step_that_can_be_repeated_in_place_is_kept_without_the_ones_behind_it(copying: Request) -> None:
    environment = str(plan_of(copying).environment)
    plan = plan_of(copying, Existing(receipts={environment: frozenset({"copy"})}))
    assert [step.action for step in plan.steps] == ["keep", *["create"] * 5]


def test_every_backend_that_a_stack_may_name_has_a_folder_and_the_other_way_round() -> None:
    folders = {path.parent.name for path in Path(backends.__file__).parent.glob("*/__init__.py")}
    assert set(BACKENDS) == set(get_args(BackendName)) == set(backends.MODULES) == folders
    for name in BACKENDS:
        assert backends.MODULES[name].startswith(f"provision.backends.{name}.")
        assert callable(backend_for(name).draft)


def stack_with(**keys: object) -> Stack:
    """A stack that trains without Horovod, with these keys too."""
    training = {"epochs": 1, "batch_size": 32}
    return read_stack(
        {
            "name": "s",
            "summary": "S",
            "module": "s/1",
            "pythons": ["3.11"],
            "framework": {"name": "tensorflow", "package": "tensorflow", "version": "2.15.1"},
            "proof": {"program": "single", "mnist": training, "digits": training},
            **keys,
        },
        "stacks/s.toml",
    )


def test_a_stack_names_its_backend_and_the_first_is_used_if_it_names_none() -> None:
    assert stack_with().backend == stack_with(backend="venv").backend == "venv" == BACKENDS[0]


def test_a_backend_that_does_not_exist_is_a_fault_of_the_stack(words: Words) -> None:
    with pytest.raises(ConfigError) as error:
        stack_with(backend="vnv")
    (fault,) = error.value.evidence
    assert fault.startswith("backend: ") and "'vnv'" in fault and "`venv`" in fault
    words("stack", fault)
