"""What a log shows: the failures, the likeliest first, or that it ended well."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from provision.knowledge.failures import health
from provision.knowledge.failures.at_place import at_place
from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.evidence import SHOWN, Evidence
from provision.knowledge.failures.exception_chains import carriers, given_up, tried_imports, wrappers
from provision.knowledge.failures.exception_chains import causes as followed_by_others
from provision.knowledge.failures.findings import Explanation, Finding, Hit, give_way
from provision.knowledge.failures.forms import COMPLAINS, ENDS, NAMED
from provision.knowledge.failures.last_words import is_refusal, last_words, last_words_failure
from provision.knowledge.failures.own_program import SUMMARY, cannot_unpickle, program_failure
from provision.knowledge.failures.report_forms import HEADING
from provision.knowledge.failures.reported_errors import reported_failure

# `NAME: no …` at the end of a log is often good news.
NOTHING = re.compile(r"(?:no|not)\b", re.IGNORECASE)
# A failure of these phases can be followed by an installation that works.
BUILDING = frozenset(("plan", "fetch", "build", "import"))


def conclude(evidence: Evidence, *, failed: bool, is_text: bool) -> Explanation:
    """What a log shows that was read to its end; `failed` if it is known that the program failed."""
    findings = give_way(list(_findings(evidence, failed=failed)))
    findings = _put_preamble_last(findings)
    waits = bool(evidence.last) and evidence.waits_at == evidence.last[-1][0]
    causes = [
        found for found in findings if found.hit.weight > WEIGHTS["notice"] and (waits or not found.failure.waits)
    ]
    if not failed and not evidence.errors and not evidence.tracebacks.found:
        causes = causes if any(not found.hit.status for found in causes) else []
    if not failed and not waits and _did_without(evidence, causes):
        causes = []
    verdict = "healthy"
    if failed or waits or not _ended_well(evidence, causes):
        causes = [*_last_words(evidence, causes), *causes]
        named = causes and causes[0].hit.weight > WEIGHTS["consequence"]
        verdict = "known" if named else "unknown" if causes or failed or _shows_failure(evidence) else "healthy"
        if verdict == "healthy" and (causes := _complaint_at_end(evidence)):
            verdict = "known"
        if verdict == "unknown" and not causes and (causes := _complaint(evidence)):
            verdict = "known"
    lines = _lines(evidence, causes if verdict == "known" else [])
    return Explanation(
        verdict=verdict,
        findings=tuple(
            [
                found
                for found in findings
                if (not found.hit.weight or found.failure.goes_on or found.failure.waits)
                and (waits or not (found.failure.waits and found.failure.unless))
            ]
            if verdict == "healthy"
            else causes
        ),
        lines=lines or tuple((number, evidence.show(text)) for number, text in evidence.last),
        last_only=not lines,
        is_text=is_text,
        length=evidence.lines,
        ended=(evidence.well or evidence.installed) and evidence.success_at >= evidence.lines + 1 - health.NEAR_END,
    )


def _last_words(evidence: Evidence, causes: list[Finding]) -> list[Finding]:
    """The last words of a program, if the log shows otherwise only what followed from its failure."""
    if not causes or not causes[0].follows:
        return []
    words = min((found for found in causes if found.follows), key=lambda found: found.hit.number).hit.above
    return _quote_words(evidence, words)


def _complaint_at_end(evidence: Evidence) -> list[Finding]:
    """The last words of a log that ends with a complaint, and shows neither a failure nor that anything ended well."""
    if evidence.success_at or evidence.reports.steps:
        return []
    if evidence.unsure_box and evidence.unsure_box[1] == evidence.last[-1][0]:
        report = evidence.reports.feed_box(evidence.unsure_box[0])
        failure = reported_failure(report, WEIGHTS["report"])
        return [_quote(evidence, failure, report.number, report.raw, report.text, ends=True)]
    words = last_words(reversed(evidence.last))
    known = {hit.number for hits in evidence.hits.values() for hit in hits}
    return _quote_words(evidence, words if words and words[-1][0] not in known and is_refusal(words[-1][1]) else ())


def _complaint(evidence: Evidence) -> list[Finding]:
    """What a program complains of last before a log shows that it failed, if it shows nothing else."""
    near = (
        report for report in evidence.reports.found if 0 <= evidence.failed_at - report.number <= health.AFTER_PREAMBLE
    )
    report = max(
        (report for report in near if report.strength >= COMPLAINS), key=lambda report: report.number, default=None
    )
    if not report:
        return []
    return [
        _quote(
            evidence, reported_failure(report, WEIGHTS["report"]), report.number, report.raw, report.text, ends=False
        )
    ]


def _quote_words(evidence: Evidence, words: tuple[tuple[int, str], ...]) -> list[Finding]:
    """The last words of a program as a finding, if it has any."""
    if not words:
        return []
    number, raw = words[-1]
    return [_quote(evidence, last_words_failure(words), number, raw, raw, ends=True)]


def _put_preamble_last(findings: list[Finding]) -> list[Finding]:
    """The findings, the likeliest first: what a job did without for many lines did not end it, if something else did."""
    ends = [
        found.hit.number
        for found in findings
        if (found.quoted or found.hit.weight > WEIGHTS["report"]) and not found.failure.goes_on
    ]
    last = max(ends, default=0)
    early = [
        found
        for found in findings
        if found.failure.goes_on
        and found.hit.weight > WEIGHTS["consequence"]
        and last - found.hit.number > health.AFTER_PREAMBLE
    ]
    return [found for found in findings if found not in early] + [
        replace(found, hit=replace(found.hit, weight=WEIGHTS["consequence"])) for found in early
    ]


def _did_without(evidence: Evidence, causes: list[Finding]) -> bool:
    """Whether all that the log shows are errors of programs that went on for many lines after them."""
    if evidence.fatal or evidence.tracebacks.found or evidence.errors.strongest >= ENDS:
        return False
    after = evidence.lines - evidence.failed_at
    if after > health.AFTER_ERROR and all(_may_go_on(found) for found in causes):
        return True
    return (
        after > health.AFTER_KNOWN_COMPLAINT and not evidence.clearly and all(found.failure.goes_on for found in causes)
    )


def _may_go_on(found: Finding) -> bool:
    """Whether a program may go on after a failure: it says neither how the program ended nor for sure why."""
    return found.failure.goes_on or found.hit.weight in (WEIGHTS["error"], WEIGHTS["report"])


def _shows_failure(evidence: Evidence) -> bool:
    """Whether the log shows a failure that no entry of the catalogue names."""
    if evidence.fatal:
        return True
    if not evidence.errors:
        return bool(evidence.tracebacks.found) or _reports_at_end(evidence)
    if (
        evidence.errors.strongest < ENDS
        and evidence.lines + 1 - evidence.failed_at > health.AFTER_ERROR
        and not evidence.tracebacks.found
    ):
        return False
    lines_after = sum(1 for number, _ in evidence.last if number > evidence.complained_at)
    return evidence.clearly or bool(evidence.tracebacks.found) or lines_after < health.AFTER_COMPLAINT


def _reports_at_end(evidence: Evidence) -> bool:
    """Whether a program complains with its name in the last line, and nothing shows that anything ended well."""
    last = evidence.last[-1][0] if evidence.last and not evidence.success_at and not evidence.reports.steps else 0
    return any(
        report.number == last and report.strength >= NAMED and not NOTHING.match(report.text)
        for report in evidence.reports.found
    )


def _ended_well(evidence: Evidence, causes: list[Finding]) -> bool:
    """Whether what the log shows after its last failure excuses all failures."""
    if evidence.fatal or evidence.dead - {""}:
        return False
    if evidence.well:
        return True
    if evidence.installed:
        # What an installer only says, as pip says that packages do not fit each other, did not stop it.
        said = (WEIGHTS["report"], WEIGHTS["consequence"])
        return all(
            not BUILDING.isdisjoint(found.failure.phase)
            or found.failure.goes_on
            or (found.hit.weight in said and not found.quoted)
            for found in causes
        )
    # An exception without places is a message that a program printed and went on.
    died = any(found.frames for found in evidence.tracebacks.found)
    return evidence.went_on >= (health.WENT_ON_AFTER_TRACEBACK if died else health.WENT_ON)


def _findings(evidence: Evidence, *, failed: bool) -> Iterable[Finding]:
    """Every failure that the log shows, with its best line: the strongest, then the first."""
    explained, following = set(), set()
    exceptions = evidence.tracebacks.found
    followed, wrapping = followed_by_others(exceptions), wrappers(exceptions) | carriers(exceptions)
    # A saved object needs a module that the package never had, or has no more: it is not the module that is missing.
    unpickled = {found.number for found in evidence.tracebacks.found if cannot_unpickle(found)}
    tried, handled = unpickled | tried_imports(exceptions), given_up(exceptions)
    places = {found.number: found for found in evidence.tracebacks.found}
    for name, hits in evidence.hits.items():
        if hits:
            hits = [
                replace(hit, weight=hit.weight - (2 if hit.number in handled else 1))
                if hit.number in tried | handled
                else hit
                for hit in hits
            ]
            best = min(hits, key=lambda hit: (-hit.weight, hit.number))
            elsewhere = evidence.failures[name].elsewhere
            explained |= {hit.number for hit in hits if elsewhere or hit.weight >= WEIGHTS["symptom"]}
            if evidence.failures[name].weight == WEIGHTS["consequence"]:
                following |= {hit.number for hit in hits}
            says = evidence.hide(evidence.reports.announced.get(best.number, ""))
            place = places.get(best.number)
            entry = at_place(evidence.failures[name], place)
            yield Finding(failure=replace(entry, cause=evidence.hide(entry.cause)), hit=best, says=says[:SHOWN])
    causes, of_program = set(), set()
    whole = {report.number: report.text for report in evidence.reports.found}
    for found in exceptions:
        # The text of an exception may begin with a line break.
        announces = HEADING.match(found.text) or (not found.text and program_failure(found))
        if announces and SUMMARY not in found.text and found.number in whole:
            found = replace(found, text=whole[found.number].removeprefix(f"{found.exception}: "))
        if found.number in wrapping | following or (found.number in followed and not found.after):
            continue
        if (
            (found.number not in explained or found.number in unpickled)
            and (failure := program_failure(found))
            and failure.cause not in causes
        ):
            causes.add(failure.cause)
            of_program.add(found.number)
            yield _quote(evidence, failure, found.number, found.raw, found.exception, ends=found.names_end)
    if failed or _shows_failure(evidence):
        report = evidence.reports.best(explained | following | followed | wrapping | of_program)
        if report:
            failure, ends = reported_failure(report, WEIGHTS["report"]), report.strength == ENDS
            yield _quote(evidence, failure, report.number, report.raw, report.text, ends=ends)


def _quote(evidence: Evidence, failure: KnownFailure, number: int, raw: str, message: str, *, ends: bool) -> Finding:
    """A failure that contains words of the log; no secret is quoted."""
    hit = Hit(number=number, text=evidence.show(raw, message), weight=failure.weight)
    failure = replace(failure, cause=evidence.hide(failure.cause), hint=evidence.hide(failure.hint))
    return Finding(failure=failure, hit=hit, quoted=ends)


def _lines(evidence: Evidence, causes: list[Finding]) -> tuple[tuple[int, str], ...]:
    """The deciding line, the end of the first traceback, and the lines that look most like errors."""
    shown = {found.hit.number: found.hit.text for found in causes[:1]}
    for found in evidence.tracebacks.found[:1]:
        shown.setdefault(found.number, evidence.show(found.raw))
    texts = set(shown.values())
    shown |= {number: text for number, text in evidence.errors.choose(evidence.most) if text not in texts}
    return tuple(list(shown.items())[: evidence.most])
