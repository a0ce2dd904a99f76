"""The figures of a proof, from the reports of all ranks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.verdict import Figures
from provision.proof.reports import (
    Report,
    choose_worst,
    distinct_hosts,
    read_gpu,
    read_last_loss,
    read_mapping,
    read_number,
    read_text,
)


def figures_of(finished: Sequence[Report]) -> Figures:
    """The figures of all ranks; if ranks differ, the worst."""
    digests = {read_text(report, "weights_sha256") for report in finished}
    digest = next(iter(digests)) if len(digests) == 1 else None
    return Figures(
        ranks=len(finished),
        hosts=distinct_hosts(finished),
        gpus=sum(1 for report in finished if read_gpu(report).get("used")),
        accuracy=choose_worst(min, (read_number(report, "accuracy") for report in finished)),
        loss_before=choose_worst(max, (read_number(report, "loss_before") for report in finished)),
        loss_last=choose_worst(max, (read_last_loss(report) for report in finished)),
        images_per_second=choose_worst(min, (read_number(report, "images_per_second") for report in finished)),
        seconds=choose_worst(max, (read_number(report, "seconds") for report in finished)),
        versions={str(k): str(v) for k, v in read_mapping(finished[0], "versions").items()} if finished else {},
        weights_sha256=digest,
    )
