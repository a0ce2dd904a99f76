"""The files of an environment that a person reads and uses with plain Spack, as `provision spack show` writes them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.backends.spack.environment_yaml import SpackEnvironment, write_yaml
from provision.backends.spack.externals import External, externals_here, externals_of_profile
from provision.backends.spack.repository import REPOSITORY, repository_files, sources_of
from provision.errors import raise_faults
from provision.horovod.wheel import make_builds
from provision.model.facts import Facts
from provision.model.request import Request

# The repository of one environment beside its spack.yaml, and that of all environments beside the folders of the sites.
OWN, SHARED = f"$env/{REPOSITORY}", f"$env/../../../{REPOSITORY}"


def shown_of_profile(request: Request) -> SpackEnvironment:
    """The environment from the profile alone; the prefixes of the externals are to be filled in.

    Raises:
        PlanError: the Python is too old, or the lock does not pin what the stack names.
    """
    return _shown(request, request.arch.target, externals_of_profile(request))


def shown_here(request: Request, facts: Facts) -> SpackEnvironment:
    """The environment for a machine with these facts.

    Raises:
        PlanError: there is no Python, compiler or MPI, the Python is too old, or the lock does not pin what the stack names.
    """
    raise_faults(facts.faults)
    target = facts.target_of(request.arch.target)
    # What it raises: there is no compiler or MPI.
    make_builds(request, facts, facts.gpu if request.arch.gpu else None, target)
    return _shown(request, target, externals_here(request, facts, target))


def _shown(request: Request, target: str, externals: tuple[External, ...]) -> SpackEnvironment:
    return SpackEnvironment(request=request, target=target, externals=externals, sources=sources_of(request))


def files_of_one(environment: SpackEnvironment) -> dict[str, str]:
    """The spack.yaml of an environment and, beside it, the repository that it uses."""
    return _files([environment], OWN, f"{_folder(environment)}/{REPOSITORY}")


def files_of_all(environments: Sequence[SpackEnvironment]) -> dict[str, str]:
    """The spack.yaml of each environment, and the one repository that all use."""
    return _files(environments, SHARED, REPOSITORY)


def _files(environments: Sequence[SpackEnvironment], repository: str, folder: str) -> dict[str, str]:
    files = {f"{_folder(one)}/spack.yaml": write_yaml(one, repository) for one in environments}
    packages = repository_files([one.sources for one in environments])
    return files | {f"{folder}/{path}": text for path, text in packages.items()}


def _folder(environment: SpackEnvironment) -> str:
    site, stack, arch = environment.request.site, environment.request.stack, environment.request.arch
    return f"{site.name}/{stack.name}/{arch.name}"
