"""What a plan says about the environment that a publication replaces."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest

from golden_files import facts_of, local_site, request_for
from parts.published import SITE, put_proved
from provision.commands.shared.target import Target
from provision.machine.root.observe import existing
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout
from provision.planning.plan_text import plan_lines
from provision.planning.planner import make_plan


@pytest.mark.parametrize(
    ("horovod", "said"),
    [("0.28.1+provision.1", ""), ("0.28.1+provision.2", "horovod 0.28.1+provision.2 to 0.28.1+provision.1")],
)
def test_a_plan_says_which_versions_it_replaces(horovod: str, said: str, tmp_path: Path) -> None:
    store = Store(Layout(PurePosixPath(tmp_path)))
    site = dataclasses.replace(local_site(), root=str(tmp_path))
    request = dataclasses.replace(request_for(local_site()), site=site)
    first = make_plan(request, facts_of(site), existing(store))
    old = EnvironmentId(first.environment.arch, first.environment.name, first.environment.version, "0000000000")
    put_proved(store, old)
    Publisher(store).publish(old)
    numpy = request.lock.pin("numpy")
    assert numpy is not None
    # The build installs Horovod with the number of its patches behind its version, as this plan does.
    for name in ("numpy-0.0.1", f"horovod-{horovod}"):
        info = Path(store.layout.prefix(old)) / SITE / f"{name}.dist-info"
        info.parent.chmod(0o755)
        info.mkdir()
        (info / "INSTALLER").write_text("uv")
    plan = make_plan(request, facts_of(site), existing(store))
    assert plan.replaces == str(old)
    target = Target(site=site, arch=site.archs[0], stack=request.stack, store=store)
    line = target.replaced_line(plan, request)
    assert line is not None
    assert line.startswith(f"{first.environment.version}-0000000000: ")
    assert f"numpy 0.0.1 to {numpy.version}" in line
    assert said in line and ("horovod" in line) is bool(said)
    assert f"replaces     {line}" in plan_lines(plan, expected={}, replaced=line)
    assert target.replaced_line(dataclasses.replace(plan, replaces=None), request) is None
