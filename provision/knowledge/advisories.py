"""Advisories: published vulnerabilities of packages, and which of them are open in a set of exact versions.

`advisories.json` holds one advisory per line. Source: the records that `sources` in the file names, in OSV's format
(ossf.github.io/osv-schema, version 1.6). `tools/advisories.py` writes the file again from newer records; `provision audit
--advisories FILE` reads another file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

SCHEMA = 1
# One software under several names on the index: an advisory of one is an advisory of all.
SAME_SOFTWARE = {"tensorflow-cpu": "tensorflow", "tensorflow-gpu": "tensorflow", "tensorflow-intel": "tensorflow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The versions from `introduced` up to but not including `fixed`, or up to and including `last`; both None: all newer."""

    introduced: str
    fixed: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """One vulnerability of one software. `id` is its CVE, if it has one; `note` is what it means for our environments."""

    id: str
    aliases: tuple[str, ...]
    package: str
    spans: tuple[Span, ...]
    versions: tuple[str, ...] = ()
    """Affected versions that no span covers."""
    source: str
    note: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The ID and all its aliases."""
        return frozenset((self.id, *self.aliases))


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisories:
    """What one file holds. `sources` names each database with the date of its newest record."""

    sources: tuple[tuple[str, str], ...]
    rows: tuple[Advisory, ...]

    @property
    def taken(self) -> str:
        """The databases with their dates, in one line."""
        return "; ".join(f"{name}, {date}" for name, date in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """An advisory that is open in an exact version of a package. `fixed_in`: the first newer version without it, if known."""

    package: str
    version: str
    advisory: Advisory
    fixed_in: str | None


def software(package: str) -> str:
    """The name under which advisories of this package are kept."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    return SAME_SOFTWARE.get(name, name)


