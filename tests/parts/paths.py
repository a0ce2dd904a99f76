"""Where the tests find what they compare with: the checkout, golden files, recorded answers of real programs."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "provision" / "proof" / "programs"
GOLDEN = REPOSITORY / "tests" / "golden"
RECORDED = REPOSITORY / "tests" / "recorded"
