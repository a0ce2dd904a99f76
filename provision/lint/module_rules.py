"""The rules for modules: exact versions, a clean start, a record of what was loaded, and the right order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.toolchains import mixture
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault
from provision.profile.arch import Arch
from provision.profile.site import Site

PYTHON_2 = re.compile(r"(?:cray-)?python/2[.\d]*|.*-py2\b.*|python2?/?2\.\d.*", re.IGNORECASE)


def check_modules(script: JobScript, site: Site | None, archs: tuple[Arch, ...]) -> Iterator[Finding]:
    """Modules must have exact versions, must be loaded into a clean environment, and must be listed in the output."""
    loaded = list(script.modules())
    named = {name for arch in archs for name in (*arch.modules, *arch.provided)}
    for line, name in loaded:
        if "/" not in name and name not in named and not name.startswith("$"):
            yield fault(
                script,
                "module-version",
                line,
                f"`{name}` has no version, so another one may be loaded tomorrow",
                f"run `module avail {name}`, then write `module load {name}/VERSION`",
            )
        if PYTHON_2.fullmatch(name):
            yield fault(
                script,
                "python-2",
                line,
                f"`{name}` is Python 2, for which neither TensorFlow nor pip is maintained",
                "load a module of Python 3",
            )
    if not loaded:
        return
    first = loaded[0][0]
    mixed = mixture(name for _, name in loaded)
    if mixed:
        yield fault(
            script,
            "toolchains",
            first,
            f"the script {mixed}",
            "load modules of one generation; `module avail NAME` lists them",
        )
    emptied = [
        number
        for words in (("module", "purge"), ("module", "reset"), ("module", "restore"), ("ml", "purge"), ("ml", "reset"))
        if (number := script.does(*words))
    ]
    keeps = site is not None and site.modules.reset == "none"
    if not keeps and not any(number <= first.number for number in emptied):
        word = site.modules.reset if site else "purge"
        yield fault(
            script,
            "modules-on-top",
            first,
            "modules are added to those that the shell has already loaded",
            f"put `module {word}` before the first `module load`",
        )
    if not any(script.does(*words) for words in (("module", "list"), ("ml", "list"), ("ml", "-t", "list"))) and not any(
        command.words == ("ml",) for command in script.commands
    ):
        yield fault(
            script,
            "no-module-list",
            first,
            "the output does not record which modules were loaded",
            "put `module list` after the last `module load`",
        )
    yield from _order(script)


def _order(script: JobScript) -> Iterator[Finding]:
    """A virtual environment must be activated after the modules: a later module puts its own Python before it."""
    activated = None
    for command in script.commands:
        words = [word for word in command.words if not word.startswith("-")]
        if command.within:
            continue
        if words[:1] in (["source"], ["."]) and len(words) > 1 and words[1].endswith("/bin/activate"):
            activated = command.line
        elif words[:2] in (["conda", "activate"], ["source", "activate"]) or words[:1] == ["deactivate"]:
            activated = None
        elif activated is not None and (
            words[:2] in (["module", "purge"], ["module", "reset"])
            or (
                words[:2] == ["module", "load"]
                and any(
                    re.match(r"(cray-)?python|tensorflow|conda|anaconda", name, re.IGNORECASE) for name in words[2:]
                )
            )
        ):
            yield fault(
                script,
                "venv-before-modules",
                activated,
                f"line {command.line.number} changes the modules afterwards, so the environment may get another Python",
                "activate the environment after the last `module load`",
            )
            return
