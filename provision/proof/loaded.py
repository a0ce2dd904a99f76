"""Compares what a shell has loaded with what an environment was built and proved with. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from provision.model.check import Check, bad, good, judged
from provision.model.record import Record
from provision.wording import count


def judge_loaded(
    record: Record,
    environ: Mapping[str, str],
    python: str | None,
    *,
    venv: str | None = None,
    damage: str | None = None,
    shadows: Sequence[str] = (),
    tool: str = "",
) -> tuple[Check, ...]:
    """Whether this shell has the modules, Python, variables and files of the proof.

    `venv` is the user's own venv on the environment that is active, `damage` what is wrong with its files, `shadows` the files on
    PYTHONPATH that are imported instead of a package of the environment, `tool` the folder of this tool if PATH has it first.

    `record` is the environment's, `environ` the shell's, `python` the interpreter that it would start. The modules are
    those of the proof (LOADEDMODULES then and now); if the site has no module system, there are none to compare.
    """
    return (
        _modules(record, environ),
        _python(f"{venv or record.prefix}/bin/python", python, tool),
        _variables(record, environ),
        _shadows(environ, shadows),
        judged(
            "files",
            damage is None,
            damage or "as they were when the proof passed",
            f"`provision verify {record.environment}` lists what differs; an admin of the site builds it again",
        ),
    )


def _modules(record: Record, environ: Mapping[str, str]) -> Check:
    proved = record.verdict.modules or record.modules
    loaded = [name for name in environ.get("LOADEDMODULES", "").split(":") if name]
    by_name = {name.rsplit("/", 1)[0]: name for name in loaded}
    differing = []
    for name in proved:
        if name not in loaded:
            other = by_name.get(name.rsplit("/", 1)[0])
            differing.append(f"{name} (loaded: {other})" if other else f"{name} (not loaded)")
    if differing:
        return bad(
            "modules",
            f"not the modules of the proof: {', '.join(differing)}",
            f"`module purge; module load {record.module}`",
        )
    more = [name for name in loaded if name not in proved]
    also = f"; also loaded: {', '.join(more)}" if more else ""
    same = f"{count(len(proved), 'module')} as in the proof" if proved else "the proof had no modules"
    return good("modules", f"{same}{also}")


def _python(wanted: str, python: str | None, tool: str) -> Check:
    leave = (
        f"remove `{tool}` from PATH, which is the folder of this tool" if tool else "leave conda and other environments"
    )
    return judged(
        "python",
        python == wanted,
        f"`python` is {python or 'not on PATH'}" + ("" if python == wanted else f", but the proof's is {wanted}"),
        f"`hash -r`; {leave}, then load the module again",
    )


def _variables(record: Record, environ: Mapping[str, str]) -> Check:
    """The module's own variables: a changed OMP_NUM_THREADS is why TensorFlow starts too many threads, or one."""
    words = shlex.split(record.identity.get("module environment", ""))
    wanted = dict(word.split("=", 1) for word in words)
    changed = [
        f"{name} is {environ.get(name)!r}, was {value!r}"
        for name, value in wanted.items()
        if environ.get(name) != value
    ]
    them = "it" if len(wanted) == 1 else "them"
    return judged(
        "variables",
        not changed,
        "; ".join(changed) if changed else f"{count(len(wanted), 'variable')} as the module sets {them}",
        f"`module load {record.module}` again, and do not set them after it",
    )


def _shadows(environ: Mapping[str, str], shadows: Sequence[str]) -> Check:
    """Whether something comes before the environment's own packages and libraries.

    PYTHONPATH alone is no fault: a Python module of EasyBuild sets it to a folder without packages.
    """
    names = [name for name in ("PYTHONHOME", "LD_PRELOAD") if environ.get(name)]
    found = [*(f"{name}={environ[name]}" for name in names), *shadows]
    names += ["PYTHONPATH"] if shadows else []
    return judged(
        "nothing before it",
        not found,
        f"before its own: {'; '.join(found)}" if found else "nothing comes before its packages",
        f"`unset {' '.join(names)}`",
    )
