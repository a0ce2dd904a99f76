"""A proof compared with the earlier proofs of the same environment."""

from __future__ import annotations

import dataclasses

from golden_files import Words
from parts.records import PROOF
from provision.model.verdict import ProofResult, Reads
from provision.profile.arch import ProofSettings
from provision.proof.history import comparable, judge_history, proof_table

SITE = ProofSettings(nodes=1, ranks_per_node=2, timeout_s=60)


def proof(speed: float | None = 1000.0, accuracy: float | None = 0.95, **more: object) -> ProofResult:
    """A proof that passed with these figures; `data` is of the proof, all other values are of the figures."""
    data = str(more.pop("data", "digits"))
    figures = dataclasses.replace(
        PROOF.verdict.figures,
        images_per_second=speed,
        accuracy=accuracy,
        **more,  # type: ignore[arg-type]
    )
    return dataclasses.replace(PROOF, data=data, verdict=dataclasses.replace(PROOF.verdict, figures=figures))


def test_what_is_much_worse_than_the_median_of_the_history_is_a_finding(words: Words) -> None:
    history = [proof(1000), proof(1100), proof(900), proof(10)]
    assert judge_history(history, proof(765), SITE) == ()
    (finding,) = judge_history(history, proof(475), SITE)
    words("test", finding)
    (finding,) = judge_history(history, proof(1000, 0.92), SITE)
    words("test", finding)
    assert len(judge_history(history, proof(1, 0.1), SITE)) == 2
    assert judge_history(history, proof(5000, 0.99), SITE) == (), "better is no finding"


def test_a_later_start_and_more_look_ups_are_findings(words: Words) -> None:
    def started(seconds: float, lookups: int) -> ProofResult:
        reads = Reads(lookups=lookups, bytes=1, node_lookups=2 * lookups, node_bytes=2, elsewhere=0)
        return proof(start_seconds=seconds, reads_files=reads, reads_image=reads)

    history = [started(10, 100)] * 3
    assert judge_history(history, started(14.9, 120), SITE) == (), "5 s are no word"
    assert judge_history([started(2, 0)] * 3, started(6.9, 0), SITE) == ()
    words("test", "\n".join(judge_history(history, started(15.1, 126), SITE)))
    assert judge_history([proof()] * 3, started(100, 100), SITE) == (), "earlier proofs did not measure it"


def test_the_tolerance_is_that_of_the_site() -> None:
    history = [proof()] * 3
    strict = dataclasses.replace(SITE, slowdown=0.05, accuracy_loss=0.001)
    assert judge_history(history, proof(940, 0.948), SITE) == ()
    assert len(judge_history(history, proof(940, 0.948), strict)) == 2


def test_a_short_history_or_another_shape_or_missing_figures_judge_nothing() -> None:
    assert judge_history([proof(), proof()], proof(1), SITE) == ()
    others = [proof(ranks=4), proof(gpus=1), proof(hosts=("a", "b")), proof(data="mnist")]
    assert comparable([*others, proof()], proof(1)) == [proof()]
    failed = dataclasses.replace(
        PROOF,
        verdict=dataclasses.replace(
            PROOF.verdict, checks=(dataclasses.replace(PROOF.verdict.checks[0], passed=False),)
        ),
    )
    assert comparable([failed], proof()) == []
    assert judge_history([proof(None, None)] * 5, proof(1), SITE) == ()
    assert judge_history([proof()] * 5, proof(None, None), SITE) == ()


def test_the_table_has_the_figures_of_now_and_before_and_the_findings() -> None:
    worse = dataclasses.replace(proof(400), findings=("too slow",))
    rows = [
        ("a", "a/x/1-0", "worse", worse, [proof(1000), proof(1200)]),
        ("b", "b/x/1-0", "failed", None, []),
    ]
    assert proof_table(rows) == [
        "STATE   ENVIRONMENT  IMAGES/S  BEFORE  ACCURACY  BEFORE",
        "worse   a/x/1-0      400       1,100   95.0%     95.0%",
        "    too slow",
        "failed  b/x/1-0",
        "1 worse, 1 failed",
    ]


def test_findings_are_kept_with_the_proof() -> None:
    found = dataclasses.replace(PROOF, findings=("too slow",))
    assert ProofResult.from_dict(found.to_dict()) == found
    old = PROOF.to_dict()
    del old["findings"]
    assert ProofResult.from_dict(old) == PROOF
