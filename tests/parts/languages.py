"""Every script that the tool writes, made of values of which any text can be replaced; and bash to run it harmlessly.

A value enters a script as a text in a site, a stack, a job, a submitter, a plan or a modulefile. `texts` lists all of them
and `replaced` puts another in the place of one, behind the back of the readers: a script must be safe, or refused, even then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from golden_files import SUBMITTER, facts_of, lock_of, request_for, slurm_site, stack
from parts.jobs import render_user_job
from parts.profiles import profile
from provision.jobs.build_job import build_script, profile_script
from provision.jobs.environment_script import EnvironmentScript, in_container, in_environment
from provision.jobs.image_job import ImageJob
from provision.jobs.overlay_job import OverlayJob
from provision.jobs.user_job import UserJob
from provision.knowledge.miniforge import RELEASES
from provision.machine.rendering.render import render
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.machine.submission.render_jobs import (
    render_build_job,
    render_environment_script,
    render_image_job,
    render_overlay_job,
)
from provision.model.facts import Existing
from provision.model.plan import Modulefile
from provision.planning.planner import make_plan
from provision.profile.site import Site

Path_ = tuple[str | int, ...]


def texts(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """Every text in a value of dataclasses, tuples and dictionaries, with its place."""
    if isinstance(value, str):
        yield path, value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, (*path, key))


def replaced(value: Any, path: Path_, text: str) -> Any:
    """The value with `text` at this place."""
    if not path:
        return text
    first, rest = path[0], path[1:]
    if isinstance(value, tuple):
        return tuple(replaced(item, rest, text) if index == first else item for index, item in enumerate(value))
    if isinstance(value, dict):
        return {**value, first: replaced(value[first], rest, text)}
    assert isinstance(first, str)
    return dataclasses.replace(value, **{first: replaced(getattr(value, first), rest, text)})


@dataclasses.dataclass(frozen=True)
class Script:
    """A script that the tool writes: the values that it is made of, and what makes it."""

    name: str
    values: Any
    write: Callable[[Any], str]


def small(site: Site) -> Site:
    """The site without what no job contains: the sources of its values, and its archs, of which a job has its own."""
    return dataclasses.replace(site, sources=(), archs=())


def user_job(site: str, arch: str, kind: str, **options: Any) -> Script:
    """A user's job; `options` are those of `UserJob`."""
    asked = UserJob(
        kind=kind,  # type: ignore[arg-type]
        site=small(profile(site)),
        arch=profile(site).arch(arch),
        command="provision job",
        module="tensorflow/2.15.1",
        modulepath="/site/root/modules/gpu/lua",
        script="/home/ada/train.py",
        arguments=("--epochs", "3"),
        account="tests",
        record=True,
        **options,
    )
    return Script(f"{kind}-{site}-{asked.runtime}", asked, render_user_job)


def _build(values: dict[str, Any]) -> str:
    request = dataclasses.replace(values["request"], site=values["site"], arch=values["site"].archs[0])
    plan = make_plan(request, facts_of(slurm_site()), Existing())
    return render_build_job(build_script(request, plan, values["submitter"], values["account"])).text


def _profile_build(values: dict[str, Any]) -> str:
    site = values["site"]
    return render_build_job(
        profile_script(site, site.archs[0], values["stack"], values["submitter"], values["account"])
    ).text


def _copier(verb: str) -> Callable[[dict[str, Any]], str]:
    return lambda values: render(f"jobs/data-{verb}.sh.j2", folder=True, **values)


def _environment(script: EnvironmentScript) -> str:
    return render_environment_script(script, command="provision kernel install", again="install it again")


def environment_scripts() -> dict[str, EnvironmentScript]:
    """The ways through the script that becomes the Python of an environment."""
    return {
        **{
            name: in_environment(
                small(profile(name)),
                environment=f"{arch}/tensorflow/2.15.1-0123456789",
                module="tensorflow/2.15.1",
                modulepath="/site/root/modules/lua",
                activate="/site/root/activate.sh",
                prefix="/site/root/envs/x",
                venv=venv,
            )
            for name, arch, venv in (("nersc-cori", "knl", None), ("local", "any", "/home/ada/venv"))
        },
        # Its paths may only name variables and are refused otherwise; an option is a text that is written as it is.
        "container": dataclasses.replace(
            script := in_container(small(profile("nyu-torch")), image=None, overlays=("/home/ada/my.ext3",)),
            container=dataclasses.replace(script.container, options=("--fakeroot",)),  # type: ignore[type-var]
        ),
    }


MODULEFILE = Modulefile(
    name="tensorflow",
    version="2.15.1",
    environment="knl/tensorflow/2.15.1-0123456789",
    summary="TensorFlow",
    prefix="/site/root/envs/x",
    modules=("gcc/12.2.0",),
    prepend=(("PATH", "/site/bin"),),
    environ=(("VIRTUAL_ENV", "/site/x"),),
    facts=(("python", "3.11"),),
    unload=("atp",),
)


