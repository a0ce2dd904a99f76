"""Which archs of a site a job script may be for: those whose partition, queue, constraint or GPUs it requests."""

from __future__ import annotations

import re

from provision.lint.job_script import JobScript
from provision.profile.arch import Arch
from provision.profile.site import Site


def features(constraint: str | None) -> set[str]:
    """The names in a constraint: `gpu&hbm80g` has two, `mcdram=cache:numa=quad` as well."""
    return {word for word in re.split(r"[&|,*:\[\]() \"]+", constraint or "") if word and not word.isdigit()}


def queues_of(arch: Arch) -> set[str]:
    """The partitions, queues and QOS of an arch that the profile names."""
    return {queue.name for queue in arch.queues} | {name for name in (arch.job.partition, arch.job.qos) if name}


def unknown_queue(script: JobScript, site: Site, key: str) -> bool:
    """Whether the script names a partition or a QOS (`key`) that the profile, which lists those of the site, does not have."""
    value = script.value(key)
    if value is None or key in site.scheduler.forbidden or value.startswith("$") or "<" in value:
        return False
    described = any(arch.queues for arch in site.archs)
    # A profile that names only the queue of its own jobs does not list the queues of the site.
    defaults = {name for arch in site.archs if (name := getattr(arch.job, key))}
    known = {name for arch in site.archs for name in queues_of(arch)}
    return bool(defaults) and (described or len(defaults) > 1) and not set(value.split(",")) & known


def unknown_features(script: JobScript, site: Site) -> set[str]:
    """The features that the profile has, if the script requests none of them but others."""
    offered = {feature for arch in site.archs for feature in features(arch.job.constraint)}
    asked = features(script.value("constraint"))
    return offered if script.scheduler == "slurm" and asked and not asked & offered else set()


def on_other_nodes(script: JobScript, site: Site) -> bool:
    """Whether the script is for nodes that the profile does not describe, so that nothing is known about their size."""
    slurm = script.scheduler == "slurm"
    return bool(unknown_features(script, site)) or (slurm and unknown_queue(script, site, "partition"))


def archs_for(script: JobScript, site: Site) -> tuple[Arch, ...]:
    """The archs of the site that the script may be for; all of them if it does not show it."""
    gpus = script.requests_gpus
    of_queue = tuple(arch for arch in site.archs if script.value("partition") in queues_of(arch))
    by_name = tuple(arch for arch in of_queue or site.archs if _matches(script, arch)) or of_queue
    by_gpu = tuple(arch for arch in site.archs if arch.gpu is not None and gpus and _has_model(script, arch))
    plain = () if gpus or script.value("partition", "constraint") is not None else site.archs
    by_default = tuple(arch for arch in plain if arch.gpu is None and arch.job.constraint is None)
    archs = by_name or by_gpu or by_default or site.archs
    return (tuple(arch for arch in archs if arch.gpu is not None) or archs) if script.gpus else archs


def _matches(script: JobScript, arch: Arch) -> bool:
    """Whether the script names a feature or a QOS of this arch."""
    own, asked = features(arch.job.constraint), features(script.value("constraint", "attrs", "system"))
    return bool(asked & own) or (not own and script.value("qos") in {queue.name for queue in arch.queues})


def _has_model(script: JobScript, arch: Arch) -> bool:
    """Whether the GPUs that the script requests may be those of this arch."""
    asked = script.value("gres", "gpus-per-node", "gpus", "gpus-per-task") or ""
    model = next((part for part in asked.split(":") if part and part != "gpu" and not part.isdigit()), None)
    return model is None or arch.gpu is None or arch.gpu.model in (None, model)
