"""Faults in real builds of a small stack: users never see anything broken, and the next build ends as if nothing had happened.

`make torture` injects more of them and prints a table.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.hosts import why_not
from parts.torture import Torture, prepare, run

pytestmark = pytest.mark.real
MOST_S = 45
HOSTS = ("n1", "n2")


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Torture]:
    """A root in memory if that is possible, with one environment that is published."""
    folder, disk = tmp_path_factory.mktemp("torture"), os.geteuid() == 0
    yield prepare(folder / "site", 13, disk=disk)
    if disk:
        subprocess.run(["umount", "-l", str(folder / "site" / "root")], check=True)


def test_after_faults_users_see_whole_environments_and_the_build_ends_as_undisturbed(torture: Torture) -> None:
    table = run(torture, 40, disk=os.geteuid() == 0, most_s=MOST_S)
    assert table.complaints == [], "\n".join([*table.lines(), *table.complaints])
    assert sum(table.injected.values()) >= 5
    assert (sum(table.broken.values()), sum(table.lost.values())) == (0, 0)


def race(torture: Torture, folder: Path) -> list[str]:
    """Start five builds at once on each of two hosts; returns what those of each host printed.

    The proof of the one that builds is held until the other nine wait, however busy the machine is.
    """
    apart = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--uts")
    script = 'echo "$0" >/proc/sys/kernel/hostname; for i in 1 2 3 4 5; do "$@" & done; wait'
    argv = torture.site.argv("build", "--site", "two")
    said = [folder / host for host in HOSTS]
    hold = torture.site.folder / "hold"
    hold.touch()
    with contextlib.ExitStack() as files:
        hosts = [
            subprocess.Popen(
                [*apart, "bash", "-c", script, path.name, *argv],
                env=torture.site.environ(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=files.enter_context(path.open("w")),
            )
            for path in said
        ]
        end = time.monotonic() + 50  # the proof has 60 s
        while sum(path.read_text().count("waiting: ") for path in said) < 9 and time.monotonic() < end:
            time.sleep(0.1)
        hold.unlink()
        for host in hosts:
            host.wait(timeout=600)
    return [path.read_text() for path in said]


def test_ten_builds_from_two_hosts_are_one_build_and_nine_that_wait(torture: Torture, tmp_path: Path) -> None:
    """The hosts have names, networks and process numbers of their own; each sees the locks of the other by their beats."""
    if reason := why_not():
        pytest.skip(f"there can be no hosts of their own here: {reason}")
    texts = race(torture, tmp_path)
    lines = "".join(texts).splitlines()
    assert sum(line.startswith("[9/9] publish: done") for line in lines) == 1, "\n".join(lines)
    done = [line for line in lines if line.startswith(("published: ", "nothing to do: "))]
    assert len(done) == 10, "\n".join(lines)
    assert sum(line.startswith("published: ") for line in done) == 1
    (holder,) = [host for host, text in zip(HOSTS, texts, strict=True) if "\n[9/9] publish: done" in text]
    waited = {
        host: text.count(f"being built by root on {holder}, process ") for host, text in zip(HOSTS, texts, strict=True)
    }
    assert all(number >= (4 if host == holder else 5) for host, number in waited.items()), "\n".join(lines)
    assert not any(line.startswith("took over") for line in lines)
    assert torture.finish() == []
    torture.reset()
