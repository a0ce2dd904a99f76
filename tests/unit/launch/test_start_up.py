"""How long many ranks take to start: the model, its numbers, and its drawing."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from parts.paths import GOLDEN, REPOSITORY
from provision.knowledge.start_up_numbers import NUMBERS
from provision.launch.start_up import (
    WAYS,
    Numbers,
    advice,
    drawing,
    estimates,
    from_copied_image,
    from_files,
    seconds_of_lookups,
)

BEST = {name: number.best for name, number in NUMBERS.items()}
WORST = {name: number.worst for name, number in NUMBERS.items()}
SIZES = (1, 4, 16, 64, 256)


def test_few_clients_wait_for_the_network_and_many_for_the_server() -> None:
    alone = seconds_of_lookups(1, 1000, 0.001, 10_000, between_s=2)
    assert alone == seconds_of_lookups(10, 1000, 0.001, 10_000, between_s=2) == 3
    assert seconds_of_lookups(100, 1000, 0.001, 10_000, between_s=2) == 10


@pytest.mark.parametrize("way", WAYS)
def test_more_nodes_are_never_faster_and_the_best_case_is_never_the_worst(way: str) -> None:
    rows = [row for row in estimates(SIZES, 64, BEST, WORST) if row.way == way]
    assert [row.nodes for row in rows] == list(SIZES)
    assert all(row.best_s <= row.worst_s for row in rows)
    assert all(few.worst_s <= many.worst_s and few.best_s <= many.best_s for few, many in itertools.pairwise(rows))


def test_at_16384_ranks_an_image_takes_seconds_where_plain_files_can_take_an_hour() -> None:
    rows = {row.way: row for row in estimates((256,), 64, BEST, WORST)}
    assert {row.ranks for row in rows.values()} == {16_384}
    assert rows["image, copied"].best_s < 10
    assert rows["image, copied"].worst_s < 20 < rows["plain files"].best_s
    assert rows["plain files"].worst_s > 3600


@pytest.mark.parametrize("case", [BEST, WORST], ids=["best", "worst"])
@pytest.mark.parametrize("ranks", [1, 64])
def test_a_copied_image_is_faster_on_one_node_already(case: Numbers, ranks: int) -> None:
    assert from_copied_image(1, ranks, case) < from_files(1, ranks, case)


def test_every_number_decides_something_and_has_a_source() -> None:
    beside = {"launcher_s", "mpi_init_s"}
    for name, number in NUMBERS.items():
        assert number.source and min(number.best, number.worst) >= 0
        other = estimates(
            SIZES, 64, BEST, {**WORST, name: (WORST[name] or 0.5) * (0.001 if "_per_s" in name else 1000)}
        )
        assert (other == estimates(SIZES, 64, BEST, WORST)) is (name in beside), name


def test_the_advice_is_the_way_that_is_fastest_at_its_worst() -> None:
    rows = estimates((1, 256), 64, BEST, WORST)
    first, certain = advice(rows, 64, BEST, WORST)
    assert "on 1, 256 nodes: image, copied" in first
    assert certain.endswith("from 256 nodes on")
    fast = {**WORST, "latency_s": 0.0, "lookups_per_s": 1e12, "read_bytes_per_s": 1e15, "node_bytes_per_s": 1e15}
    rows = estimates((1, 256), 64, fast, fast)
    first, certain = advice(rows, 64, fast, fast)
    assert ("plain files" in first, certain.endswith("on no number of nodes")) == (True, True)


@pytest.mark.parametrize("sizes", [SIZES, (1,)])
def test_the_drawing_has_an_area_for_each_way_inside_of_its_frame(sizes: tuple[int, ...]) -> None:
    svg = ElementTree.fromstring(drawing(estimates(sizes, 64, BEST, WORST)))
    areas = [shape.attrib["points"] for shape in svg if shape.tag.endswith("polygon")]
    assert len(areas) == len(WAYS)
    places = [tuple(map(float, place.split(","))) for area in areas for place in area.split()]
    assert all(0 <= x <= 480 and 0 <= y <= 340 for x, y in places)


def test_the_page_has_the_table_and_the_drawing_of_today() -> None:
    pages = REPOSITORY / "docs" / "explanation"
    rows = estimates(SIZES, 64, BEST, WORST)
    assert (pages / "start-up.svg").read_text() == drawing(rows), (
        "provision startup --plot docs/explanation/start-up.svg"
    )
    page = (pages / "start-up.md").read_text()
    assert [line for line in advice(rows, 64, BEST, WORST) if line not in page] == []
    printed = (GOLDEN / "words" / "startup.txt").read_text().partition("nodes  ranks")[2].split("\n\n")[0]
    assert printed and printed in page
