"""Rendered files are read by the languages they are for: Lua, Tcl and shells get hostile values back unchanged."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest

from golden_files import SUBMITTER, Golden, facts_of, local_site, request_for, slurm_site
from provision.errors import ConfigError
from provision.jobs.build_job import build_script
from provision.machine.render import quote_lua, quote_tcl, render
from provision.machine.render_modulefile import emit_modulefile
from provision.machine.submission import BuildJob, render_build_job
from provision.model.facts import Existing
from provision.model.modulefile import Modulefile
from provision.model.plan import held
from provision.planning.planner import make_plan
from provision.profile.job import Job

HOSTILE = (
    "plain",
    "with space",
    "",
    'double " quote',
    "single ' quote",
    "$HOME ${HOME} $(id) `id`",
    "[exit 3] [puts x]",
    "back\\slash and \\n and \\",
    "\\",
    '\\"',
    "line\nbreak\r\nand tab\t",
    "semi;colon # hash",
    "{braces} } { }} {",
    "]]]] [[ --[[",
    "%s %% %d",
    "*?~!&|<>",
    "Größe → ✓",
    "]==] \\27 \\x41 \\u0041 \\065",
)


def lua() -> str:
    """A Lua to run, Lmod brings one."""
    found = shutil.which("lua5.3") or shutil.which("lua")
    if found is None:
        pytest.skip("there is no lua here; the package `lmod` brings it")
    return found


def tclsh() -> str:
    """A Tcl to run."""
    found = shutil.which("tclsh")
    if found is None:
        pytest.skip("there is no tclsh here; the package `tcl` brings it")
    return found


def run(argv: list[str], *, environ: dict[str, str] | None = None) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run(argv, capture_output=True, env=environ, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


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
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def test_lua_reads_every_hostile_text_as_it_was(tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_bytes("".join(f'io.write({quote_lua(value)}, "\\0")\n' for value in HOSTILE).encode())
    done = subprocess.run([lua(), str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_tcl_reads_every_hostile_text_as_it_was(tmp_path: Path) -> None:
    script = tmp_path / "script.tcl"
    head = "fconfigure stdout -encoding utf-8 -translation lf\n"
    lines = "".join(f'puts -nonewline {quote_tcl(value)}; puts -nonewline "\\u0000"\n' for value in HOSTILE)
    script.write_bytes((head + lines).encode())
    done = subprocess.run([tclsh(), "-encoding", "utf-8", str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_tcl_reads_every_hostile_text_in_the_body_of_a_procedure(tmp_path: Path) -> None:
    script = tmp_path / "script.tcl"
    body = "".join(f"  lappend found {quote_tcl(value)}\n" for value in HOSTILE)
    script.write_bytes(
        f"proc collect {{ }} {{\n{body}  return $found\n}}\n"
        "fconfigure stdout -encoding utf-8 -translation lf\n"
        'foreach one [collect] { puts -nonewline $one; puts -nonewline "\\u0000" }\n'.encode()
    )
    done = subprocess.run([tclsh(), "-encoding", "utf-8", str(script)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(HOSTILE)


def test_lua_runs_the_whole_modulefile_and_sees_every_value(tmp_path: Path) -> None:
    described = module()
    (tmp_path / "module.lua").write_text(emit_modulefile(described, "lua", "a proof"), encoding="utf-8")
    (tmp_path / "run.lua").write_text(
        "local function say(name) return function(...) "
        'io.write(name); for _, v in ipairs({...}) do io.write("\\1", v) end; io.write("\\0") end end\n'
        + "".join(
            f'{name} = say("{name}")\n'
            for name in ("whatis", "help", "conflict", "depends_on", "setenv", "prepend_path")
        )
        + f'dofile("{tmp_path}/module.lua")\n'
    )
    done = subprocess.run([lua(), str(tmp_path / "run.lua")], capture_output=True, check=True)
    calls = [call.split("\1") for call in done.stdout.decode().split("\0")[:-1]]
    assert [call[1:] for call in calls if call[0] == "setenv"] == [list(pair) for pair in described.environ]
    assert [call[1:] for call in calls if call[0] == "prepend_path"] == [list(pair) for pair in described.prepend]
    assert [call[1] for call in calls if call[0] == "depends_on"] == list(described.modules)
    assert ["conflict", "tensorflow"] in calls
    helped = next(call[1] for call in calls if call[0] == "help")
    assert described.summary in helped
    assert helped.endswith("proof    a proof")


def test_tcl_runs_the_whole_modulefile_and_sees_every_value(tmp_path: Path) -> None:
    described = module()
    (tmp_path / "module.tcl").write_text(emit_modulefile(described, "tcl", "a proof"), encoding="utf-8")
    (tmp_path / "run.tcl").write_text(
        "fconfigure stdout -encoding utf-8 -translation lf\n"
        + "".join(
            f"proc {name} {{ args }} {{ puts -nonewline [join [linsert $args 0 {name}] \\u0001]; "
            'puts -nonewline "\\u0000" }\n'
            for name in ("module-whatis", "conflict", "depends-on", "setenv", "prepend-path")
        )
        + f"source -encoding utf-8 {tmp_path}/module.tcl\nModulesHelp\n"
    )
    done = subprocess.run([tclsh(), str(tmp_path / "run.tcl")], capture_output=True, check=True)
    calls = [call.split("\1") for call in done.stdout.decode().split("\0")[:-1]]
    assert [call[1:] for call in calls if call[0] == "setenv"] == [list(pair) for pair in described.environ]
    assert [call[1:] for call in calls if call[0] == "prepend-path"] == [list(pair) for pair in described.prepend]
    assert [call[1] for call in calls if call[0] == "depends-on"] == list(described.modules)
    assert b"proof    a proof" in done.stderr


def test_both_kinds_say_the_same_and_who_wrote_them() -> None:
    lua_text, tcl_text = emit_modulefile(module(), "lua", "p"), emit_modulefile(module(), "tcl", "p")
    assert tcl_text.startswith("#%Module1.0\n")
    for text in (lua_text, tcl_text):
        assert "Written by provision for tensorflow/2.15.1; `provision show knl/tensorflow/2.15.1-0123456789`" in text
    assert lua_text.count("setenv") == tcl_text.count("setenv") == len(HOSTILE)


@pytest.mark.parametrize("kind", ["lua", "tcl", "sh"])
def test_equal_input_gives_equal_bytes(kind: str) -> None:
    assert emit_modulefile(module(), kind, "p") == emit_modulefile(module(), kind, "p")  # type: ignore[arg-type]


def test_a_value_that_a_template_needs_and_does_not_get_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("modulefiles/activate.sh.j2", names=())


def test_a_template_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match=r"`jobs/nosuch\.j2` does not come with this installation"):
        render("jobs/nosuch.j2")


# Shells

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
    found = []
    for part in text.split("\1\0")[:-1]:
        pairs = dict(entry.split("=", 1) for entry in part.split("\0") if entry)
        found.append({name: value for name, value in pairs.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")})
    return found


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


def test_deactivating_leaves_the_environment_as_it_was(tmp_path: Path, shell: str) -> None:
    path = activate(tmp_path)
    before, loaded, after = environments(shell, f"{DUMP}; . {path}; {DUMP}; provision_deactivate; {DUMP}")
    assert loaded != before
    assert after == before


def test_activating_twice_is_like_once_and_is_undone_by_one_deactivation(tmp_path: Path, shell: str) -> None:
    path = activate(tmp_path)
    script = f"{DUMP}; . {path}; {DUMP}; . {path}; {DUMP}; provision_deactivate; {DUMP}"
    before, once, twice, after = environments(shell, script)
    assert twice == once
    assert after == before


def test_activating_another_environment_takes_the_first_one_back(tmp_path: Path, shell: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    one = activate(first)
    two = activate(second, module(environ=(("OTHER", "1"),), prepend=(("PATH", "/site/other/bin"),)))
    before, loaded, after = environments(shell, f"{DUMP}; . {one}; . {two}; {DUMP}; provision_deactivate; {DUMP}")
    assert loaded == {**before, "OTHER": "1", "PATH": f"/site/other/bin:{OLD['PATH']}"}
    assert after == before


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


# Job scripts


def job_script(job: Job | None = None) -> BuildJob:
    """A build job of a site whose file names a variable of the caller's."""
    site = dataclasses.replace(slurm_site(), variables=("PROVISION_ROOT", "EXAMPLE_SITE"))
    request = request_for(site)
    if job:
        request = dataclasses.replace(request, arch=dataclasses.replace(request.arch, job=job))
    plan = make_plan(request, facts_of(site), Existing())
    environ = {"PROVISION_ROOT": "/site/root", "EXAMPLE_SITE": "/site/it's", "OTHER": "stays here"}
    submitter = dataclasses.replace(SUBMITTER, environ=environ, config="/site/work")
    return render_build_job(build_script(request, plan, submitter))


