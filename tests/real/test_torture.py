"""Faults in real builds of a small stack: users never see anything broken, and the next build ends as if nothing had happened.

`make torture` injects more of them and prints a table.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.hosts import why_not
from parts.torture import ERRORS, MOST_CALLS, Torture, failed, prepare, run

pytestmark = pytest.mark.real
MOST_S = 45
HOSTS = tuple(f"n{number}" for number in range(1, 11))


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


@pytest.mark.parametrize("ever", [False, True], ids=["once", "for ever"])
def test_a_change_that_fails_is_a_clear_error_and_the_next_run_ends_well(torture: Torture, ever: bool) -> None:
    rng = random.Random(29)
    found = [
        failed(torture, verb, rng.choice(ERRORS), rng.randint(1, most), ever=ever) for verb, most in MOST_CALLS.items()
    ]
    torture.reset()
    assert [line for wrong in found for line in wrong or ()] == []
    assert found.count(None) <= 2, "otherwise little was injected"


def race(torture: Torture, folder: Path) -> list[str]:
    """Start a build at once on each host, where it is process 1; returns what those printed. All must end well.

    The proof of the one that builds is held until the other nine wait, however busy the machine is.
    """
    apart = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--uts", "--ipc")
    script = 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"'
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
        assert [host.wait(timeout=600) for host in hosts] == [0] * 10
    return [path.read_text() for path in said]


def test_of_ten_builds_on_hosts_of_their_own_one_builds_and_nine_wait(torture: Torture, tmp_path: Path) -> None:
    """The hosts have names, networks, mounts, IPC and process numbers of their own: they see each other's locks beat."""
    if reason := why_not():
        pytest.skip(f"there can be no hosts of their own here: {reason}")
    texts = race(torture, tmp_path)
    lines = "".join(texts).splitlines()
    (holder,) = [host for host, text in zip(HOSTS, texts, strict=True) if "\npublished: " in text]
    assert sum(line.startswith("[10/10] publish: done") for line in lines) == 1, "\n".join(lines)
    assert sum(line.startswith("nothing to do: ") for line in lines) == 9, "\n".join(lines)
    waited = [f"being built by root on {holder}, process 1, " in text for text in texts]
    assert waited.count(True) == 9, "\n".join(lines)
    assert not any(line.startswith("took over") for line in lines)
    assert torture.finish() == []
    torture.reset()
