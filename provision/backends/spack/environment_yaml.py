"""spack.yaml and the packages beside it, as texts that a person reads and uses with plain Spack: same input, same bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.backends.spack.externals import UNKNOWN_PREFIX, External, externals_here, externals_of_profile
from provision.backends.spack.program import scalar
from provision.backends.spack.repository import REPOSITORY, Sources, repository_files, sources_of
from provision.errors import raise_faults
from provision.horovod.wheel import make_builds
from provision.knowledge.compilable import COMPILABLE
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.targets import family_of
from provision.model.facts import Facts
from provision.model.request import Request

# The repository of one environment beside its spack.yaml, and that of all environments beside the folders of the sites.
OWN, SHARED = f"$env/{REPOSITORY}", f"$env/../../../{REPOSITORY}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpackEnvironment:
    """What spack.yaml says: a request for a CPU target, what Spack is to use of the site, and the packages."""

    request: Request
    target: str
    externals: tuple[External, ...]
    sources: Sources


def target_of(package: str, target: str) -> str:
    """The target of a package that is built: what is not compiled here is for the family of CPUs."""
    of_wheels = ("py-pip", *(framework.spack for framework in FRAMEWORKS.values()))
    return family_of(target, target) if package in of_wheels else target


def write_yaml(environment: SpackEnvironment, repository: str) -> str:
    """The text of spack.yaml; `repository` is the folder of the packages, in which `$env` is the folder of spack.yaml."""
    target, sources = environment.target, environment.sources
    site, arch, stack = environment.request.site, environment.request.arch, environment.request.stack
    command = f"provision spack show --site {site.name} --arch {arch.name} --stack {stack.name}"
    lines = [
        f"# Site {site.name}, arch {arch.name}, stack {stack.name}.",
        f"# Written by `{command}`; do not edit: the next run writes it again.",
        *_how_to_use(environment, repository),
        "spack:",
        "  specs:",
        *(f"  - {scalar(spec)}" for spec in sources.root_specs),
        "  concretizer:",
        "    unify: true",
        "    reuse: false                    # an installed package of another environment must not decide a version",
        "    targets:",
        "      host_compatible: false        # the login node may have another CPU than the arch",
        "  repos::                           # only the generated packages; the two colons leave out Spack's own",
        f"    provision: {scalar(repository)}",
        "  view:",
        "    default:",
        "      root: ./view",
        "      link: run",
        "  packages:",
        "    all:",
        "      buildable: false              # only what is named below is built",
        f"      require: [{scalar(f'target={target}')}]",
    ]
    for name, choices in sources.built.items():
        required = ", ".join(map(scalar, (f"target={target_of(name, target)}", *choices)))
        lines += [f"    {name}:", "      buildable: true", f"      require: [{required}]"]
    return "\n".join([*lines, *_external_lines(environment.externals)]) + "\n"


def _how_to_use(environment: SpackEnvironment, repository: str) -> list[str]:
    if not any(external.prefix.startswith(UNKNOWN_PREFIX) for external in environment.externals):
        return []
    lock = PurePosixPath(environment.request.lock.path).name
    sources = f"{repository.replace('$env/', '')}/sources/{lock}"
    sources_only = ",".join(("horovod", *COMPILABLE))
    modules = environment.request.arch.modules
    load = f"module load {' '.join(modules)}" if modules else "log in"
    return [
        "#",
        "# The profile names the site's modules but not their folders. On a machine of the site, the command above writes this",
        f"# file with the folders. By hand: `{load}`, and replace each /PREFIX-OF-NAME by the folder",
        '# above the `bin` of NAME, such as `dirname "$(dirname "$(command -v mpicxx)")"`. Then, with Spack 1.0 or newer:',
        f"#     python3 -m pip download --no-deps --no-binary {sources_only} -d sources -r {sources}",
        '#     export PROVISION_SOURCES="$PWD/sources"',
        "#     spack -e . concretize && spack -e . install",
    ]


def _external_lines(externals: Sequence[External]) -> list[str]:
    """The packages of the site, and which of them is the MPI."""
    mpi = next((external.name for external in externals if external.name in ("mpich", "openmpi")), None)
    lines = ["    mpi:", "      buildable: false", f"      require: [{mpi}]"] if mpi else []
    return [*lines, *(line for external in externals for line in _lines_of(external))]


def _lines_of(external: External) -> list[str]:
    comment = f"   # {external.comment}" if external.comment else ""
    lines = [f"    {external.name}:{comment}", "      buildable: false"]
    lines += [f"      require: [{scalar(f'target={external.target}')}]"]
    # Without a target, Spack takes that of the machine that solves.
    lines += ["      externals:", f"      - spec: {scalar(f'{external.spec} target={external.target}')}"]
    lines += [f"        prefix: {scalar(external.prefix)}"]
    attributes = [f"          {name}: {scalar(value)}" for name, value in external.attributes]
    if external.compilers:
        attributes += ["          compilers:", *_mapping(external.compilers, 12)]
    if external.sets or external.prepends:
        attributes += ["          environment:"]
        if external.sets:
            attributes += ["            set:", *_mapping(dict(external.sets).items(), 14)]
        if external.prepends:
            attributes += ["            prepend_path:", *_mapping(external.prepends, 14)]
    return [*lines, *(["        extra_attributes:", *attributes] if attributes else [])]


def _mapping(pairs: Iterable[tuple[str, str]], indent: int) -> list[str]:
    return [f"{' ' * indent}{name}: {scalar(value)}" for name, value in pairs]


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
