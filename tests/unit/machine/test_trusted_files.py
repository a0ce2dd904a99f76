"""A file that another user may have put there is opened once: no FIFO hangs, no link is followed unasked, no size surprises."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from golden_files import Words
from provision.machine.files.trusted_files import read_regular


@pytest.mark.parametrize("kind", ["FIFO", "folder", "socket", "device", "FIFO behind a link"])
def test_what_is_not_a_regular_file_is_refused_at_once(kind: str, tmp_path: Path, words: Words) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        os.mkfifo(path)
        if "link" in kind:
            (tmp_path / "link").symlink_to(path)
            path = tmp_path / "link"
    # In a process of its own with a time limit: a reader that waits for the FIFO would hang the tests.
    program = (
        "import sys\nfrom provision.machine.files.trusted_files import read_regular\n"
        "try: read_regular(sys.argv[1])\nexcept OSError as error: print(error.errno, error.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.startswith(f"{errno.EINVAL} ") and kind.split()[0] in done.stdout
    words("build", done.stdout.partition(" ")[2])


def test_a_link_is_followed_only_if_the_caller_says_so(tmp_path: Path, words: Words) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link")[0] == b"x"
    with pytest.raises(OSError) as caught:
        read_regular(tmp_path / "link", follow=False)
    words("build", str(caught.value.strerror))
    assert caught.value.errno == errno.ELOOP


def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_read(tmp_path: Path, words: Words) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert len(read_regular(path, limit=1000)[0]) == 1000
    with pytest.raises(OSError, match="999 bytes") as caught:
        read_regular(path, limit=999)
    words("build", str(caught.value.strerror))
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("name", ["a\0b", "a\udcff\ud800"])
def test_a_name_that_cannot_be_a_path_is_an_error_of_the_system(name: str, words: Words) -> None:
    with pytest.raises(OSError) as caught:
        read_regular(name)
    words("build", str(caught.value.strerror))
