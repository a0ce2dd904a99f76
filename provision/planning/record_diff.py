"""What differs between the records of two environments. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from provision.model.record import Record
from provision.model.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDifference(Stored):
    """One value that two environments do not share; None if one of them has no such value."""

    group: str
    """`package`, `identity`, `record`, `proof` or `machine`."""
    name: str
    before: str | None
    after: str | None


def record_diff(
    before: Record, after: Record, packages_before: Mapping[str, str], packages_after: Mapping[str, str]
) -> list[RecordDifference]:
    """Everything that differs, packages first; the packages are those that are installed."""
    sides = [
        {
            "package": packages,
            "identity": record.identity,
            "record": _of_record(record),
            "proof": _of_proof(record),
            "machine": {trace.subject: trace.value for trace in record.traces},
        }
        for record, packages in ((before, packages_before), (after, packages_after))
    ]
    first, second = sides
    return [
        RecordDifference(group=group, name=name, before=first[group].get(name), after=second[group].get(name))
        for group in first
        for name in dict.fromkeys((*first[group], *second[group]))
        if first[group].get(name) != second[group].get(name)
    ]


def _of_record(record: Record) -> dict[str, str]:
    """Who built it, where and when, with which version of the tool."""
    values = {
        "site": record.site,
        "stack": record.stack,
        "wheel": record.wheel,
        "built": record.built,
        "by": record.user,
        "host": record.host,
        "job": record.job,
        "provision": record.provision,
        "forced": record.forced,
    }
    return {name: value for name, value in values.items() if value is not None}


def _of_proof(record: Record) -> dict[str, str]:
    """The figures of the proof."""
    figures = record.verdict.verdict.figures
    values = {
        "ranks": figures.ranks,
        "hosts": len(figures.hosts),
        "accuracy": figures.accuracy,
        "images/s": figures.images_per_second,
        "weights": figures.weights_sha256,
    }
    return {name: str(value) for name, value in values.items() if value is not None}
