"""A plan as text: it fits on a screen of 80 by 24, says what it replaces, and how long it will take."""

from __future__ import annotations

import dataclasses

import pytest

from golden_files import GPU_FACTS, Words, facts_of, gpu_request, gpu_site, local_site, request_for, slurm_site
from provision.model.facts import Existing
from provision.model.plan import Plan
from provision.planning.plan_text import plan_lines, sum_of
from provision.planning.planner import make_plan
from provision.profile.site import Site

SECONDS = {
    "create": 1.0,
    "install": 15.2,
    "bytecode": 9.0,
    "compile": 112.0,
    "horovod": 0.4,
    "inspect": 5.1,
    "candidate": 0.0,
    "proof": 14.0,
}


def plan_at(site: Site, existing: Existing | None = None) -> Plan:
    """The plan at this site."""
    return make_plan(request_for(site), facts_of(site), existing or Existing())


def proved(plan: Plan) -> Existing:
    """What is there when everything but publishing is done."""
    steps = frozenset(SECONDS) - {"compile"}
    return Existing(receipts={str(plan.environment): steps}, wheels=frozenset({str(plan.abi_key)}))


def gpu_plan() -> Plan:
    """The plan of a machine with GPUs."""
    site = gpu_site()
    return make_plan(gpu_request(site), facts_of(site, gpu=GPU_FACTS), Existing())


@pytest.mark.parametrize(
    "plan", [plan_at(local_site()), plan_at(slurm_site()), gpu_plan()], ids=["bare", "slurm", "gpu"]
)
def test_a_plan_fits_on_a_screen_of_80_by_24(plan: Plan) -> None:
    lines = plan_lines(plan, expected=SECONDS)
    assert len(lines) <= 22  # two more are for what was measured, and the prompt
    identity = ("environment", "prefix", "target", "modules", "mpi", "cuda", "nccl", "gpu", "python", "compiler")
    long = [line for line in lines if len(line) > 80 and not line.startswith(identity)]
    assert long == []


def test_the_plan_of_a_bare_machine_reads_like_this(words: Words) -> None:
    lines = plan_lines(plan_at(local_site()), expected=SECONDS)
    words("plan", "\n".join(lines[lines.index("") + 1 :]))


def test_verbose_lists_each_patch_and_the_reason_of_each_step(words: Words) -> None:
    plan = plan_at(local_site())
    lines = plan_lines(plan, expected={}, verbose=True)
    (patch,) = [line for line in lines if "0001-all.patch" in line]
    words("plan", patch)
    assert not [line for line in lines if "--verbose" in line]
    assert [line.partition("why: ")[2] for line in lines if "why: " in line] == [step.reason for step in plan.steps]


def test_commands_show_what_each_step_runs_and_writes() -> None:
    lines = plan_lines(plan_at(local_site()), expected={}, commands=True)
    assert any(line.startswith("               $ ") and "-m virtualenv" in line for line in lines)
    assert any(line.startswith("               # WriteFile /site/root/") for line in lines)
    assert "               # Publish" in lines


def test_a_step_that_is_not_to_be_done_says_so(words: Words) -> None:
    kept = proved(plan_at(local_site()))
    for existing, row, ending in (
        (kept, "  2 install ", "  (kept)"),
        (dataclasses.replace(kept, receipts={}), "  4 compile ", "  (from the cache)"),
    ):
        lines = plan_lines(plan_at(local_site(), existing), expected=SECONDS)
        (step,) = [line for line in lines if line.startswith(row)]
        assert step.endswith(ending)
        words("plan", f"{step}\n{lines[-1]}")


def test_a_plan_without_earlier_builds_makes_no_estimate(words: Words) -> None:
    shown = sum_of(plan_at(local_site()), {})
    words("plan", shown)
    without = {name: seconds for name, seconds in SECONDS.items() if name != "compile"}
    assert sum_of(plan_at(local_site()), without) == shown, "an estimate without the compile misleads"


def test_a_plan_with_nothing_to_do_says_so(words: Words) -> None:
    plan = plan_at(local_site())
    environment = plan.environment
    pointer = f"{environment.arch}/{environment.name}/{environment.version}"
    receipts = {str(environment): proved(plan).receipts[str(environment)] | {"publish"}}
    done = plan_at(local_site(), Existing(receipts=receipts, pointers={pointer: str(environment)}))
    last = plan_lines(done, expected={})[-1]
    words("plan", last)
