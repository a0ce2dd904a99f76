"""The hint of a proof that failed: that of its first failed check which has one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from parts.records import FIGURES
from provision.machine.install.ranks import failed_proof_error
from provision.machine.programs.run import Result
from provision.model.check import Check
from provision.model.verdict import Verdict

GOOD = Check(name="weights", passed=True, message="same", hint="`echo good`")
VERSIONS = Check(name="versions", passed=False, message="they differ")
LIBRARY = Check(name="library", passed=False, message="another MPI", hint="`echo second`")
SPEED = Check(name="speed", passed=False, message="slow", hint="`echo third`")


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ((GOOD, LIBRARY, SPEED), "`echo second`"),
        ((GOOD, VERSIONS, SPEED, LIBRARY), "`echo third`"),
        ((GOOD, VERSIONS), "read `/site/proof.log`"),
    ],
)
def test_the_first_failed_check_that_has_a_hint_or_the_log_is_the_hint(
    checks: tuple[Check, ...], expected: str
) -> None:
    proof: Any = SimpleNamespace(timeout_s=60)
    result = Result(argv=("mpiexec",), code=0, tail=(), timed_out=False)
    error = failed_proof_error(Verdict(checks=checks, figures=FIGURES), result, proof, "/site/proof.log")
    assert error.hint == expected
