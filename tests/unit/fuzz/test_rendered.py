"""Every text that is written for another language, with hostile values that the readers accept: only our lines run.

The scripts run in a folder of their own, with stand-ins for all programs. A value that is executed makes the file `canary`.
"""

from __future__ import annotations

import copy
import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from golden_files import SUBMITTER
from parts.hostile import fuzzed, refused, texts
from parts.profiles import ARCHS, parsed
from parts.scripts import lua, tclsh
from provision.errors import ConfigError
from provision.jobs.build_job import profile_script
from provision.jobs.image_job import ImageJob
from provision.jobs.user_job import UserJob
from provision.machine.configuration.shipped import load_stack
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.machine.submission.render_jobs import render_build_job, render_image_job, render_user_job
from provision.model.modulefile import Modulefile
from provision.model.quoting import quote_tcl
from provision.profile.site import Site, read_site
from provision.profile.strategy import STRATEGIES

PLACES = tuple((name, arch) for name, arch in ARCHS if name != "generic-slurm")
COMMANDS = (
    *("mkdir", "rm", "cp", "mv", "ln", "cat", "date", "hostname", "touch", "chmod", "df", "du", "stat", "sed", "grep"),
    *("tr", "head", "tail", "sort", "awk", "env", "id", "find", "tar", "mktemp", "readlink", "realpath", "basename"),
    *("dirname", "rsync", "ssh", "curl", "wget", "sha256sum", "gzip", "python", "python3", "srun", "aprun", "mpiexec"),
    *("mpirun", "apptainer", "singularity", "nvidia-smi", "module", "ml", "sbatch", "scontrol", "sleep", "tee", "wc"),
    *("timeout", "uname"),
)
RUNS = (
    *('"; : >canary; "', "'; : >canary; '", "$(: >canary)", "`: >canary`", "\n: >canary\n", "x\\\n: >canary"),
    *("|: >canary", '[exec sh -c ": >canary"]', '"..os.execute(": >canary").."', ']]..os.execute(": >canary")..[['),
    *("}\n: >canary\n{", "#SBATCH --wrap=x", "a\n#SBATCH --wrap=x", "EOF\n: >canary\n", "${x:=$(: >canary)}", "%s%n"),
    *("'\"\\", "{{ 7*7 }}"),
)
hostile = st.sampled_from(RUNS) | st.tuples(st.sampled_from(RUNS), st.sampled_from(RUNS)).map("".join) | texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run scripts in, with stand-ins of all programs that they start."""
    here = tmp_path_factory.mktemp("rendered")
    (here / "programs").mkdir()
    for name in COMMANDS:
        (here / "programs" / name).write_text("#!/bin/sh\nexit 0\n")
        (here / "programs" / name).chmod(0o755)
    return here


def run_script(folder: Path, argv: list[str], text: str, name: str) -> int:
    """Run a text in its language, and return its exit code; nothing in it that is a value may run."""
    (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    environ = {
        "PATH": str(folder / "programs"),
        **dict.fromkeys(("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "HOME"), str(folder)),
    }
    environ |= {"SLURM_JOB_ID": "1", "PBS_JOBID": "1.x", "COBALT_JOBID": "1", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [*argv, name], cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )
    assert not list(folder.rglob("canary*")), text
    return done.returncode


def check_script(folder: Path, text: str) -> None:
    """A job script is one that bash parses, its directives are ours alone, and running it runs no value."""
    assert not any(line.startswith(("#SBATCH --wrap", "#PBS --wrap")) for line in text.splitlines())
    event("a script was written")
    assert run_script(folder, ["/bin/bash", "-n"], text, "job.sh") == 0
    run_script(folder, ["/bin/bash"], text, "job.sh")


@st.composite
def sites(draw: st.DrawFn) -> tuple[Site, str] | None:
    """A site with hostile values in the places that take free text, and one of its archs; None if it is refused."""
    name, arch = draw(st.sampled_from(PLACES))
    document = copy.deepcopy(parsed(name))
    inner = document["archs"][arch]
    tables: list[tuple[dict[str, Any], str, Any]] = [
        (document, "title", draw(hostile)),
        (document, "root", "/site/" + draw(hostile)),
        (document.setdefault("files", {}), "scratch", "/scratch/" + draw(hostile)),
        (document.setdefault("files", {}), "temporary", "/tmp/" + draw(hostile)),
        (document["modules"], "init", "/" + draw(hostile)),
        (document["modules"], "path", ["/" + draw(hostile)]),
        (inner, "environ", {"A_VARIABLE": draw(hostile)}),
        (inner, "build_environ", {"A_VARIABLE": draw(hostile)}),
        (inner.setdefault("job", {}), "options", ["--comment=" + draw(hostile)]),
        (inner.setdefault("launcher", {}), "options", ["--comment=" + draw(hostile)]),
        (document["scheduler"], "options", ["--comment=" + draw(hostile)]),
        (inner.setdefault("job", {}), "account", draw(hostile)),
        (inner, "python", "/" + draw(hostile)),
        (inner.setdefault("threads", {}), "environ", {"KMP_X": draw(hostile)}),
    ]
    for table, key, value in draw(st.lists(st.sampled_from(tables), min_size=1, max_size=2)):
        table[key] = value
    try:
        return read_site(
            document,
            draw(st.sampled_from((f"sites/{name}.toml", "x$(>canary).toml", "it's.toml"))),
            {"PROVISION_ROOT": "/r"},
        ), arch
    except ConfigError:
        return None


@st.composite
def jobs(draw: st.DrawFn, place: tuple[Site, str]) -> UserJob:
    """A user's job at a site, with hostile values in its options."""
    site, arch = place[0], place[0].arch(place[1])
    asked = UserJob(
        kind=draw(st.sampled_from(STRATEGIES)),
        site=site,
        arch=arch,
        command=draw(hostile).replace("\n", " "),
        module="tensorflow/2.15.1",
        modulepath="/site/root/modules/x/lua",
        account="tests",
    )
    options: dict[str, Any] = {
        "script": "/" + draw(hostile),
        "arguments": (draw(hostile), draw(hostile)),
        "module": draw(hostile),
        "modulepath": "/" + draw(hostile),
        "venv": "/" + draw(hostile),
        "data": "/" + draw(hostile),
        "resume": draw(hostile),
        "stage_in": "/" + draw(hostile),
        "account": draw(hostile),
        "queue": draw(hostile),
        "time": draw(hostile),
        "image": draw(hostile),
        "record": True,
        "watch_gpus": True,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(options)), max_size=2, unique=True))
    return dataclasses.replace(asked, **{name: options[name] for name in chosen})


