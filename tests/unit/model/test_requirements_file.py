"""A user's requirements that are added to a lock: what is taken, and what is refused, with all faults named."""

from __future__ import annotations

import pytest

from golden_files import Words, lock_of
from provision.errors import ConfigError
from provision.model.requirements_file import read_requirements

LOCK = lock_of("overlay-tensorflow-2.15.1", "numpy==1.26.4", "tensorflow==2.15.1", "typing-extensions==4.15.0")
HASH = "--hash=sha256:" + "a" * 64


def refused(text: str) -> ConfigError:
    """The error for a file with this text."""
    with pytest.raises(ConfigError) as caught:
        read_requirements(text, "own.txt", LOCK, "3.10")
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "pandas",
        "# mine\n\npandas >= 2  # tables\nnumpy>=1.20,<2\n",
        "numpy<1.20; python_version < '3.9'\npandas",
        f"pandas==2.2.0 \\\n    {HASH} \\\n    {HASH}\nnumpy==1.26.4 {HASH}\n",
        "typing_extensions==4.15.0\r\nTensorFlow[and-cuda]~=2.15.0\r\npandas\r\n",
    ],
)
def test_packages_that_allow_the_versions_of_the_lock_are_taken(text: str) -> None:
    assert read_requirements(text, "own.txt", LOCK, "3.10").path == "own.txt"


def test_a_conflict_names_both_versions_and_the_line(words: Words) -> None:
    error = refused("pandas\nnumpy==2.0\\\n\n\ntensorflow<2.10\n")
    second, fifth = error.evidence
    assert second.startswith("line 2 ") and "`numpy==2.0`" in second and "`numpy==1.26.4`" in second
    assert fifth.startswith("line 5 ") and "`tensorflow<2.10`" in fifth and "`tensorflow==2.15.1`" in fifth
    words("job", "\n".join(error.to_lines()))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("# nothing", ()),
        ("-e .", ("line 1: ", "`-e .`")),
        ("pandas\n--index-url https://x", ("line 2: ", "`--index-url https://x`")),
        ("./wheel.whl", ("line 1: ", "`./wheel.whl`")),
        ("x @ https://example.org/x.whl", ("line 1: ", "`x`")),
        ("Horovod==0.28.1", ("line 1: ", "Horovod")),
        ("numpy\ntensorflow>2", ()),
        (f"pandas==2 {HASH}\nscipy==1", ("`scipy`", "`--hash`")),
        ("pandas\0", ("line 1: ",)),
    ],
)
def test_a_file_that_the_job_cannot_use_is_refused(text: str, names: tuple[str, ...], words: Words) -> None:
    error = refused(text)
    assert "`own.txt`" in error.message
    assert [name for name in names if not any(name in line for line in error.evidence)] == []
    words("job", "\n".join(error.to_lines()).replace("\0", r"\0"))


def test_all_faults_of_a_file_are_named_at_once() -> None:
    assert len(refused("-e .\nnumpy<1\nx @ file:///x\n").evidence) == 3
