"""Modulefiles and the activation script, read by Lua, Tcl and shells."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from golden_files import Golden, facts_of, request_for, slurm_site
from parts.scripts import HOSTILE, checked, lua, run, tclsh
from provision.errors import ConfigError
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.model.facts import Existing
from provision.model.plan import Modulefile
from provision.planning.planner import make_plan


def module(**changes: object) -> Modulefile:
    """What loading a module does, with hostile values throughout."""
    plain = Modulefile(
        name="tensorflow",
        version="2.15.1",
        environment="knl/tensorflow/2.15.1-0123456789",
        summary='a "summary" with $HOME [exit 3]; and {braces',
        prefix="/site/root/envs/x",
        modules=("gcc/12.2.0", "cray-mpich@8.1"),
        prepend=(("PATH", "/site/with space/bin"), ("MANPATH", "/site/$x/man")),
        environ=tuple((f"V{index}", value) for index, value in enumerate(HOSTILE)),
        facts=tuple((f"fact {index}", value) for index, value in enumerate(HOSTILE)),
        packages=(("horovod", "0.28.1"), ("keras", "3.15.1")),
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


# What the modulefile sets if the user did not.
DEFAULTS = [["TF_CPP_MIN_LOG_LEVEL", "1"], ["PROVISION_SETS_TF_CPP_MIN_LOG_LEVEL", "1"]]


@pytest.mark.parametrize("more", [(), ("extensions",)])
def test_lua_runs_the_modulefile_with_every_value(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Also in an Lmod before 8.2, which has no function `extensions`."""
    described = module()
    (tmp_path / "module.lua").write_text(emit_modulefile(described, "lua", "a proof"), encoding="utf-8")
    (tmp_path / "run.lua").write_text(
        "local function say(name) return function(...) "
        'io.write(name); for _, v in ipairs({...}) do io.write("\\1", v) end; io.write("\\0") end end\n'
        + "".join(
            f'{name} = say("{name}")\n'
            for name in ("whatis", "help", "conflict", "depends_on", "setenv", "prepend_path", *more)
        )
        + 'function mode() return "load" end\nfunction isFile(...) return true end\n'
        + f'dofile("{tmp_path}/module.lua")\n'
    )
    done = subprocess.run([lua(), str(tmp_path / "run.lua")], capture_output=True, check=True)
    calls = [call.split("\1") for call in done.stdout.decode().split("\0")[:-1]]
    assert [call[1:] for call in calls if call[0] == "setenv"] == [*map(list, described.environ), *DEFAULTS]
    assert [call[1:] for call in calls if call[0] == "extensions"] == [["horovod/0.28.1, keras/3.15.1"] for _ in more]
    assert [call[1:] for call in calls if call[0] == "prepend_path"] == [list(pair) for pair in described.prepend]
    assert [call[1] for call in calls if call[0] == "depends_on"] == list(described.modules)
    assert ["conflict", "tensorflow"] in calls
    helped = next(call[1] for call in calls if call[0] == "help")
    assert described.summary in helped
    assert "proof    a proof\n" in helped
    assert helped.endswith("`provision venv create DIR --on tensorflow/2.15.1`")


def test_tcl_runs_the_modulefile_with_every_value(tmp_path: Path) -> None:
    described = module()
    (tmp_path / "module.tcl").write_text(emit_modulefile(described, "tcl", "a proof"), encoding="utf-8")
    (tmp_path / "run.tcl").write_text(
        "fconfigure stdout -encoding utf-8 -translation lf\n"
        + "".join(
            f"proc {name} {{ args }} {{ puts -nonewline [join [linsert $args 0 {name}] \\u0001]; "
            'puts -nonewline "\\u0000" }\n'
            for name in ("module-whatis", "conflict", "depends-on", "setenv", "prepend-path")
        )
        + "proc module-info { args } { return 0 }\n"
        + f"source -encoding utf-8 {tmp_path}/module.tcl\nModulesHelp\n"
    )
    done = subprocess.run([tclsh(), str(tmp_path / "run.tcl")], capture_output=True, check=True)
    calls = [call.split("\1") for call in done.stdout.decode().split("\0")[:-1]]
    assert [call[1:] for call in calls if call[0] == "setenv"] == [*map(list, described.environ), *DEFAULTS]
    assert [call[1:] for call in calls if call[0] == "prepend-path"] == [list(pair) for pair in described.prepend]
    assert [call[1] for call in calls if call[0] == "depends-on"] == list(described.modules)
    assert b"proof    a proof" in done.stderr


OLD = {"PATH": os.environ["PATH"], "V0": "before", "V2": "", "HOME": "/site/home"}


DUMP = "env -0; printf '\\1\\0'"


def activate(tmp_path: Path, described: Modulefile | None = None) -> Path:
    """An activation script on disk."""
    path = tmp_path / "activate.sh"
    path.write_text(emit_modulefile(described or module(), "sh", "p"), encoding="utf-8")
    return path


