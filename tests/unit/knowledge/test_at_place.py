"""Entries whose meaning depends on the place at which the exception was raised."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

TERMINAL = """\
Epoch 3/10 loss 0.22
Traceback (most recent call last):
  File "train.py", line 120, in <module>
    {code}
OSError: [Errno 5] Input/output error
"""


@pytest.mark.parametrize("code", ["print('step', step)", "sys.stdout.flush()"])
def test_an_output_that_cannot_be_written_is_a_terminal_that_is_gone(code: str) -> None:
    known = explain([TERMINAL.format(code=code).encode()], known_failures()).known
    assert known is not None
    assert "terminal" in known.cause


@pytest.mark.parametrize(
    "code",
    [
        "data = archive.read(size)",
        "blueprint(model)",
        "np.save('weights.npy', weights)",
        "file.write(text)",
        "print(row, file=out)",
    ],
)
def test_a_file_that_cannot_be_read_or_written_is_the_disk(code: str) -> None:
    known = explain([TERMINAL.format(code=code).encode()], known_failures()).known
    assert known is not None
    assert "disk" in known.cause


PROGRESS_BAR = """\
Traceback (most recent call last):
  File "train.py", line 120, in <module>
    for batch in tqdm(data):
  File "/env/lib/python3.9/site-packages/tqdm/std.py", line 1195, in __iter__
    fp.write(text)
OSError: [Errno 5] Input/output error
"""


def test_a_progress_bar_writes_to_the_terminal() -> None:
    known = explain([PROGRESS_BAR.encode()], known_failures()).known
    assert known is not None
    assert "terminal" in known.cause


def test_a_program_that_cannot_be_started_is_no_file_that_is_missing() -> None:
    text = """\
Traceback (most recent call last):
  File "submit.py", line 12, in <module>
    subprocess.run(["flurbler", "job.sh"])
  File "/usr/lib/python3.6/subprocess.py", line 1344, in _execute_child
    raise child_exception_type(errno_num, err_msg, err_filename)
FileNotFoundError: [Errno 2] No such file or directory: 'flurbler': 'flurbler'
"""
    known = explain([text.encode()], known_failures()).known
    assert known is not None
    assert "starts `flurbler`" in known.cause and "command -v flurbler" in known.hint


def test_a_folder_in_which_a_program_is_started_may_be_missing() -> None:
    text = """\
Traceback (most recent call last):
  File "submit.py", line 12, in <module>
    subprocess.run(["python", "job.py"], cwd="/scratch/ada/run1")
  File "/usr/lib/python3.6/subprocess.py", line 1344, in _execute_child
    raise child_exception_type(errno_num, err_msg, err_filename)
FileNotFoundError: [Errno 2] No such file or directory: '/scratch/ada/run1'
"""
    known = explain([text.encode()], known_failures()).known
    assert known is not None
    assert "or the folder in which it starts it, is not there: `/scratch/ada/run1`" in known.cause
    assert "ls -ld /scratch/ada/run1" in known.hint


@pytest.mark.parametrize(
    ("path", "name"), [("/home/ada/flux/model.py", True), ("/env/lib/python3.11/site-packages/flux/model.py", False)]
)
def test_a_name_that_the_users_own_module_lacks_is_no_other_version_of_a_package(path: str, name: bool) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/home/ada/flux/train.py", line 1, in <module>
    from flux.model import Net
ImportError: cannot import name 'Net' from 'flux.model' ({path})
"""
    known = explain([text.encode()], known_failures()).known
    assert known is not None
    assert known.failure.program is name
    assert (f"your program: its own module `{path}` has no `Net`" in known.cause) is name
