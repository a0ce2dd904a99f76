"""The files of an environment that a person reads and uses with plain Spack, as `provision spack show` writes them. Pure."""

from __future__ import annotations

from provision.backends.spack.environment_yaml import SpackYaml, write_yaml
from provision.backends.spack.externals import External, compiler_in, externals_here, externals_of_profile
from provision.backends.spack.repository import REPOSITORY, Sources, repository_files, sources_of
from provision.backends.spack.source_route import source_yaml
from provision.horovod.wheel import make_build
from provision.knowledge.targets import family_of
from provision.model.facts import Facts
from provision.model.problem import raise_problems
from provision.model.request import Request


def built(sources: Sources) -> tuple[str, ...]:
    """The packages that are built."""
    return ("py-pip", "py-tensorflow", *(("py-horovod",) if sources.horovod else ()))


def spack_yaml(
    request: Request, target: str, sources: Sources, externals: tuple[External, ...], repository: str
) -> SpackYaml:
    """What spack.yaml says for a request."""
    site, arch, stack = request.site, request.arch, request.stack
    return SpackYaml(
        site=site.name,
        arch=arch.name,
        stack=stack.name,
        target=target,
        family=family_of(target, target),
        root_spec=sources.root_spec,
        externals=externals,
        built=built(sources),
        repository=repository,
        modules=arch.modules,
        command=_show(request),
    )


def _show(request: Request) -> str:
    return f"provision spack show --site {request.site.name} --arch {request.arch.name} --stack {request.stack.name}"


def packages_folder(request: Request, compiler: str) -> str:
    """The folder of the generated packages that archs with the same ones share, below that of all environments."""
    words = [request.stack.name, f"py{request.minor.replace('.', '')}"]
    words += ["mpi-wheel"] if request.mpi_lock else []
    words += [compiler] if compiler != "gcc" else []
    return f"packages/{'-'.join(words)}/{REPOSITORY}"


def profile_files(request: Request, route: str = "wheels") -> dict[str, str]:
    """spack.yaml and the generated packages from the profile alone; the prefixes of the externals are to be filled in.

    The route `source` has no generated packages.

    Raises:
        PlanError: the lock does not pin what the stack names.
    """
    return _shown(request, request.arch.target, externals_of_profile(request), route)


def files_here(request: Request, facts: Facts, route: str = "wheels") -> dict[str, str]:
    """spack.yaml and the generated packages for a machine with these facts.

    Raises:
        PlanError: there is no Python, compiler or MPI, or the lock does not pin what the stack names.
    """
    raise_problems(facts.problems)
    target = facts.cpu.target if request.arch.target == "native" else request.arch.target
    build = make_build(request, facts, facts.gpu if request.arch.gpu else None, target)
    return _shown(request, target, externals_here(request, facts, target, build), route)


def _shown(request: Request, target: str, externals: tuple[External, ...], route: str) -> dict[str, str]:
    """The files with which a person uses the environment: the packages are beside the folders of the sites."""
    if route == "source":
        command = f"{_show(request)} --route source"
        name = f"source/{request.site.name}/{request.stack.name}/{request.arch.name}/spack.yaml"
        return {name: source_yaml(request, target, externals, command)}
    compiler = compiler_in(externals)
    sources, folder = sources_of(request, compiler), packages_folder(request, compiler)
    text = write_yaml(spack_yaml(request, target, sources, externals, f"$env/../../../{folder}"))
    name = f"{request.site.name}/{request.stack.name}/{request.arch.name}/spack.yaml"
    return {name: text, **{f"{folder}/{path}": content for path, content in repository_files(sources).items()}}
