"""Exceptions that followed from each other: the one that says what happened is named."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Finding
from provision.machine.tables import known_failures

HANDLED = "\nDuring handling of the above exception, another exception occurred:\n\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
PLACE = (
    'Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/{}", line 3, in read\n    read()\n'
)


def named(text: str) -> Finding:
    """The cause that a log shows."""
    known = explain([text.encode()], known_failures()).known
    assert known is not None, text
    return known


def test_an_exception_that_says_only_that_something_failed_gives_way_to_its_cause() -> None:
    inner = f"{PLACE.format('datasets/table.py')}datasets.SchemaInferenceError: pass at least one example\n"
    outer = (
        f"{PLACE.format('datasets/builder.py')}datasets.GenerationError: An error occurred while generating the data\n"
    )
    assert "SchemaInferenceError: pass at least one example" in named(inner + DIRECT + outer).cause


@pytest.mark.parametrize(
    ("end", "name"),
    [
        ("OSError: [Errno 28] No space left on device: '/target/flux.so'", "disk-full"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'nb/flux.ipynb'", "file-not-found"),
    ],
)
def test_what_the_system_refused_last_decides_and_not_what_the_program_handled(end: str, name: str) -> None:
    first = f"{PLACE.format('flurble/io.py')}OSError: [Errno 18] Invalid cross-device link: '/a' -> '/b'\n"
    assert named(f"{first}{HANDLED}{PLACE.format('flurble/copy.py')}{end}\n").failure.id == name


def test_what_a_logger_says_above_a_traceback_is_its_title() -> None:
    log = (
        f"ERROR: Uncaught exception in luigi\n{PLACE.format('luigi/task.py')}luigi.MissingError: requires the 'date'\n"
    )
    assert "requires the 'date'" in named(log).cause


def test_the_places_and_messages_of_pydantic_are_below_the_number_of_errors() -> None:
    log = (
        f"{PLACE.format('pydantic/main.py')}pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\n"
        "mode\n  Input should be 'online' or 'offline'\n    For further information visit the page\n"
    )
    assert "mode Input should be 'online' or 'offline'" in named(log).cause


def test_a_working_folder_that_is_gone_is_no_missing_file() -> None:
    log = (
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    os.path.relpath("a")\n'
        '  File "/env/lib/python3.8/posixpath.py", line 379, in abspath\n    cwd = os.getcwd()\n'
        "FileNotFoundError: [Errno 2] No such file or directory\n"
    )
    assert named(log).failure.id == "working-folder-gone"


def test_a_program_that_python_2_did_not_find_is_no_file_of_the_user() -> None:
    log = (
        'Traceback (most recent call last):\n  File "run.py", line 3, in <module>\n    Popen(["flurble"])\n'
        '  File "/usr/lib64/python2.6/subprocess.py", line 1228, in _execute_child\n    raise child_exception\n'
        "OSError: [Errno 2] No such file or directory\n"
    )
    assert named(log).failure.id == "started-program-missing"
