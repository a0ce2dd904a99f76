"""The backend `venv`: what it would build, the identity of that, and what it makes at a prefix."""

from __future__ import annotations

import shlex
from functools import partial

from provision.backends.backend import Construction, Draft, draft_of
from provision.backends.venv.recipe import Recipe, rows
from provision.backends.venv.wheelhouse import not_fetched
from provision.errors import Fault, raise_faults
from provision.horovod.wheel import Build, make_builds, site_environ
from provision.knowledge.versions import release
from provision.model.facts import Existing, Facts
from provision.model.layout import EnvironmentId, Layout
from provision.model.request import Request


def draft(request: Request, facts: Facts, target: str) -> Draft:
    """What would be built for the CPU `target` on a machine with these facts.

    Raises:
        PlanError: there is no compiler or MPI, the pip of the Python is too old, or a lock does not pin what the stack names.
    """
    _refuse_old_pip(facts)
    for framework in request.stack.frameworks:
        request.framework_pin(framework)
    builds = make_builds(request, facts, facts.gpu if request.arch.gpu else None, target)
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in site_environ(request).items())
    return draft_of(
        request,
        target,
        builds,
        partial(_construct, request, facts, builds),
        own={"build environment": assigned} if builds and assigned else {},
        wheels={build.name: build.key for build in builds},
    )


def _construct(
    request: Request,
    facts: Facts,
    builds: tuple[Build, ...],
    layout: Layout,
    environment: EnvironmentId,
    existing: Existing,
    plan_text: str,
) -> Construction:
    """The steps that make it at its prefix; the packages come from the wheelhouse if it has all of them."""
    sources = [build.source for build in builds]
    missing = not_fetched(request.locks, sources, fetched=existing.fetched, sources=existing.sources)
    recipe = Recipe(
        request=request,
        facts=facts,
        builds=builds,
        layout=layout,
        environment=environment,
        wheelhouse=None if missing else str(layout.wheelhouse),
    )
    prefix = str(recipe.prefix)
    return Construction(
        python=recipe.prefix_python,
        rows=rows(recipe, existing.wheels, plan_text),
        not_fetched=tuple(missing),
        prepend=(("PATH", f"{prefix}/bin"),),
        environ=(("VIRTUAL_ENV", prefix),),
        mpi_libraries=(builds[0].mpi_libraries or (f"{prefix}/lib/libmpi.so",)) if builds else (),
    )


def _refuse_old_pip(facts: Facts) -> None:
    """Raise if only the pip of an old Python could install the lock, and it cannot.

    Python 3.6 brings pip 9 or 18, which does not know manylinux2010 and newer wheels (pip 19.0 was the first that does).
    """
    python = facts.python
    if python and facts.uv is None and python.own_venv and release(python.version) < (3, 7):
        raise_faults(
            [
                Fault(
                    "missing",
                    "uv",
                    f"there is no `uv`, and the pip of Python {python.version} cannot install today's packages",
                    evidence=(f"Python: {python.executable}",),
                    hint="`pip install uv` into the environment of provision, then run the same command again",
                )
            ]
        )
