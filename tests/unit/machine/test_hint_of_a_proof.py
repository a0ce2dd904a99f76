"""The hint of a proof that failed: that of its first failed check which has one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from parts.records import FIGURES
from provision.machine.install.ranks import failed_proof_error
from provision.machine.programs.run import Result
from provision.model.verdict import Check, Verdict

GOOD = Check(name="weights", passed=True, message="same", hint="`echo good`")
VERSIONS = Check(name="versions", passed=False, message="they differ")
LIBRARY = Check(name="library", passed=False, message="another MPI", hint="`echo second`")
SPEED = Check(name="speed", passed=False, message="slow", hint="`echo third`")


def hint(*checks: Check) -> str | None:
    """The hint of a proof with these checks."""
    proof: Any = SimpleNamespace(timeout_s=60)
    result = Result(argv=("mpiexec",), code=0, tail=(), timed_out=False)
    return failed_proof_error(Verdict(checks=checks, figures=FIGURES), result, proof, "/site/proof.log").hint


def test_the_hint_of_the_first_failed_check_is_shown() -> None:
    assert hint(GOOD, LIBRARY, SPEED) == "`echo second`"
    assert hint(GOOD, SPEED, LIBRARY) == "`echo third`"


def test_a_failed_check_without_a_hint_leaves_it_to_the_next_or_to_the_log() -> None:
    assert hint(GOOD, VERSIONS, LIBRARY, SPEED) == "`echo second`"
    assert hint(GOOD, VERSIONS) == "read `/site/proof.log`"
