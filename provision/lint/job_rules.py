"""The rules for a job script: each finding names the line, what is wrong there, and the fix.

Every rule comes from an error on a site page, or from a problem of its readers; docs/dev/requirements.md says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.images import sees_no_gpu
from provision.knowledge.toolchains import mixture
from provision.launch.rank_threads import INTER, INTRA
from provision.lint import Finding
from provision.lint.job_script import JobScript, Line, fault, gpus_of, tasks_of
from provision.lint.site_rules import check_site
from provision.lint.training import Training
from provision.lint.version_rules import check_versions
from provision.profile.arch import Arch
from provision.profile.site import Site

BLANK = re.compile(
    r"<[A-Za-z][A-Za-z0-9 _-]*>|\bNetID\b|\bnn[Xx]{2,}k\b|\b[Yy][Oo][Uu][Rr][_-][A-Za-z_]+|\bCHANGE_?ME\b|\bTODO\b|\bXXX+\b"
    r"|(?<==)\"?\?\"?(?=\s|$)|(?<==)\.\.\.(?=\s|$)"
)
CACHES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR", "APPTAINER_TMPDIR", "PIP_CACHE_DIR", "KERAS_HOME")


def lint_job(script: JobScript, training: Training | None, site: Site | None, arch: Arch | None) -> tuple[Finding, ...]:
    """All faults of a script, sorted by line. Without a site only the rules that hold at every site apply."""
    findings = [*_text(script), *_modules(script, site, arch), *_launch(script, site), *_shape(script, training)]
    findings += _containers(script, arch)
    if training is not None:
        findings += _training(script, training)
        findings += check_versions(script, training)
    if site is not None:
        findings += check_site(script, site, arch)
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.rule)))


def _text(script: JobScript) -> Iterator[Finding]:
    """The faults that are wrong in any script: placeholders, shell traps, directives that are not read."""
    for option in script.options.values():
        blank = BLANK.search(option.text)
        if blank:
            yield fault(
                script,
                "blank",
                (option.line, option.text),
                f"`{blank[0]}` is a placeholder",
                "replace it with your value",
            )
    for line in script.lines:
        blank = BLANK.search(line.text)
        if blank:
            yield fault(script, "blank", line, f"`{blank[0]}` is a placeholder", "replace it with your value")
        if line.glued:
            yield fault(
                script,
                "glued-backslash",
                line,
                "no space before the backslash, so this word and the next line become one word",
                "put a space before the backslash",
            )
        if "--no-check-certificate" in line.words:
            yield fault(
                script,
                "no-certificate",
                line,
                "the server of this download is not verified",
                "remove `--no-check-certificate`",
            )
        if re.search(r"bash -l?c (\"|').*source [^;&]*;", line.text[:1000]):
            yield fault(
                script, "source-then", line, "the program runs even if `source` fails", "use `&&` instead of `;`"
            )
    for line in script.late:
        why, fix = _why_unread(script, line)
        yield fault(script, "late-directive", line, why, fix)
    if script.scheduler != "none" and not re.search(
        r"^[ \t]*set -\S*e|^[ \t]*set -o errexit", script.text, re.MULTILINE
    ):
        yield fault(
            script,
            "goes-on",
            (1, ""),
            "the script continues after a command that failed",
            "put `set -euo pipefail` before the first command",
        )
    for name, (value, number, exported) in script.variables.items():
        where = (number, f"{name}={value}")
        if name in CACHES and not exported:
            yield fault(
                script,
                "not-exported",
                where,
                f"`{name}` is not exported, so programs do not see it",
                f"`export {name}=…`",
            )
        if name == "PYTHONPATH" and re.search(r"\$\{?PATH\}?", value):
            yield fault(script, "path-in-pythonpath", where, "PYTHONPATH contains PATH", "remove PATH from PYTHONPATH")


def _why_unread(script: JobScript, line: Line) -> tuple[str, str]:
    """Why the scheduler does not read this directive, and what to do about it."""
    if script.scheduler == "cobalt":
        return (
            "Cobalt reads directives only directly behind `#!`, and stops at the first other line, also a comment",
            "move it directly behind the line `#!`, among the other directives",
        )
    if script.scheduler == "slurm" and script.is_indented(line):
        return "Slurm ignores a directive with white space before it", "remove the white space"
    return "the scheduler ignores a directive after the first command", "move it to the top of the script"


def _modules(script: JobScript, site: Site | None, arch: Arch | None) -> Iterator[Finding]:
    """Modules must have exact versions, must be loaded into a clean environment, and must be listed in the output."""
    loaded = list(script.modules())
    named = {*(arch.modules if arch else ()), *(arch.provided if arch else ())}
    for line, name in loaded:
        if "/" not in name and name not in named and not name.startswith("$"):
            yield fault(
                script,
                "module-version",
                line,
                f"`{name}` has no version, so another one may be loaded tomorrow",
                f"run `module avail {name}`, then write `module load {name}/VERSION`",
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
            "modules are added to those that the shell has already loaded",
            f"put `module {word}` before the first `module load`",
        )
    if script.does("module", "list") is None and script.does("ml", "list") is None and script.does("ml") is None:
        yield fault(
            script,
            "no-module-list",
            first,
            "the output does not record which modules were loaded",
            "put `module list` after the last `module load`",
        )


def _launch(script: JobScript, site: Site | None) -> Iterator[Finding]:
    """The launcher and its options must start the ranks that the directives request."""
    started = list(script.started())
    nodes = script.number("nodes") or 1
    for line, launcher, words in started:
        text = " ".join(words)
        if launcher == "horovodrun":
            yield fault(
                script,
                "horovodrun",
                line,
                "horovodrun opens servers that accept code from anyone who reaches them; our environments refuse to start it",
                "start the ranks with `srun` or the launcher of the site",
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
                "since Slurm 22.05 srun does not inherit --cpus-per-task from the job, so every task gets one CPU",
                f"`srun --cpus-per-task={cpus.value}`",
            )
        if launcher in ("mpirun", "mpiexec", "aprun") and re.search(r"SLURM_(PROCID|LOCALID)", script.text):
            reads = (line.number for line in script.lines if re.search(r"SLURM_(PROCID|LOCALID)", line.text))
            number = next(reads, line.number)
            yield fault(
                script,
                "slurm-number",
                (number, f"{launcher} …"),
                f"SLURM_PROCID is 0 in every process that {launcher} starts",
                "start the ranks with srun, or use MPI's number: `hvd.rank()`",
            )
        yield from _ranks(script, line, launcher, text, nodes)
    if site is not None and site.scheduler.script_on == "service-node":
        for line in script.lines:
            if re.match(r"(\S*/)?python[0-9.]*\s", line.text) and not any(line is start for start, _, _ in started):
                yield fault(
                    script,
                    "on-service-node",
                    line,
                    "this runs on the service node, whose CPU differs: TensorFlow fails with `Illegal instruction`",
                    "put `aprun -n 1 -N 1` before the command",
                )


def _ranks(script: JobScript, line: Line, launcher: str, text: str, nodes: int) -> Iterator[Finding]:
    """The number of ranks must fit the nodes and tasks of the directives."""
    all_ranks = re.search(r"(?:^|\s)(?:-np?|--np|--ntasks)[ =](\d{1,15})(?=\s|$)", text)
    on_each_node = re.search(r"(?:^|\s)(?:-N|--ppn|-npernode|--ntasks-per-node)[ =](\d{1,15})(?=\s|$)", text)
    if all_ranks is None:
        return
    ranks = int(all_ranks[1])
    per_node = int(on_each_node[1]) if on_each_node else script.number("ntasks-per-node")
    tasks = script.number("ntasks")
    if per_node is not None and launcher != "horovodrun" and ranks != nodes * per_node:
        yield fault(
            script,
            "ranks",
            line,
            f"{ranks} ranks, but {nodes} nodes × {per_node} ranks per node are {nodes * per_node}",
            f"`{all_ranks[0].strip().replace(all_ranks[1], str(nodes * per_node))}`",
        )
    elif tasks is not None and per_node is None and ranks > tasks:
        yield fault(
            script,
            "ranks",
            line,
            f"{ranks} ranks, but the job requests {tasks} tasks",
            f"request `--ntasks={ranks}` in the directives",
        )


def _shape(script: JobScript, training: Training | None) -> Iterator[Finding]:
    """The number of tasks must fit the nodes, the GPUs and the strategy of the training script."""
    placed = {"nodes", "ntasks-per-node", "tasks-per-node"} & set(script.options)
    if {"gpus-per-task", "ntasks"} <= set(script.options) and not placed:
        yield fault(
            script,
            "tasks-anywhere",
            script.line_of("ntasks"),
            "the number of nodes is not given, so the tasks may be on any number of nodes",
            "add `--nodes=N` and `--ntasks-per-node=N`",
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
            f"MirroredStrategy is one process, but the job has {tasks} tasks, each of which takes all GPUs",
            "`--nodes=1` and `--ntasks=1`",
        )
    elif training.mirrored and nodes > 1:
        yield fault(script, "mirrored-nodes", where, "MirroredStrategy uses the GPUs of one node only", "`--nodes=1`")
    if training.horovod and tasks == 1 and gpus > 1 and script.scheduler == "slurm":
        yield fault(
            script,
            "horovod-tasks",
            script.line_of("ntasks", "gres", "gpus"),
            f"one task, but {gpus} GPUs: Horovod uses one GPU per task",
            f"`--ntasks-per-node={gpus}`",
        )


def _training(script: JobScript, training: Training) -> Iterator[Finding]:
    """The job must start the training script in the way that the script needs."""
    launchers = {launcher: line for line, launcher, _ in script.started()}
    others = [name for name in launchers if name in ("mpirun", "mpiexec", "aprun")]
    if training.multiworker:
        if "srun" not in launchers:
            line = launchers[others[0]] if others else (1, "")
            yield fault(
                script,
                "multiworker-launcher",
                line,
                "MultiWorkerMirroredStrategy reads SLURM_STEP_NUM_TASKS, which only srun sets",
                "`srun python …`",
            )
        unset = {word for line in script.lines if line.words[:1] == ("unset",) for word in line.words[1:]}
        if not {"http_proxy", "https_proxy"} <= unset and "no_proxy" not in script.variables:
            yield fault(
                script,
                "proxies",
                launchers.get("srun", (1, "")),
                "the workers use gRPC, which a proxy blocks: they would hang",
                "before it, `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy all_proxy`",
            )
    if training.reads_slurm is not None and others:
        yield Finding(
            rule="slurm-number",
            file=training.file,
            line=training.reads_slurm,
            message=f"SLURM_PROCID is 0 in every process that {others[0]} starts",
            evidence=launchers[others[0]].text,
            fix="start the ranks with srun, or use Horovod's number: `hvd.rank()`",
        )
    gpus_per_task = script.options.get("gpus-per-task")
    one_each = gpus_per_task is not None and gpus_per_task.value.endswith("1")
    if gpus_per_task is not None and one_each and training.picks_gpu_by_local_rank is not None:
        yield Finding(
            rule="gpu-by-local-rank",
            file=training.file,
            line=training.picks_gpu_by_local_rank,
            message="each task sees only one GPU, number 0, so all tasks but the first fail with IndexError",
            evidence=gpus_per_task.text,
            fix="`gpus[hvd.local_rank() if len(gpus) > 1 else 0]`",
        )
    if {INTER, INTRA} & set(script.variables) and not training.reads_threads:
        name = next(name for name in (INTER, INTRA) if name in script.variables)
        yield fault(
            script,
            "threads-unread",
            (script.variables[name][1], f"{name}={script.variables[name][0]}"),
            f"neither TensorFlow nor `{training.file}` reads `{name}`",
            f'`tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["{INTRA}"]))`, and the same for inter',
        )


def _containers(script: JobScript, arch: Arch | None) -> Iterator[Finding]:
    """A container must open its overlay read-only, and must see the GPUs."""
    wants_gpu = gpus_of(script) > 0
    for line in script.lines:
        if not re.search(r"\b(apptainer|singularity)\b.*\b(exec|run|shell)\b", line.text):
            continue
        if re.search(r":rw\b", script.filled(line.text)):
            yield fault(
                script,
                "overlay-rw",
                line,
                "only one job at a time can use an overlay with write access",
                "use `:ro` in jobs",
            )
        if wants_gpu and "--nv" not in line.words:
            yield fault(
                script,
                "container-gpu",
                line,
                "the container does not see the GPUs",
                "add `--nv` after `exec`, `run` or `shell`",
            )
        for word in map(script.filled, line.words):
            if wants_gpu and sees_no_gpu(word):
                yield fault(
                    script,
                    "image-gpu",
                    line,
                    f"the image `{word}` has no GPU support",
                    "use a tag that ends in `-gpu`",
                )
