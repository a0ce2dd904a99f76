"""The rules for a job's script: each finding names the line, what is wrong there, and the fix.

Every rule comes from an error on a site page or from what its readers ran into; docs/dev/requirements.md says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.images import sees_no_gpu
from provision.knowledge.toolchains import mixture
from provision.launch.rank_threads import INTER, INTRA
from provision.lint import Finding
from provision.lint.job_script import JobScript, Line, fault, gpus_of, tasks_of
from provision.lint.site_rules import at_site
from provision.lint.training import Training
from provision.lint.version_rules import at_version
from provision.profile.arch import Arch
from provision.profile.site import Site

BLANK = re.compile(
    r"<[A-Za-z][A-Za-z0-9 _-]*>|\bNetID\b|\bnn[Xx]{2,}k\b|\b[Yy][Oo][Uu][Rr][_-][A-Za-z_]+|\bCHANGE_?ME\b|\bTODO\b|\bXXX+\b"
    r"|(?<==)\"?\?\"?(?=\s|$)|(?<==)\.\.\.(?=\s|$)"
)
CACHES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR", "APPTAINER_TMPDIR", "PIP_CACHE_DIR", "KERAS_HOME")


def lint_job(script: JobScript, training: Training | None, site: Site | None, arch: Arch | None) -> tuple[Finding, ...]:
    """All faults of a script, in order of their lines. Without a site only what is wrong anywhere."""
    found = [*_text(script), *_modules(script, site, arch), *_launch(script, site), *_shape(script, training)]
    found += _containers(script, arch)
    if training is not None:
        found += _training(script, training)
        found += at_version(script, training)
    if site is not None:
        found += at_site(script, site, arch)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.line, one.rule)))


def _text(script: JobScript) -> Iterator[Finding]:
    """What is wrong in any script."""
    for option in script.options.values():
        found = BLANK.search(option.text)
        if found:
            yield fault(
                script, "blank", (option.line, option.text), f"`{found[0]}` is still to be filled in", "fill it in"
            )
    for line in script.lines:
        found = BLANK.search(line.text)
        if found:
            yield fault(script, "blank", line, f"`{found[0]}` is still to be filled in", "fill it in")
        if line.glued:
            yield fault(
                script, "glued-backslash", line, "a backslash touches the word before it", "put a space before it"
            )
        if "--no-check-certificate" in line.words:
            yield fault(script, "no-certificate", line, "anybody may answer this download", "leave the option out")
        if re.search(r"bash -l?c (\"|').*source [^;&]*;", line.text):
            yield fault(script, "source-then", line, "the program runs though sourcing failed", "`&&` in place of `;`")
    for line in script.late:
        yield fault(
            script, "late-directive", line, "a directive behind the first command is not read", "move it to the top"
        )
    if script.scheduler != "none" and not re.search(r"^\s*set -\S*e|^\s*set -o errexit", script.text, re.MULTILINE):
        yield fault(
            script, "goes-on", (1, ""), "it goes on after a command that failed", "`set -euo pipefail` before the first"
        )
    for name, (value, number, exported) in script.variables.items():
        where = (number, f"{name}={value}")
        if name in CACHES and not exported:
            yield fault(script, "not-exported", where, f"programs do not see `{name}`", f"`export {name}=…`")
        if name == "PYTHONPATH" and re.search(r"\$\{?PATH\}?", value):
            yield fault(script, "path-in-pythonpath", where, "PYTHONPATH holds PATH", "leave it out")


def _modules(script: JobScript, site: Site | None, arch: Arch | None) -> Iterator[Finding]:
    """Modules: exact, from nothing, and recorded."""
    loaded = list(script.modules())
    named = {*(arch.modules if arch else ()), *(arch.provided if arch else ())}
    for line, name in loaded:
        if "/" not in name and name not in named and not name.startswith("$"):
            yield fault(
                script,
                "module-version",
                line,
                f"`{name}` has no version: another one tomorrow",
                f"`module avail {name}`, then `module load {name}/VERSION`",
            )
    if not loaded:
        return
    first = loaded[0][0]
    mixed = mixture(name for _, name in loaded)
    if mixed:
        yield fault(script, "toolchains", first, f"it {mixed}", "modules of one generation: `module avail NAME`")
    emptied = [n for n in (script.does("module", word) for word in ("purge", "reset")) if n] or [
        n for n in (script.does("ml", word) for word in ("purge", "reset")) if n
    ]
    keeps = site is not None and site.modules.reset == "none"
    if not keeps and not any(number <= first.number for number in emptied):
        word = site.modules.reset if site else "purge"
        yield fault(
            script,
            "modules-on-top",
            first,
            "modules come on top of what the shell had loaded",
            f"`module {word}` first",
        )
    if script.does("module", "list") is None and script.does("ml", "list") is None and script.does("ml") is None:
        yield fault(script, "no-module-list", first, "nothing records what was loaded", "`module list` behind the last")


def _launch(script: JobScript, site: Site | None) -> Iterator[Finding]:
    """How ranks are started."""
    started = list(script.started())
    nodes = script.number("nodes") or 1
    for line, launcher, words in started:
        text = " ".join(words)
        if launcher == "horovodrun" and nodes > 1:
            yield fault(
                script,
                "horovodrun",
                line,
                "horovodrun fails on several nodes under a scheduler",
                "`srun` or the site's own",
            )
        cpus = script.options.get("cpus-per-task")
        if (
            launcher == "srun"
            and cpus is not None
            and not re.search(r"(^|\s)(--cpus-per-task\b|-c\s?\S)", text)
            and "SRUN_CPUS_PER_TASK" not in script.variables
        ):
            yield fault(
                script,
                "srun-cpus",
                line,
                "since Slurm 22.05 srun does not take over --cpus-per-task: every task gets one CPU",
                f"`srun --cpus-per-task={cpus.value}`",
            )
        if launcher in ("mpirun", "mpiexec", "aprun") and re.search(r"SLURM_(PROCID|LOCALID)", script.text):
            number = next(
                (one.number for one in script.lines if re.search(r"SLURM_(PROCID|LOCALID)", one.text)), line.number
            )
            yield fault(
                script,
                "slurm-number",
                (number, f"{launcher} …"),
                f"SLURM_PROCID is 0 in every process that {launcher} starts",
                "start by srun, or ask MPI: `hvd.rank()`",
            )
        yield from _ranks(script, line, launcher, text, nodes)
    if site is not None and site.scheduler.script_on == "service-node":
        for line in script.lines:
            if re.match(r"(\S*/)?python[0-9.]*\s", line.text) and not any(line is one for one, _, _ in started):
                yield fault(
                    script,
                    "on-service-node",
                    line,
                    "this runs where the script runs: another CPU, on which TensorFlow dies of `Illegal instruction`",
                    "`aprun -n 1 -N 1` before it",
                )


def _ranks(script: JobScript, line: Line, launcher: str, text: str, nodes: int) -> Iterator[Finding]:
    """The launcher's ranks against the directives' nodes."""
    found = re.search(r"(?:^|\s)(?:-np?|--np|--ntasks)[ =](\d+)(?=\s|$)", text)
    each = re.search(r"(?:^|\s)(?:-N|--ppn|-npernode|--ntasks-per-node)[ =](\d+)(?=\s|$)", text)
    if found is None:
        return
    ranks, per_node = int(found[1]), int(each[1]) if each else script.number("ntasks-per-node")
    tasks = script.number("ntasks")
    if per_node is not None and launcher != "horovodrun" and ranks != nodes * per_node:
        yield fault(
            script,
            "ranks",
            line,
            f"{ranks} ranks are not {nodes} nodes × {per_node} on each",
            f"`{found[0].strip().replace(found[1], str(nodes * per_node))}`",
        )
    elif tasks is not None and per_node is None and ranks > tasks:
        yield fault(
            script, "ranks", line, f"{ranks} ranks, and the job asks for {tasks} tasks", f"`--ntasks={ranks}` above"
        )


def _shape(script: JobScript, training: Training | None) -> Iterator[Finding]:
    """Tasks against nodes and GPUs."""
    placed = {"nodes", "ntasks-per-node", "tasks-per-node"} & set(script.options)
    if {"gpus-per-task", "ntasks"} <= set(script.options) and not placed:
        yield fault(
            script,
            "tasks-anywhere",
            script.line_of("ntasks"),
            "nothing says on how many nodes the tasks are",
            "`--nodes=N` and `--ntasks-per-node` besides",
        )
    if training is None:
        return
    tasks, nodes, gpus = tasks_of(script) or 1, script.number("nodes") or 1, gpus_of(script)
    where = script.line_of("ntasks", "ntasks-per-node", "nodes")
    if training.mirrored and tasks > 1:
        yield fault(
            script,
            "mirrored-tasks",
            where,
            f"MirroredStrategy is one process, and the job has {tasks} tasks: each takes all GPUs",
            "`--nodes=1` and `--ntasks=1`",
        )
    elif training.mirrored and nodes > 1:
        yield fault(script, "mirrored-nodes", where, "MirroredStrategy sees its own node only", "`--nodes=1`")
    if training.horovod and tasks == 1 and gpus > 1 and script.scheduler == "slurm":
        yield fault(
            script,
            "horovod-tasks",
            script.line_of("ntasks", "gres", "gpus"),
            f"one task, and {gpus} GPUs: Horovod uses one for each task",
            f"`--ntasks-per-node={gpus}`",
        )


def _training(script: JobScript, training: Training) -> Iterator[Finding]:
    """The job against the training script that it starts."""
    launchers = {launcher: line for line, launcher, _ in script.started()}
    others = [name for name in launchers if name in ("mpirun", "mpiexec", "aprun")]
    if training.multiworker:
        if "srun" not in launchers:
            line = launchers[others[0]] if others else (1, "")
            yield fault(
                script,
                "multiworker-launcher",
                line,
                "MultiWorkerMirroredStrategy's Slurm resolver reads what srun alone sets (SLURM_STEP_NUM_TASKS)",
                "`srun python …`",
            )
        unset = {word for line in script.lines if line.words[:1] == ("unset",) for word in line.words[1:]}
        if not {"http_proxy", "https_proxy"} <= unset and "no_proxy" not in script.variables:
            yield fault(
                script,
                "proxies",
                launchers.get("srun", (1, "")),
                "workers speak gRPC to each other, which a proxy swallows: they hang",
                "`unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy all_proxy` before",
            )
    if training.reads_slurm is not None and others:
        yield Finding(
            rule="slurm-number",
            file=training.file,
            line=training.reads_slurm,
            message=f"SLURM_PROCID is 0 in every process that {others[0]} starts",
            evidence=launchers[others[0]].text,
            fix="start by srun, or ask Horovod: `hvd.rank()`",
        )
    one_each = script.options.get("gpus-per-task")
    if one_each is not None and one_each.value.endswith("1") and training.picks_gpu_by_local_rank is not None:
        yield Finding(
            rule="gpu-by-local-rank",
            file=training.file,
            line=training.picks_gpu_by_local_rank,
            message="each task sees one GPU only, number 0: IndexError for all but the first",
            evidence=one_each.text,
            fix="`gpus[hvd.local_rank() if len(gpus) > 1 else 0]`",
        )
    if {INTER, INTRA} & set(script.variables) and not training.reads_threads:
        name = next(name for name in (INTER, INTRA) if name in script.variables)
        yield fault(
            script,
            "threads-unread",
            (script.variables[name][1], f"{name}={script.variables[name][0]}"),
            f"TensorFlow does not read `{name}` by itself, and `{training.file}` does not either",
            f'`tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["{INTRA}"]))`, inter likewise',
        )


def _containers(script: JobScript, arch: Arch | None) -> Iterator[Finding]:
    """Containers: read-only overlays, GPUs."""
    wants_gpu = gpus_of(script) > 0
    for line in script.lines:
        if not re.search(r"\b(apptainer|singularity)\b.*\b(exec|run|shell)\b", line.text):
            continue
        if re.search(r":rw\b", script.filled(line.text)):
            yield fault(
                script, "overlay-rw", line, "an overlay that may be written serves one job at a time", "`:ro` in jobs"
            )
        if wants_gpu and "--nv" not in line.words:
            yield fault(script, "container-gpu", line, "the container sees no GPU", f"`--nv` behind `{line.words[0]}`")
        for word in map(script.filled, line.words):
            if wants_gpu and sees_no_gpu(word):
                yield fault(script, "image-gpu", line, f"`{word}` has no GPU support", "a tag that ends in `-gpu`")
