"""The rules for modules: exact versions, a clean start, a record of what was loaded, and the right order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.frameworks import framework_module
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.toolchains import mixture
from provision.knowledge.versions import release
from provision.lint.job_script import JobScript, loaded_by
from provision.lint.rule import Found, advice, error, warning
from provision.lint.shell_lines import ShellLine
from provision.profile.arch import Arch
from provision.profile.site import Site

PYTHON_2 = re.compile(r"(?:cray-)?python/2[.\d]*|.*-py2\b.*|python2?/?2\.\d.*", re.IGNORECASE)
PIP_HOROVOD = re.compile(r"\bpip[\d.]* install\b.* horovod(\[[\w,-]*\])?([=<>~!]\S*)?(?=\s|$)")
PIP_TENSORFLOW = re.compile(
    r"\bpip[\d.]* install\b.* tensorflow(?:-cpu|-gpu)?(?:\[[\w,-]*\])?(?:([=<>~!]+)([\d.]+)\S*)?(?=\s|$)"
)
TOO_NEW = (2, 19)
"""The first TensorFlow on which Horovod does not compile without patches (knowledge/combinations.toml)."""
EMPTIED = (("module", "purge"), ("module", "reset"), ("module", "restore"), ("ml", "purge"), ("ml", "reset"))
SWAPS = (("swap",), ("switch",))
PYTHONS = re.compile(r"(cray-)?python|tensorflow|conda|anaconda", re.IGNORECASE)


def _first(job: JobScript) -> ShellLine | None:
    """The line of the first module."""
    return next((line for line, _ in job.modules), None)


@advice(
    "`{0}` has no version, so another one may be loaded tomorrow",
    "run `module avail {0}`, then write `module load {0}/VERSION`",
)
def module_version(job: JobScript, archs: tuple[Arch, ...]) -> Found:
    """A module without a version."""
    named = {name for arch in archs for name in (*arch.modules, *arch.provided)}
    for line, name in job.modules:
        if "/" not in name and name not in named and not name.startswith("$"):
            yield line, name


@error("`{0}` is Python 2, for which neither TensorFlow nor pip is maintained", "load a module of Python 3")
def python_2(job: JobScript) -> Found:
    """A module of Python 2."""
    yield from ((line, name) for line, name in job.modules if PYTHON_2.fullmatch(name))


@warning("the script {0}", "load modules of one generation; `module avail NAME` lists them")
def toolchains(job: JobScript) -> Found:
    """Modules of different toolchain generations."""
    mixed = mixture(name for _, name in job.modules)
    if mixed:
        yield _first(job), mixed


@advice(
    "modules are added to those that the shell has already loaded", "put `module {0}` before the first `module load`"
)
def modules_on_top(job: JobScript, profile: Site | None) -> Found:
    """Modules that are added to those of the login shell."""
    word = profile.modules.reset if profile else "purge"
    # `module swap` may stand before the reset: it chooses the tree of modules.
    swaps = [one.line for one in job.commands if one.plain[:1] == ("module",) and one.plain[1:2] in SWAPS]
    first = next((line for line, _ in job.modules if line not in swaps), None)
    emptied = [number for verb in EMPTIED if (number := job.does(*verb))]
    if first and word != "none" and not any(number <= first.number for number in emptied):
        yield first, word


@advice("the output does not record which modules were loaded", "put `module list` after the last `module load`")
def no_module_list(job: JobScript) -> Found:
    """Output that does not record the loaded modules."""
    first = _first(job)
    lists = job.does("module", "list") or job.does("ml", "list") or any(one.words == ("ml",) for one in job.commands)
    if first and not lists:
        yield (first,)


@warning(
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


@warning(
    "the Python of this environment hides that of `{0}`, so the job trains with other packages",
    "leave out the environment, or the module; `provision venv create` makes an environment on top of a module",
)
def python_hidden(job: JobScript) -> Found:
    """An environment of conda that is activated after a module with a framework."""
    loaded = ""
    for command in job.commands:
        found = framework_module(loaded_by(command.plain))
        loaded = found[1] if found else "" if command.plain[:2] in EMPTIED else loaded
        starts = command.plain[:2] in (("conda", "activate"), ("mamba", "activate"), ("source", "activate"))
        if loaded and starts and len(command.plain) > 2:
            yield command.line, loaded


@warning(
    "this installs into `~/.local`, which every Python of that version reads, except those of our modules",
    "`provision venv create`, then pip in that environment",
)
def user_packages(job: JobScript) -> Found:
    """`pip install --user` on top of a module with a framework."""
    if framework_module(name for _, name in job.modules):
        installs = (one for one in job.commands if {"install", "--user"} <= {*one.words})
        yield from ((one.line,) for one in installs if re.search(r"\bpip[\d.]* ", " ".join(one.words)))


@error(
    "the modules for the nodes of arch `{0}` are behind `{1}`: others fail there with `Illegal instruction`",
    "`module {2} {1}` before the first `module load`",
)
def module_tree(job: JobScript, site: Site, arch: Arch) -> Found:
    """Modules for other CPUs, where a module chooses the tree for this one."""
    first = next(iter(arch.provided), "")
    of_site = {name.partition("/")[0] for name in arch.provided}
    line = next((line for line, name in job.modules if name.partition("/")[0] in of_site), None)
    chooses = arch.provided_unload and "/" not in first and not framework_module((first,))
    if chooses and line and not any(name == first for _, name in job.modules):
        yield line, arch.name, first, f"--force swap {arch.provided_unload[0]}"


@warning(
    "pip builds Horovod without MPI if it does not find MPI, and says nothing: then each rank trains alone",
    "`HOROVOD_WITH_MPI=1 HOROVOD_WITH_TENSORFLOW=1 {0}`",
)
def horovod_build(job: JobScript) -> Found:
    """A Horovod that pip compiles without MPI in silence, or against a TensorFlow on which it does not compile."""
    for line, text in _pip_horovod(job):
        if not {"HOROVOD_WITH_MPI", "HOROVOD_WITHOUT_MPI"} & {
            *job.variables,
            *re.findall(r"\bHOROVOD_\w+(?==)", line.text),
        }:
            yield line, text


@error(
    "Horovod 0.28.1, the last release, does not compile against TensorFlow {0}",
    "`pip install 'tensorflow<2.19'`; `provision build` builds it with patches, also for newer ones",
    name="horovod-build",
)
def horovod_build_fails(job: JobScript) -> Found:
    """A Horovod that pip compiles against a TensorFlow that is too new."""
    asked = [match for one in job.commands for match in [PIP_TENSORFLOW.search(" ".join(one.words))] if match]
    module = TENSORFLOW.module_of(name for _, name in job.modules)
    for line, _ in _pip_horovod(job):
        version = release(asked[-1][2]) if asked and asked[-1][2] else module[1] if module and not asked else ()
        newest = bool(asked) and (not version or asked[-1][1][:1] == ">")
        if newest or (version >= TOO_NEW and (not asked or asked[-1][1] in ("==", "~=", "==="))):
            yield line, "of today, which this installs" if newest else ".".join(map(str, version))


def _pip_horovod(job: JobScript) -> Iterator[tuple[ShellLine, str]]:
    """The commands by which pip compiles Horovod."""
    texts = ((command, " ".join(command.words)[:4096]) for command in job.commands)
    yield from ((command.line, text) for command, text in texts if PIP_HOROVOD.search(text))