def parse_advisories(text: str) -> Advisories:
    """The advisories in the JSON text.

    Raises:
        ValueError: the text is not such a file; the message gives the reason.
    """
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"`schema` is {data['schema']!r}, not {SCHEMA}")
        return Advisories(
            sources=tuple((str(one["name"]), str(one["date"])) for one in data["sources"]),
            rows=tuple(_read_row(row) for row in data["advisories"]),
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_row(row: Mapping[str, Any]) -> Advisory:
    return Advisory(
        id=_text(row["id"]),
        aliases=tuple(map(_text, row.get("aliases", ()))),
        package=software(_text(row["package"])),
        spans=tuple(Span(**{name: _text(value) for name, value in span.items()}) for span in row.get("spans", ())),
        versions=tuple(map(_text, row.get("versions", ()))),
        source=_text(row["source"]),
        note=_text(row.get("note", "")),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def dump_advisories(advisories: Advisories) -> str:
    """The JSON text: sorted, one advisory per line, so that a new one is one line of a diff."""
    lines = []
    for row in sorted(advisories.rows, key=lambda row: (row.package, row.id)):
        spans = [
            {name: value for name in ("introduced", "fixed", "last") if (value := getattr(span, name)) is not None}
            for span in row.spans
        ]
        data = {"package": row.package, "id": row.id, "aliases": list(row.aliases), "spans": spans}
        data |= {"versions": list(row.versions)} if row.versions else {}
        data |= {"source": row.source} | ({"note": row.note} if row.note else {})
        lines.append(json.dumps(data, ensure_ascii=False))
    sources = json.dumps([{"name": name, "date": date} for name, date in advisories.sources])
    return f'{{"schema": {SCHEMA}, "sources": {sources},\n"advisories": [\n' + ",\n".join(lines) + "\n]}\n"


def parse_osv(records: Iterable[Mapping[str, Any]], packages: Collection[str]) -> tuple[Advisory, ...]:
    """The advisories in OSV's records about these packages of PyPI; records of one CVE become one advisory.

    Withdrawn records are left out. A CVE often has several records (PYSEC, GHSA): the one that was changed last counts.
    """
    wanted = {software(name) for name in packages}
    newest: dict[tuple[str, str], tuple[str, Advisory]] = {}
    for record in records:
        if not isinstance(record, Mapping) or record.get("withdrawn") or not isinstance(record.get("id"), str):
            continue
        names = sorted({record["id"], *record.get("aliases", ())})
        name = next((one for one in names if one.startswith("CVE-")), record["id"])
        # Records of the package's several names, and several entries of one record, are joined.
        spans: dict[str, dict[Span, None]] = {}
        versions: dict[str, set[str]] = {}
        for affected in record.get("affected", ()):
            package = affected.get("package", {})
            key = software(str(package.get("name")))
            if package.get("ecosystem") == "PyPI" and key in wanted:
                found = _spans(affected.get("ranges", ()))
                spans.setdefault(key, {}).update(dict.fromkeys(found))
                versions.setdefault(key, set()).update(() if found else map(str, affected.get("versions", ())))
        for key, found_spans in spans.items():
            advisory = Advisory(
                id=name,
                aliases=tuple(one for one in names if one != name),
                package=key,
                spans=tuple(found_spans),
                versions=tuple(sorted(versions[key])),
                source=f"https://osv.dev/vulnerability/{record['id']}",
            )
            changed, before = newest.get((key, name), ("", None))
            modified = str(record.get("modified", ""))
            if before:
                aliases = tuple(sorted({*before.aliases, *advisory.aliases}))
                advisory = replace(advisory if modified >= changed else before, aliases=aliases)
            newest[key, name] = (max(changed, modified), advisory)
    return tuple(advisory for _, advisory in newest.values())


def _spans(ranges: Iterable[Mapping[str, Any]]) -> list[Span]:
    """The spans of OSV's ranges of versions: events in order, each `introduced` ended by `fixed` or `last_affected`."""
    spans = []
    for one in ranges:
        if one.get("type") not in ("ECOSYSTEM", "SEMVER"):
            continue
        since: str | None = None
        for event in one.get("events", ()):
            if "introduced" in event:
                since = str(event["introduced"])
            elif since is not None and "fixed" in event:
                spans.append(Span(introduced=since, fixed=str(event["fixed"])))
                since = None
            elif since is not None and "last_affected" in event:
                spans.append(Span(introduced=since, last=str(event["last_affected"])))
                since = None
        if since is not None:
            spans.append(Span(introduced=since))
    return spans


def open_advisories(packages: Iterable[tuple[str, str]], advisories: Advisories) -> tuple[Open, ...]:
    """What is open in these packages (name, exact version), in the order of the packages."""
    from packaging.version import InvalidVersion, Version

    by_package: dict[str, list[Advisory]] = {}
    for row in advisories.rows:
        by_package.setdefault(row.package, []).append(row)

    @cache
    def version_of(text: str) -> Version | None:
        try:
            return Version(text)
        except InvalidVersion:
            return None

    def is_in(version: Version, span: Span) -> bool:
        start, fixed, last = (version_of(text) if text else None for text in (span.introduced, span.fixed, span.last))
        after = span.introduced == "0" or (start is not None and version >= start)
        return after and (fixed is None or version < fixed) and (last is None or version <= last)

    found = []
    for name, text in packages:
        version = version_of(text.partition("+")[0])
        for row in by_package.get(software(name), ()) if version else ():
            spans = [span for span in row.spans if version and is_in(version, span)]
            if spans or text in row.versions:
                found.append(Open(package=name, version=text, advisory=row, fixed_in=spans[0].fixed if spans else None))
    return tuple(found)


# So many advisories of one note are named before it.
MOST_IDS = 3


def summary(found: Sequence[Open], advisories: Advisories) -> str:
    """How many advisories are open, in which packages, and what it means for Horovod, in one line."""
    if not found:
        return f"none known to be open ({advisories.taken})"
    counts = Counter(one.package for one in found)
    most = sorted(counts, key=lambda name: (-counts[name], name))
    parts = [f"{name} {counts[name]}" for name in most[:3]] + (["others"] if len(most) > 3 else [])
    named: dict[str, list[str]] = {}
    for one in found:
        if one.advisory.note and one.advisory.id not in named.setdefault(one.advisory.note, []):
            named[one.advisory.note].append(one.advisory.id)
    notes = [f"{' and '.join(ids)}: {note}" if len(ids) <= MOST_IDS else note for note, ids in named.items()]
    return "; ".join((f"{len(found)} open ({', '.join(parts)})", *notes))
