"""`provision lock`: compile `requirements/*.in` with pip-tools, for every Python of the stacks that this machine has.

A lock is for one Python minor version.
"""

from __future__ import annotations

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError, UsageError
from provision.jobs.overlay_job import lock_name
from provision.knowledge.miniforge import release_for
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known
from provision.machine.network.lock_compiler import compile_locks, inputs_of_locks, refuse_installed
from provision.machine.probes.probe import interpreter_of
from provision.machine.programs.shell import environ
from provision.machine.terminal.console import say
from provision.profile.stack import PYTHON
from provision.wording import nearest, nearest_name


def run(args: Args) -> Outcome:
    """Compile the locks."""
    inputs, named = inputs_of_locks()
    if bool(args.names) == args.all:
        raise UsageError(
            "`provision lock` got names and `--all`" if args.all else "`provision lock` got no name",
            evidence=[f"known: {', '.join(sorted(named))}"],
            hint=f"`provision lock {sorted(named)[0]}`, or `provision lock --all` for all of `{inputs[0].parent}`",
        )
    for name in args.names:
        if name not in named:
            near = nearest_name(name, tuple(named))
            raise ConfigError(
                f"there is no `requirements/{name}.in`{nearest(name, tuple(named))}",
                evidence=[f"known: {', '.join(sorted(named))}"],
                hint="`provision lock --all` compiles all of the first configuration folder",
                correction=(name, near) if near else None,
            )
    if args.names:
        inputs = [named[name] for name in dict.fromkeys(args.names)]
    refuse_installed(inputs)
    stacks = [shipped.load_stack(name) for name in known("stacks") if shipped.load_wish(name) is None]
    every = tuple(dict.fromkeys(minor for stack in stacks for minor in stack.pythons))
    served = {stack.name: stack.pythons for stack in stacks}
    for stack in stacks:  # an overlay has the Python that Miniforge brings
        miniforge = release_for(stack.pythons)
        served[lock_name(stack.name)] = (miniforge.python,) if miniforge else ()
    for minor in args.python or ():
        if not PYTHON.fullmatch(minor):
            raise UsageError(f"`{minor}` is not a minor version of Python", hint=f"`--python {every[0]}`")
    written, skipped = [], []
    for minor in args.python or every:
        chosen = [path for path in inputs if minor in served.get(path.stem, every)]
        interpreter = interpreter_of(minor, environ())
        if interpreter is None:
            skipped.append(f"Python {minor}: there is no `python{minor}` on PATH or in pyenv")
        elif chosen:
            written += compile_locks(interpreter, chosen, upgrade=args.upgrade)
    if args.python and not written:
        raise ConfigError(
            "no lock was written", evidence=skipped, hint="put that Python on PATH, or name another version"
        )
    for line in skipped:
        say(f"skipped: {line}")
    return Outcome(text="\n".join(written), result={"written": written, "skipped": skipped})
