"""Logs are read in blocks of whole lines: a log of any length needs the memory of one block."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import ConfigError
from provision.machine.programs.log_file import BLOCK, given_blocks, whole_lines


def as_file(content: bytes) -> io.BufferedReader:
    """A file with this content."""
    return io.BufferedReader(io.BytesIO(content))  # type: ignore[arg-type]


def test_blocks_end_at_the_end_of_a_line_and_nothing_is_lost() -> None:
    text = "".join(f"line {number}: é\n" for number in range(200_000)) + "no end"
    blocks = list(whole_lines(as_file(text.encode())))
    assert b"".join(blocks) == text.encode()
    assert len(blocks) > 3
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_text_without_line_breaks_comes_in_blocks_too(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * (5 * BLOCK) + b"\xff\r\ny")
    blocks = list(given_blocks(str(tmp_path / "log")))
    assert b"".join(blocks) == b"x" * (5 * BLOCK) + b"\xff\r\ny"
    assert max(map(len, blocks)) <= 2 * BLOCK


def test_stdin_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(as_file(b"caf\xe9\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    assert b"".join(given_blocks("-")) == b"caf\xe9\n"
    assert not stdin.buffer.closed


@pytest.mark.parametrize("name", ["nosuch", "."])
def test_a_log_that_cannot_be_read_is_a_wrong_request(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"`{name}`") as caught:
        list(given_blocks(name))
    assert caught.value.hint == f"`ls -l {name}`"
    words("explain", caught.value.message)


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_explain_needs_little_memory_for_a_large_log(way: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("OSError: [Errno 28] No space left on device\n")
    os.truncate(log, 150_000_000)  # zeros, without a line break
    # The peak of this program alone: `ru_maxrss` would begin with that of pytest, which started it.
    program = (
        "import sys; from pathlib import Path; from provision import cli; code = cli.main(sys.argv[1:])\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr); sys.exit(code)\n"
    )
    argv = [sys.executable, "-c", program, "explain", str(log) if way == "file" else "-"]
    with log.open() as stdin:
        done = subprocess.run(argv, stdin=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("sure: the disk or file system is full")
    # Measured: 28 MB. The whole text in memory would be 300 MB.
    assert int(done.stderr) / 1024 < 100


TEXT = "line 1\nOSError: [Errno 28] No space left on device é\n"
FORMS = {
    "gzip": gzip.compress(TEXT.encode()),
    "bzip2": bz2.compress(TEXT.encode()),
    "xz": lzma.compress(TEXT.encode()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_compressed_log_is_the_same_text(form: str) -> None:
    assert b"".join(whole_lines(as_file(FORMS[form]))) == TEXT.encode()


def test_of_a_damaged_compressed_log_the_beginning_is_read() -> None:
    data = gzip.compress(random.Random(1).randbytes(3 * BLOCK) + b"the end", compresslevel=1)
    assert len(b"".join(whole_lines(as_file(data[:-1000])))) > BLOCK
