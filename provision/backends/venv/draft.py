"""The backend `venv`: what it would build, the identity of that, and the steps that make it at a prefix."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from provision.backends.backend import Construction
from provision.backends.venv.installer import Installer
from provision.backends.venv.recipe import Recipe, rows
from provision.backends.venv.wheelhouse import not_fetched
from provision.errors import PlanError
from provision.horovod.wheel import Build, make_build, site_environ
from provision.knowledge.versions import release
from provision.model.facts import Existing, Facts, Interpreter
from provision.model.layout import EnvironmentId, Layout
from provision.model.problem import Problem, raise_problems
from provision.model.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class VenvDraft:
    """A virtual environment with the packages of the request's locks, and with Horovod if the stack has it."""

    request: Request
    facts: Facts
    python: Interpreter
    target: str
    build: Build | None

    @property
    def compiler(self) -> str:
        """The compiler of Horovod; without Horovod nothing is compiled."""
        return self.build.compiler if self.build else ""

    @property
    def mpi(self) -> str:
        """The MPI that Horovod links, or the wheel of one."""
        return self.build.mpi if self.build else self.request.mpi_wheel

    @property
    def horovod(self) -> str:
        """The version of the wheel."""
        return self.build.version if self.build else ""

    @property
    def abi_key(self) -> str | None:
        """The key of the wheel."""
        return self.build.key if self.build else None

    @property
    def identity(self) -> Mapping[str, str]:
        """The locks, and for Horovod its source, its patches and everything that compiles it."""
        request = self.request
        locks = {
            "lock": request.lock.sha256,
            "mpi lock": request.mpi_lock.sha256 if request.mpi_lock else "",
        }
        mpi = {"mpi": self.mpi} if self.mpi else {}
        if self.build is None:
            return {**mpi, **locks}
        build, site = self.build, site_environ(request)
        assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in site.items())
        return {
            "target": f"{self.target} ({build.target_flags})",
            "compiler": build.compiler,
            **mpi,
            "horovod": f"{build.source.version} {' '.join(build.source.hashes)}",
            "patches": " ".join(f"{patch.name}:{patch.sha256[:12]}" for patch in build.patches),
            **locks,
            **({"build environment": assigned} if assigned else {}),
        }

    def construct(self, layout: Layout, environment: EnvironmentId, existing: Existing, plan_text: str) -> Construction:
        """The steps that make it at its prefix; the packages come from the wheelhouse if it has all of them."""
        request, facts, build = self.request, self.facts, self.build
        missing = not_fetched(
            request.locks, build.source if build else None, fetched=existing.fetched, sources=existing.sources
        )
        recipe = Recipe(
            layout=layout,
            environment=environment,
            installer=Installer(
                python=self.python.executable,
                own_venv=self.python.own_venv,
                tool_python=facts.tool_python,
                uv=facts.uv,
                wheelhouse=None if missing else str(layout.wheelhouse),
            ),
            minor=self.python.minor,
            cores=facts.cores,
            locks=(request.lock, *([request.mpi_lock] if request.mpi_lock else [])),
            horovod=build,
            launcher=request.site.launcher_to_node(request.arch),
        )
        prefix = str(recipe.prefix)
        return Construction(
            python=recipe.prefix_python,
            rows=rows(recipe, existing.wheels, plan_text),
            not_fetched=tuple(missing),
            prepend=(("PATH", f"{prefix}/bin"),),
            environ=(("VIRTUAL_ENV", prefix),),
            mpi_libraries=(build.mpi_libraries or (f"{prefix}/lib/libmpi.so",)) if build else (),
        )


def draft(request: Request, facts: Facts, target: str) -> VenvDraft:
    """What would be built for the CPU `target` on a machine with these facts.

    Raises:
        PlanError: there is no Python or compiler or MPI, or a lock does not pin what the stack names.
    """
    if facts.python is None:
        raise PlanError("the probes did not find Python, and gave no reason")
    _refuse_old_pip(facts.python, facts.uv)
    request.pinned(request.stack.framework.package, request.stack.framework.version)
    build = make_build(request, facts, facts.gpu if request.arch.gpu else None, target)
    return VenvDraft(request=request, facts=facts, python=facts.python, target=target, build=build)


def _refuse_old_pip(python: Interpreter, uv: str | None) -> None:
    """Raise if only the pip of an old Python could install the lock, and it cannot.

    Python 3.6 brings pip 9 or 18, which does not know manylinux2010 and newer wheels (pip 19.0 was the first that does).
    """
    if uv is None and python.own_venv and release(python.version) < (3, 7):
        raise_problems(
            [
                Problem(
                    kind="missing",
                    subject="uv",
                    message=f"there is no `uv`, and the pip of Python {python.version} cannot install today's packages",
                    evidence=(f"Python: {python.executable}",),
                    hint="`pip install uv` into the environment of provision, then run the same command again",
                )
            ]
        )
