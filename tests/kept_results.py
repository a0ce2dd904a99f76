"""A pytest plugin: each test's seconds are kept in `build/tests/seconds.tsv`, and `--resume` leaves out what passed before.

What passed counts as long as no file that git tracks, or would track, is another one than it was.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that goes on where an earlier run was stopped."""
    parser.addoption("--resume", action="store_true", help="leave out the tests that passed on the same sources")


def tree_of(repository: Path) -> str:
    """The hash that git gives the files as they are now, committed or not.

    Raises:
        pytest.UsageError: git does not answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        for words in (("add", "--all"), ("write-tree",)):
            argv = ["git", "-C", str(repository), *words]
            done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
            if done.returncode:
                raise pytest.UsageError(f"`--resume` needs a checkout of git: {done.stderr.strip()}")
    return done.stdout.strip()


def pytest_configure(config: pytest.Config) -> None:
    """Keep results; with several workers, in the process that hears of all."""
    config.pluginmanager.register(Kept(config), "kept-results")


class Kept:
    """What is kept of this run."""

    def __init__(self, config: pytest.Config) -> None:
        self.is_worker = hasattr(config, "workerinput")
        self.folder = config.rootpath / "build" / "tests"
        self.seconds: dict[str, float] = {}
        self.good: dict[str, bool] = {}
        self.file: Path | None = None
        self.passed: list[str] = []
        if self.is_worker:
            self.passed = config.workerinput["passed"]
        elif config.getoption("--resume"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file = self.folder / f"passed-{tree_of(config.rootpath)}.txt"
            self.passed = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
            for other in self.folder.glob("passed-*.txt"):
                if other != self.file:
                    other.unlink()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """All workers leave out the same tests."""
        node.workerinput["passed"] = self.passed

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed."""
        before = set(self.passed)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in before])
        items[:] = [item for item in items if item.nodeid not in before]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test has ended."""
        if self.is_worker:
            return
        name = report.nodeid
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration
        self.good[name] = self.good.get(name, True) and report.passed
        if report.when == "teardown" and self.good[name] and self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")

    def pytest_sessionfinish(self) -> None:
        """Write the seconds, the longest first; those of tests that did not run now stay."""
        if self.is_worker or not self.seconds:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "seconds.tsv"
        rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        kept = {name: float(seconds) for seconds, name in (row.split("\t") for row in rows)}
        together = sorted({**kept, **self.seconds}.items(), key=lambda row: (-row[1], row[0]))
        new = file.with_suffix(".new")
        new.write_text("".join(f"{seconds:.2f}\t{name}\n" for name, seconds in together), encoding="utf-8")
        new.replace(file)
