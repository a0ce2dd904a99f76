"""The rules that need a site: its scheduler, the options that its jobs need, its queues and nodes, its network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.jobs.limits import refusals
from provision.jobs.on_cluster import misfits
from provision.jobs.scheduler_request import batch_for
from provision.lint.arch_choice import features, queues_of, unknown_features, unknown_queue
from provision.lint.directive_options import write_directive
from provision.lint.job_script import TOP, JobScript
from provision.lint.rule import Found, Shown, advice, error, warning
from provision.lint.training_script import TrainingProgram
from provision.model.batch import Batch, Shape, to_seconds
from provision.profile.arch import Arch, Job
from provision.profile.patterns import MEMORY, TIME
from provision.profile.site import Site
from provision.schedulers import TITLES
from provision.schedulers.node_kind import Cluster

# The keys of `[archs.<arch>.job]`, and the other numbers that a queue or a node can refuse: the options of a script that give
# them, and their names in a sentence.
KEYS = {
    "account": (("account",), "an account"),
    "partition": (("partition",), "a partition"),
    "qos": (("qos",), "a QOS"),
    "constraint": (("constraint", "attrs", "system"), "a constraint"),
    "filesystems": (("filesystems", "licenses"), "the file systems"),
    "memory": (("mem", "mem-per-cpu", "mem-per-gpu"), "the memory"),
    "time": (("time",), "a time limit"),
    "nodes": (("nodes",), ""),
    "gpus": (("gres", "gpus", "gpus-per-node", "gpus-per-task"), ""),
    "cpus": (("cpus-per-task",), ""),
}
# What to write instead of a refused value: {0} is the directive with what the site accepts, {1} that value alone.
FIXES = {
    "nodes": "`{0}`, or another queue",
    "time": "`{0}` or less, or another queue",
    "constraint": "ask for `{1}`, or another queue",
    "gpus": "{1} GPUs on each node, and more nodes",
    "cpus": "`--cpus-per-task={1}`",
    "memory": "`--mem-per-cpu={1}` or less",
}
# Programs that fetch from the internet, with the words that make them do it.
FETCHES = re.compile(
    r"(python[\d.]* -m )?pip[\d.]* (install|download)\b|uv (pip install|sync|add)\b"
    r"|(conda|mamba|micromamba) (install|create|update|env create)\b"
    r"|(apptainer|singularity) (pull|build|exec|run) .{0,2000}?(docker|library|oras)://"
    r"|(wget|curl|aria2c) .{0,2000}?(https?|ftp)://|git clone .{0,500}?(https?://|git@)"
)
HOME = r"\$\{?HOME\b|~/|/(global/|cluster/)?homes?/"
LOCAL = re.compile(r"--no-index|--offline|install (-e )?\.|install \S+\.whl$|--no-deps \.|127\.0\.0\.1|localhost")


@error(
    "these directives are for {0}, but the scheduler of site `{1.name}` is {2}",
    "write them for {3}; `provision job horovod --site {1.typed} --arch {4}` shows how",
)
def scheduler(job: JobScript, foreign: Site, archs: tuple[Arch, ...]) -> Found:
    """Directives of another scheduler."""
    title, arch = TITLES.get(foreign.scheduler.name), archs[0].name
    arch += " --account ACCOUNT" if "account" in foreign.scheduler.required else ""
    yield job.line_of(*job.options), TITLES[job.scheduler], foreign, title or "none", title or "a shell", arch


@warning("PBS starts jobs in your home folder", '`cd "$PBS_O_WORKDIR"`')
def folder(job: JobScript, site: Site) -> Found:
    """A job that starts in the home folder instead of the folder of its submission."""
    relative = any(start.path[:1] not in "/~$" for start in job.starts())
    relative = relative or any(word.startswith("./") for command in job.commands for word in command.all_words)
    if site.scheduler.name == "pbs" and relative and not any(command.name == "cd" for command in job.commands):
        yield (TOP,)


@warning(
    "{0} nodes: from {1.files.burst_buffer_from} nodes on, data must be on the burst buffer of `{1.name}`",
    "add `#DW jobdw` and `#DW stage_in`; `provision job KIND --stage-in FOLDER` writes them",
)
def burst_buffer(job: JobScript, site: Site) -> Found:
    """Many nodes that read data without the burst buffer."""
    if site.files.needs_burst_buffer(job.nodes) and not re.search(r"^#(DW|BB) ", job.text, re.MULTILINE):
        yield job.line_of("nodes"), job.nodes, site


def _register(key: str, options: tuple[str, ...], title: str, *, only_warns: bool) -> None:
    """The rule about a key that the site may require or forbid, and that its queues and nodes may refuse."""

    def wanted(job: JobScript, site: Site, archs: tuple[Arch, ...]) -> Found:
        value, site_has = job.value(*options), f"site `{site.name}`"
        # Cobalt's qsub prints a warning, and the job gets all file systems (ALCF, page on jobs of Theta).
        softly = site.scheduler.name == "cobalt" and key == "filesystems"
        if key in site.scheduler.required and value is None and softly is only_warns:
            fix = f"add `{write_directive(site, archs[0], key)}`, or give it on the command line"
            yield TOP, f"{site_has} requires {title} for every job, but the script gives none", fix
        if only_warns:
            return
        if key in site.scheduler.forbidden and value is not None:
            message = f"{site_has} forbids {title} in a job, but this one has `{value}`"
            yield job.line_of(*options), message, "remove it; the scheduler chooses"

    def refused(job: JobScript, site: Site, arch: Arch) -> Found:
        for subject, *said in _refused(job, site, arch):
            # A queue of Cobalt takes a job with fewer nodes, and counts the least number for it.
            softly = site.scheduler.name == "cobalt" and key == "nodes" and "at least" in said[0]
            if subject == key and softly is only_warns:
                yield job.line_of(*options), *said

    def not_here(job: JobScript, site: Site, archs: tuple[Arch, ...], cluster: Cluster | None) -> Found:
        """By what the scheduler says, whatever the profile knows."""
        for fault in misfits(_batch(job, site, archs[0]), cluster) if cluster and not only_warns else ():
            if fault.subject == key and key not in {subject for subject, *_ in _refused(job, site, archs[0])}:
                directive = write_directive(site, archs[0], key, fault.accepted)
                fix = FIXES.get(key, "`{0}`").format(directive, fault.accepted) if fault.accepted else fault.evidence[0]
                yield job.line_of(*options), fault.message, fix

    reasons = [f"No {title.partition(' ')[2]}, or one that the site forbids"] if title else []
    reasons += [f"`{key}` that the scheduler, a queue or a node does not have"] if key in FIXES else []
    for check in (*((wanted,) if title else ()), *((refused,) if key in FIXES else ()), not_here):
        (warning if only_warns else error)("{0}", "{1}", name=key, finds="; ".join(reasons))(check)


for _key, _row in KEYS.items():
    _register(_key, *_row, only_warns=False)
for _key in ("filesystems", "nodes"):
    _register(_key, *KEYS[_key], only_warns=True)


def _batch(job: JobScript, site: Site, arch: Arch) -> Batch:
    """What the script requests of nodes of this arch."""
    time, memory = job.value("time") or "0", job.value("mem-per-cpu") or ""
    requested = Job(
        time=time if TIME.fullmatch(time) else "0",
        partition=job.value("partition"),
        constraint=job.value("constraint", "attrs", "system"),
        account=job.value("account"),
        qos=job.value("qos"),
        exclusive=True,
        cpus_per_task=0,
        options=(),
        memory=memory if MEMORY.fullmatch(memory) else None,
    )
    cpus = job.number("cpus-per-task") or (1 if memory else 0)
    shape = Shape(nodes=job.nodes, ranks_per_node=job.ranks_per_node, cpus_per_rank=cpus, gpus_per_node=job.gpus)
    return batch_for(site, arch, shape, name="", job=requested)


def _refused(job: JobScript, site: Site, arch: Arch) -> Iterator[tuple[str, str, str]]:
    """What exceeds a queue or a node: the key, why, and what to write instead."""
    # `--gpus` without a number of nodes may be on several.
    spread = "nodes" not in job.options and "gpus" in job.options and job.scheduler == "slurm"
    batch = _batch(job, site, arch)
    longest = [queue.time_for(job.nodes) for queue in arch.queues]
    if not (batch.partition or batch.qos) and longest and all(longest):
        limit = max((one for one in longest if one), key=to_seconds)
        if to_seconds(batch.time) > to_seconds(limit):
            message = f"the job asks for {batch.time}, but no queue of arch `{arch.name}` gives more than {limit}"
            yield "time", message, f"`{write_directive(site, arch, 'time', limit)}` or less"
    for fault in refusals(site, arch, batch):
        subject, accepted = fault.subject, fault.accepted
        if accepted and not (subject == "gpus" and spread):
            fix = FIXES[subject].format(write_directive(site, arch, subject, accepted), accepted)
            yield subject, fault.message, fix
        elif subject == "gpus" and arch.gpu is None:
            others = (write_directive(site, one, "partition") for one in site.archs if one.gpu and one.job.partition)
            yield subject, fault.message, " or ".join(f"`{other}`" for other in others) or "request no GPUs"
    most, whole = arch.node.memory_gb if arch.node else 0, job.value("mem") or ""
    if most and re.fullmatch(r"\d{1,15}[GT]B?", whole, re.IGNORECASE):
        amount = int(re.sub(r"\D", "", whole)) * (1024 if "T" in whole.upper() else 1)
        if amount > most:
            message = f"the job requests {amount} GiB of memory, but a node has {most} GiB"
            yield "memory", message, f"request at most `--mem={most}G`"


@warning("the profile of `{0}` has no {1} `{2}`; it has {3}", "{4}", name="unknown-queue")
def unknown_queues(job: JobScript, site: Site) -> Found:
    """A queue or QOS that the profile does not know."""
    names = ", ".join(f"`{name}`" for name in sorted({name for arch in site.archs for name in queues_of(arch)}))
    reserved = job.scheduler == "pbs" and re.fullmatch(r"[RSM]\d+", job.value("partition") or "")
    slurm = "`sinfo -s` lists the partitions, `sacctmgr show qos format=name` the QOS"
    fix = slurm if job.scheduler == "slurm" else "`qstat -Q` lists the queues"
    for key, title in (("partition", "queue"), ("qos", "QOS")):
        if unknown_queue(job, site, key) and not reserved:
            yield job.line_of(key), site.name, title, job.value(key), names, fix


@warning(
    "the profile of `{0}` has no nodes with `{1}`; it has {2}", '`sinfo -o "%N %f"` lists the features of the nodes'
)
def unknown_constraint(job: JobScript, site: Site) -> Found:
    """A feature of nodes that the profile does not know."""
    names = ", ".join(f"`{name}`" for name in sorted(unknown_features(job, site)))
    if names:
        yield job.line_of("constraint"), site.name, job.value("constraint"), names


def _partitions(site: Site, *, gpus: bool) -> set[str]:
    """The partitions of archs with GPUs, or of those without."""
    return {arch.job.partition for arch in site.archs if bool(arch.gpu) is gpus and arch.job.partition}


def _gpu_option(site: Site) -> str:
    """The directive that requests one GPU at a site."""
    return "`#SBATCH --gres=gpu:1`" if site.scheduler.gpus == "gres" else f"`#SBATCH --{site.scheduler.gpus}=1`"


@error("partition `{0}` has nodes of arch {1}, not of `{2}`", "`--arch {3}`, or {4}")
def arch_partition(job: JobScript, site: Site, named: Arch | None) -> Found:
    """A partition of another arch than the one that is named."""
    partition = job.value("partition")
    others = [arch.name for arch in site.archs if named and job.main() and partition in queues_of(arch)]
    if named and others and named.name not in others and named.job.partition:
        listed = " or ".join(f"`{name}`" for name in others)
        yield job.line_of("partition"), partition, listed, named.name, others[0], f"`--partition={named.job.partition}`"


@error("{0}", "{1}")
def gpu_partition(job: JobScript, site: Site) -> Found:
    """GPUs and a partition that contradict each other."""
    partition, of_gpus, of_cpus = job.value("partition"), _partitions(site, gpus=True), _partitions(site, gpus=False)
    if not _knows_gpus(job, site) or not of_gpus or not of_cpus:
        return
    if partition in of_gpus - of_cpus and not job.requests_gpus:
        others = " or ".join(f"`--partition={name}`" for name in sorted(of_cpus))
        message = f"partition `{partition}` is for jobs with GPUs, but the job requests none"
        yield job.line_of("partition"), message, f"{_gpu_option(site)}, or {others} for a job without GPUs"
    if partition is None and job.requests_gpus and not features(job.value("constraint")):
        partitions = " or ".join(f"`#SBATCH --partition={name}`" for name in sorted(of_gpus))
        message = f"the job requests GPUs, but the nodes of the default partition of `{site.name}` have none"
        yield job.line_of("gres", "gpus", "gpus-per-node", "gpus-per-task"), message, partitions


@warning("the nodes have GPUs, but the job requests none, so its programs see none", "{0}")
def no_gpus_requested(
    job: JobScript, site: Site, archs: tuple[Arch, ...], named: Arch | None, training: TrainingProgram | None
) -> Found:
    """Nodes with GPUs in a job that requests none."""
    partition, of_cpus = job.value("partition"), _partitions(site, gpus=False)
    of_gpus = partition in _partitions(site, gpus=True) - of_cpus
    hides = "CUDA_VISIBLE_DEVICES" in job.variables
    if not _knows_gpus(job, site) or job.requests_gpus or (of_gpus and of_cpus) or hides:
        return
    trains = training if training and training.trains is not None else None
    wants = any(re.search(r"cuda|cudnn|nccl|-gpu\b", name, re.IGNORECASE) for _, name in job.modules)
    wants = wants or any("--nv" in command.all_words for command in job.commands)
    if all(arch.gpu for arch in archs):
        found = (wants and (named or partition is None)) or (of_gpus and trains is not None)
    else:  # the nodes may have none, but MirroredStrategy in such a container is for GPUs
        mirrored = trains is not None and trains.mirrored
        found = wants and any(arch.gpu for arch in site.archs) and partition is None and mirrored
    if found:
        yield job.line_of("constraint", "partition"), _gpu_option(site)


def _knows_gpus(job: JobScript, site: Site) -> bool:
    return site.scheduler.gpus != "none" and job.scheduler == "slurm"


@error("compute nodes of `{0}` do not reach the internet", "{1}")
def no_network(job: JobScript, site: Site) -> Found:
    """A download or installation on nodes without internet."""
    where = site.network.where_to_download
    fix = f"run it on {where} before the job" if where else "copy what it fetches to the site before the job"
    for command in job.commands if site.network.compute == "no" and not job.proxies else ():
        text = " ".join(command.words)[:4096]
        if FETCHES.match(text) and not LOCAL.search(text):
            yield command.line, site.name, fix


@error("`{0}` imports Horovod, which is a module of its own at `{1}`", "`module load {2}`")
def horovod_module(job: JobScript, site: Site, archs: tuple[Arch, ...], training: TrainingProgram | None) -> Found:
    """Horovod without the module of the site that provides it."""
    provided = [name for arch in archs for name in arch.provided if name.lower().startswith("horovod")]
    loaded = [(line, name.partition("/")[0].lower()) for line, name in job.modules]
    others = any(command.name in ("source", ".", "conda") or command.in_container for command in job.commands)
    tensorflow = [line for line, name in loaded if name == "tensorflow"]
    missing = tensorflow and not others and not any("horovod" in name for _, name in loaded)
    if training is not None and training.horovod and provided and missing:
        yield tensorflow[0], training.file, site.name, provided[0]


@advice("the home folder is small and slow for many readers", "put the data below `{0}`")
def home_data(job: JobScript, site: Site, training: TrainingProgram | None) -> Found:
    """Training data in the home folder."""
    for start in job.starts() if site.files.scratch and training is not None else ():
        if re.search(rf"--data[\w-]*[ =]({HOME})", " ".join(start.command.words)[:4096]):
            yield start.command.line, site.files.scratch
    for text, line in training.script.texts.items() if site.files.scratch and training else ():
        if re.match(HOME, text):
            yield Shown(line, text), site.files.scratch