def test_the_job_script_of_a_cluster_is_the_golden_one(golden: Golden) -> None:
    golden("slurm/job.sh", job_script().text)


@pytest.mark.parametrize(("kind", "name"), [("lua", "module.lua"), ("tcl", "module.tcl"), ("sh", "activate.sh")])
def test_the_modulefiles_of_a_cluster_are_the_golden_ones(kind: str, name: str, golden: Golden) -> None:
    plan = make_plan(request_for(slurm_site()), facts_of(slurm_site()), Existing())
    proof = "2 ranks on 2 hosts trained mnist to 98.1%, weights identical (2026-11-21)"
    golden(f"slurm/{name}", emit_modulefile(plan.modulefile, kind, proof))  # type: ignore[arg-type]


def test_the_job_script_carries_the_plan_and_every_variable_of_the_site() -> None:
    script = job_script().text
    text = script.split("<<'PROVISION_PLAN'\n")[1].split("\nPROVISION_PLAN\n")[0]
    plan = make_plan(request_for(slurm_site()), facts_of(slurm_site()), Existing())
    assert json.loads(text) == {"environment": str(plan.environment), "held": held(plan)}
    assert f"export EXAMPLE_SITE={shlex.quote(chr(47) + 'site/it' + chr(39) + 's')}\n" in script
    assert "export PROVISION_ROOT=/site/root\n" in script


