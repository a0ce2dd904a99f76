"""The pages of `provision report`: what is in them, and that no value of a record is read as HTML or Markdown."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from parts.cli import call, envelope
from parts.records import ENVIRONMENT, FIGURES, PROOF, make_record
from provision.machine.rendering.report_pages import render_status_pages
from provision.model.check import Check
from provision.model.verdict import ProofResult, Verdict
from provision.planning import status_pages
from provision.planning.overview import Entry, age_words


def proof(date: str, speed: float, ranks: int = 2, *, passed: bool = True) -> ProofResult:
    """A proof of that day with this speed."""
    checks = PROOF.verdict.checks if passed else (Check(name="weights", passed=False, message="rank 1 differs"),)
    figures = dataclasses.replace(FIGURES, images_per_second=speed, ranks=ranks)
    return dataclasses.replace(PROOF, date=date, verdict=Verdict(checks=checks, figures=figures))


def entry(**changes: object) -> Entry:
    """A published environment with a size and one proof."""
    good = Entry(
        environment=ENVIRONMENT,
        state="published",
        module="tensorflow/2.15.1",
        record=make_record(),
        age_s=3.2 * 86_400,
        proofs=(proof("2026-11-22", 1000.0),),
        size_bytes=2_100_000_000,
    )
    return dataclasses.replace(good, **changes)  # type: ignore[arg-type]


def pages_of(*entries: Entry, markdown: bool = False) -> dict[str, str]:
    """The texts of a report about these environments."""
    index = status_pages.index("TensorFlow at <Cluster>", "cluster", entries, ["haswell", "knl"], "today")
    use = "module load tensorflow/2.15.1"
    return render_status_pages(
        index, {status_pages.cell(one)["page"]: status_pages.page(one, use) for one in entries}, markdown=markdown
    )


class Words(HTMLParser):
    """The text of a page, and its tags; a tag that is not closed is a fault."""

    VOID = ("meta", "br", "path", "polyline")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_the_first_page_has_a_row_for_each_module_and_a_column_for_each_arch() -> None:
    other = dataclasses.replace(ENVIRONMENT, arch="haswell")
    left = dataclasses.replace(ENVIRONMENT, fingerprint="ff")
    unfinished = entry(environment=left, state="unfinished", module=None, record=None, proofs=())
    texts = pages_of(entry(), entry(environment=other), unfinished)
    assert next(iter(texts)) == "index.html"
    page = Words(texts["index.html"])
    words = " ".join(page.text.split())
    assert "TensorFlow at <Cluster>" in words
    assert "Module haswell knl tensorflow/2.15.1 tensorflow-2.15.1" in words
    assert words.count("published 2 ranks, 95.0%, 1,000 images/s built 2026-11-22, 2.1 GB") == 2
    assert "Environments that no module loads knl/tensorflow/2.15.1-ff unfinished" in words
    assert sorted(re.findall(r'href="(.*?)"', texts["index.html"])) == sorted(
        name for name in texts if name != "index.html"
    )


def test_the_page_of_an_environment_has_its_story() -> None:
    page = Words(pages_of(entry())["environments/knl-tensorflow-2.15.1-0123456789.html"])
    words = " ".join(page.text.split())
    wanted = ("module load tensorflow/2.15.1", "passed weights all ranks hold", "python 3.11.7", "digits to 95.0%")
    assert [text for text in wanted if text not in words] == []
    assert "svg" not in page.tags, "one proof is no history"


def test_the_history_of_proofs_is_drawn() -> None:
    history = (
        proof("2026-11-22", 1000.0),
        proof("2026-11-23", 500.0, passed=False),
        proof("2026-11-24", 900.0),
        proof("2026-11-24", 3600.0, ranks=8),
    )
    text = pages_of(entry(proofs=history))["environments/knl-tensorflow-2.15.1-0123456789.html"]
    page = Words(text)
    words = " ".join(page.text.split())
    assert page.tags.count("svg") == 3
    assert "2026-11-23 failed weights: rank 1 differs" in words
    assert "2026-11-23: 500" not in words
    assert "8 ranks: 3600" in words


@pytest.mark.parametrize("state", ["published", "broken"])
def test_a_proof_that_failed_last_is_shown_in_the_table(state: str) -> None:
    failed = (proof("2026-11-22", 1000.0), proof("2026-11-24", 900.0, passed=False))
    words = " ".join(Words(pages_of(entry(state=state, proofs=failed))["index.html"]).text.split())
    assert f"{state} the last proof failed" in words


HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=y>', "a & b", "x\ny | z", "[a](javascript:b)", "`*_<b>")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_of_a_record_is_read_as_html_or_markdown(text: str) -> None:
    record = make_record(identity={"python": text, text: "x"}, host=text, stack=text)
    plain = Words(pages_of(entry())["environments/knl-tensorflow-2.15.1-0123456789.html"])
    for body in pages_of(entry(record=record, state=text)).values():
        words = Words(body)
        assert set(words.tags) <= {*plain.tags, "ul", "li", "thead", "tbody", "th", "br", "svg"}
        assert "onerror=y>" not in body.replace("&quot;&gt;&lt;img src=x onerror=y&gt;", "")
    for body in pages_of(entry(record=record), markdown=True).values():
        assert not re.search(r"(?<!\\)<", body.replace("<br>", ""))
        assert not re.search(r"(?<!\\)\]\(javascript", body)
        lines = [line for line in body.splitlines() if line.startswith("| ")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_the_pages_need_nothing_from_elsewhere() -> None:
    for body in pages_of(entry(proofs=(proof("2026-11-22", 1.0), proof("2026-11-23", 2.0)))).values():
        assert not re.search(r'(src|href)="(?!environments/|\.\./index\.html)', body)
        assert "<script" not in body
        assert "http" not in body.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "1 min"), (300, "5 min"), (4 * 3600, "4 h"), (86_400, "1 day"), (7e7, "2 years")]
)
def test_the_age_is_in_the_largest_unit(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_a_report_without_environments_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call("report", str(tmp_path / "out"), "--json") == 2
    error = envelope(capsys)["error"]
    assert str(tmp_path / "root") in error["message"] and "`provision build" in error["hint"]
    assert not (tmp_path / "out").exists()
