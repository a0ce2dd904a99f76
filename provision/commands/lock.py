"""`provision lock`: compile `requirements/*.in` with pip-tools, for every Python of the stacks that this machine has.

A lock is for one Python minor version: pip-tools resolves for the interpreter that it runs in. It runs in its own
virtual environment, so the tool's Python may differ from the stack's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError
from provision.machine.console import say
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    from provision.model.facts import Interpreter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the locks."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="requirements/NAME.in (default: all)")
    parser.add_argument(
        "--python", action="append", metavar="VERSION", help="only for this minor version (3.11); can be given again"
    )
    parser.add_argument("--upgrade", action="store_true", help="use the newest versions that the input allows")


def run(args: argparse.Namespace) -> Outcome:
    """Compile the locks."""
    from provision.jobs.overlay_job import lock_name
    from provision.knowledge.miniforge import release_for
    from provision.machine import shipped
    from provision.machine.probe import interpreter_of
    from provision.machine.search_path import known

    folder = next(
        (place / "requirements" for place in shipped.search_path() if (place / "requirements").is_dir()), None
    )
    if folder is None:
        raise ConfigError("there is no folder `requirements`", hint="run this in a checkout, or set `PROVISION_CONFIG`")
    inputs = sorted(folder.glob("*.in"))
    stems = [path.stem for path in inputs]
    for name in args.names:
        if name not in stems:
            near = nearest_name(name, stems)
            raise ConfigError(
                f"there is no `{folder / name}.in`{nearest(name, stems)}",
                evidence=[f"known: {', '.join(stems)}"],
                hint="`provision lock` compiles all",
                correction=(name, near) if near else None,
            )
    stacks = [shipped.load_stack(name) for name in known("stacks")]
    every = tuple(dict.fromkeys(minor for stack in stacks for minor in stack.pythons))
    served = {stack.name: stack.pythons for stack in stacks}
    for stack in stacks:  # an overlay has the Python that Miniforge brings
        miniforge = release_for(stack.pythons)
        served[lock_name(stack.name)] = (miniforge.python,) if miniforge else ()
    written, skipped = [], []
    for minor in args.python or every:
        chosen = [
            path
            for path in inputs
            if (not args.names or path.stem in args.names) and minor in served.get(path.stem, every)
        ]
        interpreter = interpreter_of(minor, os.environ)
        if interpreter is None:
            skipped.append(f"Python {minor}: there is no `python{minor}` on PATH or in pyenv")
        elif chosen:
            written += _compile(interpreter, chosen, upgrade=args.upgrade)
    if args.python and not written:
        raise ConfigError(
            "no lock was written", evidence=skipped, hint="put that Python on PATH, or name another version"
        )
    for line in skipped:
        say(f"skipped: {line}")
    return Outcome(text="\n".join(written), result={"written": written, "skipped": skipped})


def _compile(interpreter: Interpreter, inputs: list[Path], *, upgrade: bool) -> list[str]:
    """Compile these inputs in one throw-away environment with pip-tools; returns the locks written."""
    import sys

    from provision.launch.modules import clean_environ
    from provision.machine import shipped
    from provision.machine.disk import write
    from provision.machine.failed_program import failed_program
    from provision.machine.run import stream
    from provision.model.lock import lock_header, parse_lock

    written = []
    environ = clean_environ(os.environ)
    with tempfile.TemporaryDirectory(prefix="provision-lock-") as scratch:
        log = Path(scratch) / "log"
        tools = f"{scratch}/pip-tools"

        def must(*argv: str) -> None:
            result = stream(argv, environ=environ, log=log)
            if result.code:
                raise failed_program(
                    f"`{' '.join(argv[:4])} …` failed", result.tail, hint="fix the input, then `provision lock`"
                )

        if interpreter.own_venv:
            must(interpreter.executable, "-m", "venv", tools)
        else:
            made = (sys.executable, "-m", "virtualenv", "--no-periodic-update", "--python", interpreter.executable)
            must(*made, tools)
        # The last pip-tools for an old Python does not know the last pip for it: `cannot import name 'DEV_PKGS'`.
        pip = ("pip<23.2",) if interpreter.own_venv else ()
        must(f"{tools}/bin/python", "-m", "pip", "install", "--no-input", "pip-tools", *pip)
        for source in inputs:
            target = source.parent / Path(shipped.lock_name(source.stem, interpreter.minor)).name
            out = Path(scratch) / target.name
            if target.is_file() and not upgrade:
                shutil.copy(target, out)
            say(f"compiling {target.name}")
            must(
                *(f"{tools}/bin/python", "-m", "piptools", "compile", "--quiet", "--generate-hashes", "--allow-unsafe"),
                *("--strip-extras", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-trusted-host"),
                # The default of current pip-tools, but not of those for old Pythons.
                "--resolver=backtracking",
                *("--no-emit-find-links", "--no-emit-options", "--output-file", str(out), str(source)),
                *(["--upgrade"] if upgrade else []),
            )
            text = source.read_text(encoding="utf-8")
            body = "\n".join(line for line in out.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
            head = f"# Written by `provision lock` for Python {interpreter.minor} from {source.name}; edit that, not this.\n"
            head += f"{lock_header(text)}\n"
            parse_lock(head + body + "\n", str(target))
            write(target, f"{head}{body}\n")
            written.append(str(target))
    return written
