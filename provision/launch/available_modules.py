"""The modules that a site offers: the script that lists them, and what each one brings, by its name. Pure text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.toolchains import generation
from provision.knowledge.versions import release
from provision.launch.modules import load_script
from provision.model.quoting import Code, bash
from provision.profile.module_system import ModuleSystem

# The names that sites give to the modules of each subject, in lower case: EasyBuild's, Spack's, Cray's and those of the
# five sites of docs/dev/requirements.md.
NAMES: dict[str, tuple[str, ...]] = {
    **{framework.name: framework.module_names for framework in FRAMEWORKS.values()},
    "horovod": ("horovod", "py-horovod"),
    "python": ("python", "python3", "cray-python", "miniconda", "miniconda3", "miniforge3", "conda", "anaconda3"),
    "compiler": ("gcc", "gcc-native", "prgenv-gnu", "gcccore"),
    "mpi": ("openmpi", "mpich", "cray-mpich", "impi", "intel-mpi", "mvapich", "mvapich2"),
    "cmake": ("cmake",),
    "cuda": ("cuda", "cudatoolkit", "cudatoolkit-standalone", "cuda-toolkit"),
    "cudnn": ("cudnn",),
    "nccl": ("nccl",),
}
SUBJECTS = tuple(NAMES)
SUBJECT_OF = {name: subject for subject, names in NAMES.items() for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableModule:
    """A module of the site: its full name, the subject that it brings, and its version (empty without one)."""

    name: str
    subject: str | None
    version: str


def list_script(system: ModuleSystem) -> Code:
    """Bash that prints every module on descriptor 3, one on a line.

    Lmod's `avail` shows only modules that can be loaded now; `spider` also shows those behind a compiler or an MPI.
    """
    verb = Code("module -t spider") if system.name == "lmod" else Code("module -t avail")
    return load_script(system, (), last=bash("%s 2>&1 | cat >&3", verb))


def parse_available(text: str) -> tuple[str, ...]:
    """The full names of modules in the terse list of Lmod or Environment Modules, without folders and marks."""
    names = (re.split(r"[<(]", line)[0].strip() for line in text.splitlines())  # `(default)`, `(D)`, `<L>`
    return tuple(dict.fromkeys(name for name in names if name and not name.endswith(("/", ":")) and " " not in name))


def describe(name: str) -> AvailableModule:
    """What a module brings, by its name.

    `CUDA/11.7.0` and `gcc/12.2.0` name the software in front; `datascience/tensorflow-1.10` names it behind a folder.
    """
    folder, _, last = name.rpartition("/")
    in_front = SUBJECT_OF.get(folder.rpartition("/")[2].lower())
    if in_front or (not folder and last.lower() in SUBJECT_OF):
        return AvailableModule(name=name, subject=in_front or SUBJECT_OF[last.lower()], version=last if folder else "")
    behind = re.match(r"([A-Za-z][A-Za-z_]*(?:-[A-Za-z][A-Za-z_]*)*)-?(\d.*)?$", last)
    subject = SUBJECT_OF.get(behind[1].lower()) if behind else None
    return AvailableModule(name=name, subject=subject, version=(behind[2] or "") if behind and subject else last)


def without_horovod(names: Sequence[str]) -> tuple[str, ...]:
    """These modules without those that bring only Horovod: one process needs none."""
    return tuple(name for name in names if describe(name).subject != "horovod")


def newest_first(modules: Sequence[AvailableModule]) -> list[AvailableModule]:
    """These modules by version, the newest first."""
    return sorted(modules, key=lambda module: (release(module.version), module.name), reverse=True)


def matching(modules: Sequence[AvailableModule], wanted: str) -> list[AvailableModule]:
    """The modules of a subject (`cuda`), or those whose name contains the text."""
    if wanted.lower() in NAMES:
        return [module for module in modules if module.subject == wanted.lower()]
    return [module for module in modules if wanted.lower() in module.name.lower()]


def newest_together(modules: Sequence[AvailableModule], subjects: Sequence[str]) -> tuple[str, ...]:
    """The newest module of each of these subjects.

    If the modules are EasyBuild's, all are of the newest toolchain generation that has an MPI, because generations must
    not be mixed. A subject that the site does not offer is left out.
    """
    generations = sorted({generation(m.name) or "" for m in modules if m.subject == "mpi"} - {""}, reverse=True)
    if generations:
        modules = [m for m in modules if generation(m.name) in (generations[0], None) or m.subject == "python"]
    chosen = []
    for subject in subjects:
        of_subject = newest_first([module for module in modules if module.subject == subject])
        of_generation = [m for m in of_subject if generations and generation(m.name) == generations[0]]
        chosen += [(of_generation or of_subject)[0].name] if of_subject else []
    return tuple(chosen)
