"""Any text in the place of one that a user gives: a job script, a training script, a log, a lock, a patch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parts.examples import PROGRAMS
from parts.hostile import fuzzed, garbled, refused, texts
from parts.profiles import PROFILES, profile
from provision.commands.shared import names
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, lint_program, read_training
from provision.machine.programs.failed_program import diagnose
from provision.model.lock import parse_lock
from provision.model.patch import parse_patch
from provision.profile.patterns import SHELL_PATH
from provision.wording import about, duration, nearest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = tuple(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/golden/jobs").rglob("*.sh"))[::7])
PATCHES = tuple(path.read_text(encoding="utf-8")[:2000] for path in sorted((ROOT / "patches").rglob("*.patch")))
LOCKS = tuple(path.read_text(encoding="utf-8")[:2000] for path in sorted((ROOT / "requirements").glob("*.txt"))[::5])
TRAINING = tuple(PROGRAMS.values())
SITES = tuple(profile(name) for name in PROFILES)
LOGS = (
    "error: x\nTraceback (most recent call last):\n  File \"x\", line 1\nModuleNotFoundError: No module named 'x'\n",
    "srun: error: x\nslurmstepd: error: *** JOB 1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***\n",
    "a.o: undefined reference to `x`\ncollect2: error\nKilled\n",
)
LONG = 20_000
ODD_PYTHON = ("(" * 1000, "a" + ".b" * 50000, f"x = {'-' * 100000}1", "1" + "+1" * 20000, "lambda:" * 5000 + "1", "\0")


@fuzzed(15)
@given(garbled(SCRIPTS), st.sampled_from(SITES), garbled(TRAINING))
def test_any_job_script_is_checked(text: str, site: object, program: str) -> None:
    script = read_script(text, "job.sh")
    script.main()
    for arch in (None, *site.archs):  # type: ignore[attr-defined]
        for finding in lint_job(script, read_training(program, "train.py"), site, arch):  # type: ignore[arg-type]
            assert str(finding)


@pytest.mark.parametrize("number", ["0", "²", "٣", "-1", "9" * 5000, ""])
def test_an_odd_number_in_a_directive_or_a_variable_is_checked(number: str) -> None:
    counts = (
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "cpus-per-task",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
        "mem",
        "time",
    )
    head = "".join(f"#SBATCH --{option}={number}\n" for option in counts)
    starts = f"export OMP_NUM_THREADS={number} NUM_INTER_THREADS={number} NUM_INTRA_THREADS={number}\n"
    starts += f"srun -n {number} python a.py\nmpiexec -n {number} --ppn {number} python a.py\naprun -n {number} -N {number} a\n"
    script = read_script(head + "#SBATCH --gres=gpu:" + number + "\n" + starts, "job.sh")
    training = read_training("files.interleave(read, num_parallel_calls=4, num_parallel_reads=4)\n", "train.py")
    one = read_script(f"#SBATCH --nodes=0\n#SBATCH --ntasks={number}\n", "job.sh")
    for site in SITES:
        lint_job(script, training, site, site.archs[0])
        lint_job(one, None, site, site.archs[0])


@fuzzed(40)
@given(garbled(TRAINING))
def test_any_training_script_is_checked(text: str) -> None:
    for finding in lint_program(read_training(text, "train.py"), None):
        assert str(finding)


@pytest.mark.parametrize("text", ODD_PYTHON, ids=lambda text: text[:8])
def test_a_script_that_is_too_deep_for_python_has_one_finding(text: str) -> None:
    (finding,) = lint_program(read_training(text, "train.py"), None)
    assert finding.rule == "no-python" and finding.evidence


def test_what_python_warns_of_in_a_training_script_is_not_printed(recwarn: pytest.WarningsRecorder) -> None:
    assert lint_program(read_training("path = '\\d'\nif path is 'x': pass\n", "train.py"), None) == ()
    assert not recwarn.list


@fuzzed(100)
@given(garbled(LOGS) | texts)
def test_any_log_is_explained(log: str) -> None:
    assert all(len(line) <= 300 for line in diagnose(log.splitlines()).evidence)


@fuzzed(60)
@given(garbled(LOCKS), garbled(PATCHES))
def test_any_lock_and_any_patch_is_read_or_refused(lock: str, patch: str) -> None:
    with refused(UnicodeEncodeError):  # files are read as UTF-8, so they contain no halves of characters
        parse_lock(lock, "x.txt")
    with refused():
        parse_patch("x.patch", patch)


@fuzzed(60)
@given(texts, st.lists(texts, max_size=5), st.floats(0, 1e15))
def test_any_words_make_a_sentence(word: str, known: list[str], seconds: float) -> None:
    assert isinstance(nearest(word, known), str)
    assert duration(seconds) and about(seconds)


@pytest.mark.parametrize("text", ["=", "==", "a==", "\n", " ", "[", "root", "\nroot ="])
def test_a_long_text_takes_linear_time(text: str) -> None:
    began = time.process_time()
    diagnose([text * (LONG // len(text))])
    names.ARCH.findall(text * (LONG // len(text)))
    names.ROOT.findall(text * (LONG // len(text)))
    list(lint_job(read_script(text * (LONG // len(text)), "job.sh"), None, None, None))
    assert time.process_time() - began < 2  # a quadratic search of 50,000 characters took more than 15 s


def test_a_long_path_with_many_variables_is_refused_at_once() -> None:
    began = time.process_time()
    assert not SHELL_PATH.fullmatch("$AAAAAA" * 500 + "!")
    assert SHELL_PATH.fullmatch("$AAAAAA/b${C}d" * 200)
    assert time.process_time() - began < 1