def test_bash_hands_the_plan_and_the_arguments_on_as_they_are(tmp_path: Path) -> None:
    script = job_script().text
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; echo "root=$PROVISION_ROOT site=$EXAMPLE_SITE"; cat\n')
    tool.chmod(0o755)
    script = script.replace("/site/provision/bin/python", str(tool)).replace("cd /site/work", f"cd {tmp_path}")
    path = tmp_path / "job.sh"
    path.write_text(script)
    lines = run(["bash", str(path)], environ={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "42"}).splitlines()
    assert lines[:4] == ["-I", "-m", "provision", "build"]
    assert lines[lines.index("--plan") + 1] == "-"
    events = lines[lines.index("--events") + 1]
    assert re.fullmatch(r"/site/root/jobs/provision-haswell-tensorflow-2\.15\.1-[0-9a-f]{10}-42\.events\.jsonl", events)
    assert "root=/site/root site=/site/it's" in lines
    assert json.loads("\n".join(lines[lines.index("{") :]))["held"]


def test_the_directives_stand_before_the_first_command() -> None:
    lines = job_script().text.splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    first_command = next(index for index, line in enumerate(lines) if line and not line.startswith("#"))
    directives = [index for index, line in enumerate(lines) if line.startswith("#SBATCH ")]
    assert len(directives) == 9
    assert max(directives) < first_command


def test_a_site_without_a_scheduler_has_no_job_to_write() -> None:
    request = request_for(local_site())
    plan = make_plan(request, facts_of(local_site()), Existing())
    with pytest.raises(ConfigError, match="has no scheduler") as caught:
        build_script(request, plan, SUBMITTER)
    assert "provision build --site local" in str(caught.value.hint)


def test_bash_and_shellcheck_find_no_fault_in_the_job_script(tmp_path: Path) -> None:
    job = Job(
        time="01:00:00",
        partition="p",
        constraint="a&b",
        account=None,
        qos=None,
        exclusive=True,
        cpus_per_task=4,
        options=("--comment=it's $x",),
    )
    checked(tmp_path / "job.sh", job_script(job).text, "bash")


def test_bash_and_shellcheck_find_no_fault_in_the_activation_script(tmp_path: Path) -> None:
    plain = module(
        environ=(("OMP_NUM_THREADS", "4"), ("VIRTUAL_ENV", "/site/root/envs/x y")), prepend=(("PATH", "/x"),)
    )
    checked(tmp_path / "activate.sh", emit_modulefile(plain, "sh", "p"), "sh")


def checked(path: Path, text: str, dialect: str) -> None:
    """Have bash parse the script, and shellcheck judge it where it is here."""
    path.write_text(text, encoding="utf-8")
    run(["bash", "-n", str(path)])
    if shutil.which("shellcheck") is None:
        pytest.skip("bash -n is content; there is no shellcheck here")
    run(["shellcheck", "--shell", dialect, str(path)])