@fuzzed(30)
@given(st.data())
def test_a_script_with_hostile_values_runs_none_of_them(folder: Path, data: st.DataObject) -> None:
    place = data.draw(sites())
    if place is None:
        return
    site, arch = place[0], place[0].arch(place[1])
    with refused():
        check_script(folder, render_user_job(data.draw(jobs(place))))
    with refused():
        account = data.draw(st.none() | hostile)
        stack = load_stack("tensorflow-2.15.1")
        submitter = dataclasses.replace(
            SUBMITTER, folder="/" + data.draw(hostile), tool=("/" + data.draw(hostile), "-m")
        )
        check_script(folder, render_build_job(profile_script(site, arch, stack, submitter, account)).text)
    with refused():
        check_script(
            folder,
            render_image_job(ImageJob(site=site, arch=arch, command="x", image="docker://a/b:1", account=account)),
        )


IN_LUA = (
    "setmetatable(_G, { __index = function() return function() return '' end end })\nassert(loadfile('module.lua'))()\n"
)
IN_TCL = (
    "proc unknown {args} { return {} }\nproc module-info {args} { return 0 }\n"
    "source -encoding utf-8 module.tcl\nModulesHelp\n"
)


@fuzzed(20)
@given(st.lists(hostile, min_size=9, max_size=9))
def test_a_modulefile_with_hostile_values_runs_none_of_them(folder: Path, values: list[str]) -> None:
    text, fact, value, prefix, module, path, unload, verdict, home = values
    described = Modulefile(
        name="tensorflow",
        version="2.15.1",
        environment=f"knl/tensorflow/{home}",
        summary=text,
        prefix=f"/{prefix}",
        modules=(module,),
        prepend=(("PATH", path),),
        environ=(("A_VARIABLE", value),),
        facts=((fact, fact),),
        unload=(unload,),
    )
    with refused():
        texts = {kind: emit_modulefile(described, kind, verdict) for kind in ("lua", "tcl", "sh")}
        for kind in ("lua", "tcl"):
            (folder / f"module.{kind}").write_text(texts[kind], encoding="utf-8", errors="surrogateescape")
        assert run_script(folder, [lua()], IN_LUA, "run.lua") == 0
        assert run_script(folder, [tclsh()], IN_TCL, "run.tcl") == 0
        assert run_script(folder, ["/bin/bash"], texts["sh"], "activate.sh") == 0
        event("modulefiles were written")


def test_tcl_reads_a_file_behind_a_control_z(folder: Path) -> None:
    (folder / "module.tcl").write_text(f"set found {quote_tcl(chr(26))}\nexit 3\n", encoding="utf-8")
    assert run_script(folder, [tclsh()], "source -encoding utf-8 module.tcl\n", "run.tcl") == 3