def environments(shell: str, script: str) -> list[dict[str, str]]:
    """The environments that a script prints with DUMP."""
    options = ["--noprofile", "--norc"] if shell == "bash" else []
    text = run([shell, *options, "-c", f"set -eu\n{script}"], environ=OLD)
    printed = []
    for part in text.split("\1\0")[:-1]:
        pairs = dict(entry.split("=", 1) for entry in part.split("\0") if entry)
        printed.append({name: value for name, value in pairs.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")})
    return printed


@pytest.fixture(params=["bash", "dash", "zsh", "ksh"])
def shell(request: pytest.FixtureRequest) -> str:
    """A shell that is here."""
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    return str(request.param)


def test_activating_sets_every_variable_to_its_exact_value(tmp_path: Path, shell: str) -> None:
    (after,) = environments(shell, f". {activate(tmp_path)}; {DUMP}")
    for name, value in module().environ:
        assert after[name] == value
    assert after["PATH"] == f"/site/with space/bin:{OLD['PATH']}"
    assert after["MANPATH"] == "/site/$x/man", "no trailing colon where there was nothing before"


def test_activating_twice_is_undone_by_one_deactivation(tmp_path: Path, shell: str) -> None:
    path = activate(tmp_path)
    script = f"{DUMP}; . {path}; {DUMP}; . {path}; {DUMP}; provision_deactivate; {DUMP}"
    before, once, twice, after = environments(shell, script)
    assert twice == once
    assert after == before


def test_activating_another_environment_deactivates_the_first(tmp_path: Path, shell: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    one = activate(first)
    two = activate(second, module(environ=(("OTHER", "1"),), prepend=(("PATH", "/site/other/bin"),)))
    before, loaded, after = environments(shell, f"{DUMP}; . {one}; . {two}; {DUMP}; provision_deactivate; {DUMP}")
    log_level = {"TF_CPP_MIN_LOG_LEVEL": "1"}
    assert loaded == {**before, **log_level, "OTHER": "1", "PATH": f"/site/other/bin:{OLD['PATH']}"}
    assert after == before


OTHERS = {"fish": ["fish", "--no-config"], "csh": ["tcsh", "-f"]}
# csh expands some characters even in single quotes: values with these are refused.
TAME = tuple(value for value in HOSTILE if value.isprintable() and not set(value) & set("'!\\"))
LOADS = {
    "fish": "cat {0} | source",
    "csh": 'eval "`cat {0}`"',  # as `eval "`provision activate --shell csh …`"`: the code is one line then
}


@pytest.mark.parametrize("kind", OTHERS)
def test_fish_and_csh_are_activated_and_deactivated_as_sh(tmp_path: Path, kind: str) -> None:
    if shutil.which(OTHERS[kind][0]) is None:
        pytest.skip(f"there is no {OTHERS[kind][0]} here")
    values = HOSTILE if kind == "fish" else TAME
    described = module(environ=tuple((f"V{index}", value) for index, value in enumerate(values)))
    path, other = tmp_path / "one", tmp_path / "other"
    path.write_text(emit_modulefile(described, kind, "p"), encoding="utf-8")  # type: ignore[arg-type]
    second = module(environ=(("OTHER", "1"),), prepend=(("PATH", "/site/other/bin"),))
    other.write_text(emit_modulefile(second, kind, "p"), encoding="utf-8")  # type: ignore[arg-type]
    load, dump = LOADS[kind], "env -0; printf '\\1\\0'"
    script = "\n".join(
        (dump, load.format(path), dump, load.format(path), dump, load.format(other), dump, "provision_deactivate", dump)
    )
    text = run([*OTHERS[kind], "-c", script] if kind == "fish" else csh(tmp_path, script), environ=OLD)
    before, once, twice, changed, after = (
        {
            name: value
            for name, value in (entry.split("=", 1) for entry in part.split("\0") if entry)
            if name not in ("_", "SHLVL", "PWD", "OLDPWD") and not name.startswith("_provision")
        }
        for part in text.split("\1\0")[:-1]
    )
    assert {name: once[name] for name, _ in described.environ} == dict(described.environ)
    assert (once["PATH"], once["MANPATH"]) == (f"/site/with space/bin:{OLD['PATH']}", "/site/$x/man")
    assert once["TF_CPP_MIN_LOG_LEVEL"] == "1"
    assert twice == once
    assert changed == {**before, "TF_CPP_MIN_LOG_LEVEL": "1", "OTHER": "1", "PATH": f"/site/other/bin:{OLD['PATH']}"}
    assert after == before


def csh(folder: Path, script: str) -> list[str]:
    """How csh runs a script, of which it needs a file: its `-c` takes one line."""
    path = folder / "script.csh"
    path.write_text(f"{script}\n", encoding="utf-8")
    return [*OTHERS["csh"], str(path)]


@pytest.mark.parametrize("value", ["it's", "who!", "a\\b", "two\nlines"])
def test_a_value_that_csh_would_change_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="csh"):
        emit_modulefile(module(environ=(("V", value),)), "csh", "p")


def test_deactivating_leaves_no_variable_and_no_function_behind(tmp_path: Path) -> None:
    names = "compgen -v | grep -vx -e _ -e 'BASH.*' -e PIPESTATUS -e LINENO; compgen -A function || true"
    text = run(
        [
            "bash",
            "--noprofile",
            "--norc",
            "-c",
            f"{names}; echo ==; . {activate(tmp_path)}; provision_deactivate; {names}",
        ],
        environ=OLD,
    )
    before, after = text.split("==\n")
    assert after == before


@pytest.mark.parametrize(("kind", "name"), [("lua", "module.lua"), ("tcl", "module.tcl"), ("sh", "activate.sh")])
def test_the_modulefiles_of_a_cluster_match_the_golden_files(kind: str, name: str, golden: Golden) -> None:
    plan = make_plan(request_for(slurm_site()), facts_of(slurm_site()), Existing())
    proof = "2 ranks on 2 hosts trained mnist to 98.1%, weights identical (2026-11-21)"
    golden(f"slurm/{name}", emit_modulefile(plan.modulefile, kind, proof))  # type: ignore[arg-type]


def test_bash_and_shellcheck_find_no_fault_in_the_activation_script(tmp_path: Path) -> None:
    plain = module(
        environ=(("OMP_NUM_THREADS", "4"), ("VIRTUAL_ENV", "/site/root/envs/x y")), prepend=(("PATH", "/x"),)
    )
    checked(tmp_path / "activate.sh", emit_modulefile(plain, "sh", "p"), "sh")
