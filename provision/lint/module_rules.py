"""The rules for modules: exact versions, a clean start, a record of what was loaded, and the right order."""

from __future__ import annotations

import re

from provision.knowledge.toolchains import mixture
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, advice, error, warning
from provision.lint.shell_lines import Line
from provision.profile.arch import Arch
from provision.profile.site import Site

PYTHON_2 = re.compile(r"(?:cray-)?python/2[.\d]*|.*-py2\b.*|python2?/?2\.\d.*", re.IGNORECASE)
PYTHONS = re.compile(r"(cray-)?python|tensorflow|conda|anaconda", re.IGNORECASE)


def _first(job: JobScript) -> Line | None:
    """The line of the first module."""
    return next((line for line, _ in job.modules), None)


@advice(
    "module-version",
    "`{0}` has no version, so another one may be loaded tomorrow",
    "run `module avail {0}`, then write `module load {0}/VERSION`",
)
def module_version(job: JobScript, archs: tuple[Arch, ...]) -> Found:
    """A module without a version."""
    named = {name for arch in archs for name in (*arch.modules, *arch.provided)}
    for line, name in job.modules:
        if "/" not in name and name not in named and not name.startswith("$"):
            yield line, name


@error("python-2", "`{0}` is Python 2, for which neither TensorFlow nor pip is maintained", "load a module of Python 3")
def python_2(job: JobScript) -> Found:
    """A module of Python 2."""
    yield from ((line, name) for line, name in job.modules if PYTHON_2.fullmatch(name))


@warning("toolchains", "the script {0}", "load modules of one generation; `module avail NAME` lists them")
def toolchains(job: JobScript) -> Found:
    """Modules of different toolchain generations."""
    mixed = mixture(name for _, name in job.modules)
    if mixed:
        yield _first(job), mixed


@advice(
    "modules-on-top",
    "modules are added to those that the shell has already loaded",
    "put `module {0}` before the first `module load`",
)
def modules_on_top(job: JobScript, profile: Site | None) -> Found:
    """Modules that are added to those of the login shell."""
    first, word = _first(job), profile.modules.reset if profile else "purge"
    verbs = (("module", "purge"), ("module", "reset"), ("module", "restore"), ("ml", "purge"), ("ml", "reset"))
    emptied = [number for verb in verbs if (number := job.does(*verb))]
    if first and word != "none" and not any(number <= first.number for number in emptied):
        yield first, word


@advice(
    "no-module-list",
    "the output does not record which modules were loaded",
    "put `module list` after the last `module load`",
)
def no_module_list(job: JobScript) -> Found:
    """Output that does not record the loaded modules."""
    first = _first(job)
    lists = job.does("module", "list") or job.does("ml", "list") or any(one.words == ("ml",) for one in job.commands)
    if first and not lists:
        yield (first,)


@warning(
    "venv-before-modules",
    "line {0} changes the modules afterwards, so the environment may get another Python",
    "activate the environment after the last `module load`",
)
def venv_before_modules(job: JobScript) -> Found:
    """A virtual environment that is activated before the modules."""
    activated = None
    for command in job.commands:
        words = command.plain
        changes = words[:2] in (("module", "purge"), ("module", "reset"))
        changes = changes or (words[:2] == ("module", "load") and any(PYTHONS.match(name) for name in words[2:]))
        if command.within:
            continue
        if words[:1] in (("source",), (".",)) and words[1:] and words[1].endswith("/bin/activate"):
            activated = command.line
        elif words[:2] in (("conda", "activate"), ("source", "activate")) or words[:1] == ("deactivate",):
            activated = None
        elif activated is not None and changes:
            yield activated, command.line.number
            return