@functools.cache
def scripts() -> tuple[Script, ...]:
    """One script of each template and of each way through it, in bash."""
    submitter = dataclasses.replace(SUBMITTER, folder="/home/ada")
    greene = profile("nyu-greene")
    overlay = OverlayJob(
        site=small(greene),
        arch=greene.arch("gpu"),
        command="provision job overlay",
        framework=stack().framework,
        lock=lock_of("overlay-tensorflow-2.15.1", "numpy==1.26.4"),
        miniforge=RELEASES[0],
        account="tests",
    )
    images = [
        ImageJob(
            site=small(profile(name)),
            arch=profile(name).arch(arch),
            command="provision job image",
            image=image,
            account="tests",
        )
        for name, arch, image in (
            ("generic-slurm", "gpu", None),
            ("nyu-torch", "cpu", "docker://tensorflow/tensorflow@sha256:" + "a" * 64),
        )
    ]
    push = {
        "purpose": "Copy data to a site: 0.1 MB",
        "base": "$SCRATCH/x",
        "host": "login.example",
        "source": "/home/ada/mnist",
        "name": "mnist",
        "command": "provision data push",
        "kilobytes": 4,
        "files": 2,
    }
    pull = {
        "purpose": "Copy results from a site",
        "base": "$SCRATCH/x",
        "host": "login.example",
        "source": "runs/4711",
        "name": "4711",
        "command": "provision data pull",
        "target": "/home/ada/results",
    }
    build = {"request": request_for(slurm_site()), "site": slurm_site(), "submitter": submitter, "account": "tests"}
    polaris = {
        "site": dataclasses.replace(profile("alcf-polaris"), sources=()),
        "stack": stack(),
        "submitter": submitter,
        "account": "tests",
    }
    return (
        user_job("nyu-greene", "gpu", "mirrored", venv="/home/ada/env", watch_gpus=True, resume="42"),
        user_job("nyu-greene", "gpu", "horovod", runtime="container", data="/data", overlays=("/own.ext3",)),
        user_job("generic-slurm", "gpu", "horovod", runtime="container", image="docker://nvcr.io/nvidia/tf:25.02"),
        user_job("generic-slurm", "cpu", "multiworker", runtime="venv"),
        user_job("nersc-cori", "knl", "horovod", runtime="venv", stage_in="/x"),
        user_job("alcf-polaris", "gpu", "horovod", runtime="venv"),
        user_job("sigma2-saga", "accel", "single", use_gpu=False),
        dataclasses.replace(
            plugin := user_job("alcf-theta", "knl", "cray-ml-plugin"),
            name="cray-ml-plugin-example",
            values=dataclasses.replace(plugin.values, script="$CRAYPE_ML_PLUGIN_BASEDIR/examples/mnist.py"),
        ),
        Script("overlay", overlay, render_overlay_job),
        *(Script(f"image-{number}", image, render_image_job) for number, image in enumerate(images)),
        Script("build", build, _build),
        Script("build-profile", polaris, _profile_build),
        *(
            Script(f"data-{verb}{where}", {**values, **more}, _copier(verb))
            for verb, values in (("push", push), ("pull", pull))
            for where, more in (("", {}), ("-here", {"host": ""}))
        ),
        *(Script(f"environment-{name}", values, _environment) for name, values in environment_scripts().items()),
        Script("activate", MODULEFILE, lambda module: emit_modulefile(module, "sh", "a proof")),
    )


# Everything that a script would do is a function that does nothing, so that bash expands and runs each line to the end. A
# program that is given other bash (`bash -c TEXT`, `bash -s` and `ssh HOST` with the text on stdin) runs it in the same way.
HARMLESS = r"""
shopt -s expand_aliases
for name in set exit exec source . cd trap kill umask command; do eval "$name() { :; }"; done
read() { return 1; }
command_not_found_handle() {
  local before= word
  for word; do
    case $before in -c | -lc) eval "$word" ;; esac
    case $word in -s | *" -s") eval "$(</dev/stdin)" ;; esac
    before=$word
  done
  echo answer
}
unset name
"""


def run_harmlessly(script: Path) -> subprocess.CompletedProcess[bytes]:
    """Run each line of a script in bash with no program, so that only what bash itself expands or redirects happens.

    What the script left in the background is killed: a loop that waits for a program never ends here.
    """
    bash = shutil.which("bash")
    assert bash is not None
    text = f"{HARMLESS}\n{script.read_text(encoding='utf-8')}"
    environ = {"PATH": "/nonexistent", "HOME": "/nonexistent", "SCRATCH": "/nonexistent", "USER": "ada"}
    argv = [bash, "--noprofile", "--norc", "-c", text, str(script)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            process.wait(timeout=20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(argv, process.returncode, *said)


# A cluster that nothing answers for: sbatch reads the directives of a script before it looks for the controller.
NO_CLUSTER = """\
ClusterName=none
SlurmctldHost=localhost
SlurmctldPort=1
MessageTimeout=1
AuthType=auth/none
CredType=cred/none
NodeName=localhost
PartitionName=p Nodes=ALL
"""


def options_of_sbatch(script: str, folder: Path) -> dict[str, str]:
    """The options that the real sbatch reads in the directives of a script."""
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        pytest.skip("there is no sbatch here")
    (folder / "slurm.conf").write_text(NO_CLUSTER)
    (folder / "job.sh").write_text(script, encoding="utf-8")
    environ = {"PATH": "/usr/bin:/bin", "SLURM_CONF": str(folder / "slurm.conf"), "LC_ALL": "C.UTF-8"}
    argv = [sbatch, "-vv", "--test-only", str(folder / "job.sh")]
    done = subprocess.run(argv, capture_output=True, env=environ, check=False, timeout=60)
    defined = done.stderr.decode().partition("defined options\n")[2].partition("sbatch: end of defined options")[0]
    assert defined, done.stderr.decode()
    pairs = [line.removeprefix("sbatch: ").partition(":") for line in defined.splitlines() if " : " in line]
    return {name.strip(): value.removeprefix(" ") for name, _, value in pairs}
