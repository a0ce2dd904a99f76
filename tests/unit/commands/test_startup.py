"""`provision startup`: its table from the numbers of large sites, of an environment's proof, or of the caller."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import answer, call, envelope
from parts.records import FIGURES, PROOF, put_published, store_here
from provision.model.verdict import Reads

Captured = pytest.CaptureFixture[str]


def seconds(result: dict[str, object], way: str) -> list[tuple[float, float]]:
    """The best and the worst seconds of a way, for each number of nodes."""
    rows = result["estimates"]
    assert isinstance(rows, list)
    return [(row["best_s"], row["worst_s"]) for row in rows if row["way"] == way]


def test_a_table_of_every_way_from_one_node_to_16384_ranks(capsys: Captured, words: Words) -> None:
    assert call("startup") == 0
    words("startup", capsys.readouterr().out)


def test_given_numbers_replace_the_known_ones(capsys: Captured, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    given = ("--given", "lookups_per_s=100", "--given", "lookups=1000", "--given", "kept=1:0", "--given", "import_s=1")
    more = ("--given", "files_bytes=1", "--given", "latency_s=0.001")
    code, result = answer(
        capsys, "startup", "--nodes", "2,1", "--ranks-per-node", "10", *given, *more, "--plot", str(plot)
    )
    assert code == 0
    rounded = [tuple(round(value) for value in row) for row in seconds(result["result"], "plain files")]
    assert rounded == [(10, 100), (20, 200)]
    assert "<polygon" in plot.read_text()


def test_the_numbers_of_an_environment_are_those_of_its_proof(capsys: Captured) -> None:
    store = store_here()
    reads = Reads(lookups=500, bytes=7, node_lookups=1000, node_bytes=14, elsewhere=0)
    figures = dataclasses.replace(FIGURES, start_seconds=2.0, reads_files=reads)
    proof = dataclasses.replace(PROOF, verdict=dataclasses.replace(PROOF.verdict, figures=figures))
    record = put_published(store, verdict=proof)
    code, result = answer(capsys, "startup", record.environment)
    assert code == 0
    numbers = result["result"]["numbers"]
    assert (numbers["lookups"]["best"], numbers["import_s"]["best"], numbers["import_s"]["worst"]) == (500, 2, 4)
    assert record.environment in numbers["lookups"]["source"]
    assert "TensorFlow" in numbers["image_lookups"]["source"], "it has no image, so this was not measured"


@pytest.mark.parametrize(
    "text",
    [
        "latensy_s=1",
        "latency_s",
        "latency_s=fast",
        "latency_s=-1",
        "latency_s=0",
        "latency_s=1:2:3",
        "latency_s=nan",
        "latency_s=inf",
        "kept=2",
    ],
)
def test_a_wrong_number_is_refused_with_the_right_form(capsys: Captured, text: str) -> None:
    assert call("startup", "--given", text, "--json") == 2
    assert envelope(capsys)["error"]["hint"]
