"""`provision compat`, and stacks with ranges in the other verbs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import answer, envelope
from parts.json_page import faults
from parts.published import put_proved
from parts.records import store_here
from provision import cli
from provision.machine.configuration.shipped import load_stack
from provision.machine.probes.offer import CUDA_IN_NAME, PYTHON_IN_NAME
from provision.model.layout import EnvironmentId
from provision.planning.solver import Fit

Captured = pytest.CaptureFixture[str]
WISH = """name = "newest"
summary = "the newest that works"

[choose]
tensorflow = "{0}"
"""


@pytest.fixture
def wish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with the stack `newest`, whose file is returned."""
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    path = tmp_path / "stacks" / "newest.toml"
    path.parent.mkdir()
    path.write_text(WISH.format(">=2.13"))
    return path


def test_compat_judges_every_stack_and_has_what_is_known(capsys: Captured, words: Words) -> None:
    code, body = answer(capsys, "compat", "--site", "local")
    assert (code, faults(body["result"], "compat")) == (0, [])
    rows = {row["stack"]: row for row in body["result"]["stacks"]}
    (reason,) = rows["tensorflow-2.21.0-gpu"]["against"]
    words("compat", reason)
    names = [row["stack"] for row in body["result"]["stacks"]]
    best = body["result"]["recommended"]
    good = [name for name in names if not rows[name]["against"]]
    assert rows[best]["state"] == "works" or best == good[0]
    assert [name for name in names if rows[name]["state"] == "works"][:1] in ([], [best])
    assert (
        names.index("tensorflow-2.21.0") < names.index("tensorflow-2.21.0-tf-keras") < names.index("tensorflow-2.2.3")
    )
    assert body["result"]["default"] == "tensorflow-2.21.0"
    assert cli.main(["compat", "--site", "local"]) == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines() if line[:2] == "* "][:1] == [best]
    assert cli.main(["stack", "list", "--json"]) == 0
    assert [row["name"] for row in envelope(capsys)["result"]["stacks"]] == names
    assert {row["state"] for row in rows.values()} <= {"works", "unsure", "no"}
    assert {row["version"] for row in body["result"]["known"]["tensorflow"]} >= {"1.15", "2.21"}
    assert cli.main(["compat", "--verbose"]) == 0
    assert "TensorFlow 2.15.1: python 3.9 3.10 3.11; cuda 12.2;" in capsys.readouterr().out


def test_what_was_proved_below_the_root_on_this_arch_is_shown_and_works(capsys: Captured) -> None:
    put_proved(store_here(), EnvironmentId("icelake", "tensorflow", "2.15.1", "0" * 10))
    _, body = answer(capsys, "compat", "--site", "local")
    days = {row["stack"]: row["proved"] for row in body["result"]["stacks"]}
    assert {name: day for name, day in days.items() if day} == {"tensorflow-2.15.1": "2026-11-22"}
    assert cli.main(["compat", "--site", "local"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "proved here on 2026-11-22" in line]
    assert [line.replace("*", "").split()[:2] for line in lines] == [["works", "tensorflow-2.15.1"]]
    _, body = answer(capsys, "compat", "--site", "sigma2-saga", "--arch", "a100")  # another root
    assert not [row for row in body["result"]["stacks"] if row["proved"]]
    fit = Fit(stack=load_stack("tensorflow-2.15.1"), minor="3.11", against=(), doubts=("not tried",), measured=False)
    assert (fit.state, dataclasses.replace(fit, proved="2026-11-22").state) == ("unsure", "works")
    assert dataclasses.replace(fit, proved="2026-11-22", against=("needs glibc 2.40",)).state == "no"


def test_a_site_that_is_elsewhere_is_judged_by_its_profile(capsys: Captured, words: Words) -> None:
    _, body = answer(capsys, "compat", "--site", "sigma2-saga", "--arch", "a100")
    assert body["result"]["offer"]["cuda"] == ["11.7"]
    (row,) = [row for row in body["result"]["stacks"] if row["stack"] == "tensorflow-2.15.1-gpu"]
    assert "CUDA 12.2" in row["against"][0] and "11.7" in row["against"][0]
    words("compat", "\n".join(row["against"]))
    _, body = answer(capsys, "plan", "--profile", "--site", "sigma2-saga", "--arch", "a100", "--stack", row["stack"])
    assert body["result"]["cannot_work"] == row["against"]
    assert "archs.a100.node.sockets" in body["result"]["unconfirmed"]


@pytest.mark.usefixtures("wish")
def test_a_plan_of_a_stack_with_ranges_is_the_plan_of_the_chosen_one(capsys: Captured) -> None:
    _, body = answer(capsys, "plan", "--profile", "--site", "nersc-perlmutter", "--arch", "cpu", "--stack", "newest")
    assert body["result"]["outline"]["environment"][0].startswith("cpu/tensorflow/2.21.0")
    _, body = answer(capsys, "stack", "list")
    assert body["result"]["ranges"] == [{"name": "newest", "summary": "the newest that works", "tensorflow": ">=2.13"}]
    assert body["result"]["unreadable"] == []


def test_an_impossible_stack_with_ranges_is_refused_with_what_to_drop(
    capsys: Captured, wish: Path, words: Words
) -> None:
    wish.write_text(WISH.format(">=3"))
    code, body = answer(capsys, "plan", "--site", "local", "--stack", "newest")
    assert (code, body["error"]["kind"]) == (1, "plan")
    hint = body["error"]["hint"]
    assert "`tensorflow`" in hint and "`--stack tensorflow-" in hint
    words("plan", hint)


@pytest.mark.usefixtures("wish")
def test_a_verb_that_needs_versions_says_so(capsys: Captured, words: Words) -> None:
    code, body = answer(capsys, "audit", "--stack", "newest")
    assert (code, "`provision plan --stack newest`" in body["error"]["hint"]) == (2, True)
    words("audit", body["error"]["hint"])


@pytest.mark.parametrize(
    ("pattern", "module", "version"),
    [
        (CUDA_IN_NAME, "CUDA/12.1.1", "12.1"),
        (CUDA_IN_NAME, "cudatoolkit/12.2", "12.2"),
        (CUDA_IN_NAME, "TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0", "11.7"),
        (CUDA_IN_NAME, "nvhpc-hpcx-cuda12/24.5", "12"),
        (CUDA_IN_NAME, "craype-accel-nvidia80", None),
        (PYTHON_IN_NAME, "Python/3.11.3-GCCcore-12.3.0", "3.11"),
        (PYTHON_IN_NAME, "cray-python/3.9.13", "3.9"),
        (PYTHON_IN_NAME, "python3.10", "3.10"),
        (PYTHON_IN_NAME, "tensorflow/3.1", None),
    ],
)
def test_a_version_in_the_name_of_a_module(pattern: re.Pattern[str], module: str, version: str | None) -> None:
    found = pattern.search(module)
    assert (found[1] if found else None) == version
