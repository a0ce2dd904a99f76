"""Compile locks with pip-tools, and use newer ones for an upgrade.

pip-tools resolves for the interpreter that it runs in, so it gets its own virtual environment for each Python. The
tool's Python may differ from it.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from provision.errors import ConfigError
from provision.knowledge.versions import release
from provision.machine.configuration import search_path, shipped
from provision.machine.configuration.permissions import read_configuration
from provision.machine.files.disk import write
from provision.machine.network.fetching import run_installer
from provision.machine.root.upgrades import text_of
from provision.machine.terminal.console import say
from provision.model.facts import Interpreter
from provision.model.lock import INDEX, lock_header, parse_lock, without_markers
from provision.model.quoting import bash

# pip-tools takes hashes from PyPI's own JSON, and hashes what a mirror or another index has by downloading every file for every
# platform: 20 minutes for PyTorch. The index's links have the same hashes (pip-tools 6.4 to 7.6, `PyPIRepository`).
PIP_TOOLS = """\
from piptools.__main__ import cli
from piptools.repositories.pypi import PyPIRepository

hash_file = PyPIRepository._get_file_hash


def hash_link(self, link):
    return "sha256:" + link.hash if link.hash_name == "sha256" else hash_file(self, link)


PyPIRepository._get_file_hash = hash_link
cli()
"""


def inputs_of_locks() -> tuple[list[Path], dict[str, Path]]:
    """The inputs in the first folder of the search path that has any, and all inputs on the search path by name.

    Raises:
        ConfigError: there is none.
    """
    folders = [sorted((place / "requirements").glob("*.in")) for place in map(Path, search_path.search_path())]
    first = next((inputs for inputs in folders if inputs), None)
    if first is None:
        raise ConfigError(
            "there is no folder `requirements`", hint="set `PROVISION_CONFIG` to the folder that contains it"
        )
    return first, {path.stem: path for inputs in reversed(folders) for path in inputs}


def refuse_installed(inputs: Sequence[Path]) -> None:
    """Raise a `ConfigError` for inputs that come with an installed tool: its next version replaces what was written there."""
    shipped_files = search_path.shipped_root()
    for source in inputs:
        if search_path.is_installed() and source.is_relative_to(shipped_files):
            folder = Path(search_path.own_folder()) / "requirements"
            raise ConfigError(
                f"`{source}` comes with the installed tool, which is not changed",
                hint=bash(
                    "`mkdir -p %s && cp %s %s && provision lock %s`", str(folder), str(source), str(folder), source.stem
                ),
            )


def compile_locks(
    interpreter: Interpreter, inputs: Sequence[Path], *, upgrade: bool, into: Path | None = None
) -> list[str]:
    """Compile these inputs in one throw-away environment with pip-tools; returns the locks written.

    The locks are written into the folder `into`, or beside their inputs.
    """
    texts = {
        source: read_configuration(str(source), f"requirements/{source.name}", str(source.parent.parent))
        for source in inputs
    }
    written = []
    with tempfile.TemporaryDirectory(prefix="provision-lock-") as scratch:
        log = Path(scratch) / "log"
        tools = f"{scratch}/pip-tools"

        def must(*argv: str, doing: str = "installing pip-tools") -> None:
            what = f"`{' '.join(argv[:4])} …` failed"
            run_installer(argv, log, what=what, hint="fix the input, then run the same command again", doing=doing)

        if interpreter.own_venv:
            must(interpreter.executable, "-m", "venv", tools)
        else:
            made = (sys.executable, "-m", "virtualenv", "--no-periodic-update", "--python", interpreter.executable)
            must(*made, tools)
        # The index is not trusted: what compiles the hashes has hashes of its own.
        lock = Path(scratch) / "pip-tools.txt"
        lock.write_text(shipped.load_lock("pip-tools", interpreter.minor).without(), encoding="utf-8")
        install = (f"{tools}/bin/python", "-m", "pip", "install", "--no-input", "--upgrade")
        must(*install, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock))
        program = Path(scratch) / "compile.py"
        program.write_text(PIP_TOOLS, encoding="utf-8")
        for source, text in texts.items():
            target = (into or source.parent) / Path(shipped.lock_name(source.stem, interpreter.minor)).name
            out = Path(scratch) / target.name
            if target.is_file() and not upgrade:
                shutil.copy(target, out)
            say(f"compiling {target.name}")
            # pip-tools of Python 3.7 has another default for its resolver; that of 3.6 has one resolver, and no option.
            resolver = () if release(interpreter.version) < (3, 7) else ("--resolver=backtracking",)
            must(
                *(f"{tools}/bin/python", str(program), "compile", "--quiet", "--generate-hashes", "--allow-unsafe"),
                *("--strip-extras", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-trusted-host"),
                *resolver,
                *("--no-emit-find-links", "--no-emit-options", "--output-file", str(out), str(source)),
                *(["--upgrade"] if upgrade else []),
                doing=f"compiling {target.name}",
            )
            body = "\n".join(line for line in out.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
            head = f"# Written by `provision lock` for Python {interpreter.minor} from {source.name}; edit that, not this.\n"
            head += f"{lock_header(text)}\n{''.join(INDEX.findall(text))}"
            body = without_markers(body)
            parse_lock(head + body + "\n", str(target))
            write(target, f"{head}{body}\n")
            written.append(str(target))
    return written


@contextlib.contextmanager
def newer_locks(
    stack: str, locks: Mapping[Path, tuple[str, Interpreter]], given: str | None, kept: Mapping[str, str]
) -> Iterator[Path]:
    """A folder with a newer lock for each lock of the configuration; everything inside uses them.

    `locks` are the locks with the name of their input, and the Python that they are for. `given` is a folder of the user, `kept`
    are texts by the names of the locks.

    Raises:
        ConfigError: the folder of the user lacks one, or it cannot be compiled.
    """
    with tempfile.TemporaryDirectory(prefix="provision-upgrade-") as scratch:
        for path, (source, interpreter) in locks.items():
            text = text_of(Path(given) / path.name) if given else kept.get(path.name)
            if text is not None:
                (Path(scratch) / path.name).write_text(text, encoding="utf-8")
            elif given:
                raise ConfigError(
                    f"`{given}` has no `{path.name}`",
                    hint=f"`provision lock --upgrade {stack}` compiles it",
                    kind="invalid-file",
                )
            else:
                compile_locks(interpreter, [path.parent / f"{source}.in"], upgrade=True, into=Path(scratch))
        with shipped.use_locks(scratch):
            yield Path(scratch)
