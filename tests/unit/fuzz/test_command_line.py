"""Any words, in any environment, with any answer of any program: an exit code of the list, and no traceback."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parts.cli import call
from parts.hostile import FACTOR, KINDS, fuzzed, strict_json, words
from parts.loops import for_each
from parts.profiles import ARCHS, PROFILES, SITES
from provision.commands.options import LEAVES
from provision.commands.options.declare import Option
from provision.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_JOB_LEFT, EXIT_OK, EXIT_USAGE

LONGEST_S = 30
# Programs that the tool may start; each prints the same file.
PROGRAMS = (
    *("sbatch", "squeue", "scontrol", "sinfo", "srun", "qsub", "qstat", "qselect", "qdel", "g++", "gcc", "cc", "CC"),
    *("mpicxx", "mpiexec", "mpirun", "aprun", "nvcc", "nvidia-smi", "uv", "python3", "python3.11", "python3.12"),
    *("git", "rsync", "ssh", "apptainer", "singularity", "bash"),
)
PROGRAM = (
    '#!/bin/sh\n/bin/cat "$FUZZ_ANSWER" 2>/dev/null\n/bin/cat "$FUZZ_ANSWER" >&2 2>/dev/null\nexit "${FUZZ_CODE:-0}"\n'
)
VARIABLES = (
    *("PROVISION_ROOT", "PROVISION_CONFIG", "PROVISION_SITE", "PROVISION_ENVIRONMENT", "VIRTUAL_ENV", "HOME", "USER"),
    *("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR", "COLUMNS", "LINES", "LANG", "LC_ALL", "TERM"),
    *("NO_COLOR", "FORCE_COLOR", "PATH", "PYENV_ROOT", "SCRATCH", "LOADEDMODULES", "MODULEPATH", "LMOD_PKG", "SHELL"),
    *("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_NTASKS", "PBS_JOBID", "COBALT_JOBID", "https_proxy", "PIP_INDEX_URL"),
    *("CRAYPE_VERSION", "CUDA_HOME", "NCCL_ROOT", "PYTHONPATH", "MODULESHOME"),
)
STACKS = tuple(path.stem for path in sorted((SITES.parent / "stacks").glob("*.toml")))
GOOD = {
    "sites": (*PROFILES, "local", "example-slurm", "site.toml"),
    "stacks": STACKS,
    "archs": ("gpu", "cpu", "knl", "accel", "haswell", "native"),
    "environments": ("knl/tensorflow/2.15.1-0123456789", "tensorflow/2.15.1", "0123"),
    "files": ("job.sh", "train.py", "bytes", "plan.json", "run", "missing", "-"),
    "folders": ("run", ".", "job.sh", "missing"),
}


ANSWERS = (
    *(b"", b"\xff\xfe\n", b"x" * 100000, b"a\0b=c\0"),
    *(b"12.2.0\n", b"123\n", b"/usr/bin/python3\n3.11.2\ncpython-311-x86_64-linux-gnu linux-x86_64\n"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is around a command."""

    environ: dict[str, str]
    answer: bytes
    """What every program prints, to stdout and to stderr."""
    code: int
    given: bytes
    """stdin."""
    encoding: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder: files of every kind that a verb reads, and a folder of programs."""
    here = tmp_path_factory.mktemp("fuzz")
    for name in ("programs", "root", "run", "home"):
        (here / name).mkdir()
    for name in PROGRAMS:
        (here / "programs" / name).write_text(PROGRAM)
        (here / "programs" / name).chmod(0o755)
    golden = SITES.parent / "tests" / "golden" / "jobs" / "nyu-greene" / "gpu" / "horovod.sh"
    (here / "job.sh").write_text(golden.read_text())
    (here / "train.py").write_text("import horovod.tensorflow as hvd\nhvd.init()\n")
    (here / "bytes").write_bytes(bytes(range(256)))
    (here / "plan.json").write_text('{"held": {"a": "b"}}')
    (here / "run" / "run.json").write_text(
        '{"nodes": 1, "tasks": 1, "cpus": 1, "gpus": 1, "seconds": 2, "program": "x"}'
    )
    (here / "site.toml").write_text((SITES / "local.toml").read_text().replace('"local"', '"site"'))
    return here


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """The words of a command line: a command with some of its options, all as they should be, but for a word or two."""
    command = draw(st.sampled_from(LEAVES))
    options = {option.names[-1]: option for option in command.options if "--help" not in option.names}
    line = list(command.words)
    wild = draw(st.sampled_from((False, False, False, True)))

    def value(value: Option) -> str:
        good = st.sampled_from(value.choices or GOOD.get(value.kind) or ("1", "2", "tests"))
        return draw(good | words if wild else good)

    for argument in command.arguments:
        if argument.number not in ("?", "*") or draw(st.booleans()):
            line += [value(argument) for _ in range(draw(st.integers(1, 2)) if argument.number in ("*", "+") else 1)]
    if not wild:
        name, arch = draw(st.sampled_from([one for one in ARCHS if one[0] != "generic-slurm"]))
        needed = {
            "--site": name,
            "--arch": arch,
            "--account": "tests",
            "--time": "00:30:00",
            "--image": "docker://a/b:1",
        }
        line += [word for option, given in needed.items() if option in options for word in (option, given)]
    for option in draw(st.lists(st.sampled_from(list(options.values())), max_size=5)):
        if option.is_switch:
            line.append(option.names[-1])
        elif wild or option.names[-1] not in ("--site", "--arch"):
            given = value(option)
            line += draw(st.sampled_from(([f"{option.names[-1]}={given}"], [option.names[-1], given])))
    for _ in range(draw(st.sampled_from((0, 1, 1, 2)))):  # one of these words is another one
        at = draw(st.integers(min(len(command.words) + 1, len(line)), len(line)))
        name, equals, _ = line[at - 1].partition("=")
        line[at - 1] = f"{name}={draw(words)}" if equals else draw(words)
    if draw(st.sampled_from((False,) * 6 + (True,))):
        line.insert(draw(st.integers(0, len(line))), draw(words))
    if draw(st.booleans()):
        line.append("--json")
    return line


@st.composite
def surroundings(draw: st.DrawFn) -> Surroundings:
    """What is around a command: variables, the answer of every program, stdin, and the encoding of the terminal."""
    answers = ANSWERS if FACTOR > 1 else ANSWERS[:4]  # with the others, a build takes seconds until it fails
    return Surroundings(
        environ=draw(st.just({}) | st.dictionaries(st.sampled_from(VARIABLES), words, max_size=3)),
        answer=draw(st.sampled_from(answers) | st.binary(max_size=60)),
        code=draw(st.sampled_from((0, 0, 0, 1, 3, 127, 255))),
        given=draw(st.sampled_from((b"", b"{}", b"\xff", b"[" * 5000, b'{"held": 1}', b"error: x\n" * 50))),
        encoding=draw(st.sampled_from(("utf-8", "utf-8", "ascii", "latin-1"))),
    )


def run(folder: Path, line: list[str], around: Surroundings) -> tuple[int, str, str]:
    """The exit code of a command line, and what it printed to stdout and stderr."""
    (folder / "answer").write_bytes(around.answer)
    base = {
        "PATH": str(folder / "programs"),
        "HOME": str(folder / "home"),
        "PROVISION_ROOT": str(folder / "root"),
        "FUZZ_ANSWER": str(folder / "answer"),
        "FUZZ_CODE": str(around.code),
        **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),  # nobody answers there
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }
    out, err = io.BytesIO(), io.BytesIO()
    stdout = io.TextIOWrapper(out, encoding=around.encoding, write_through=True)
    stderr = io.TextIOWrapper(err, encoding=around.encoding, errors="backslashreplace", write_through=True)
    umask, before = os.umask(0o022), Path.cwd()
    os.chdir(folder)
    handler = signal.signal(signal.SIGALRM, report_hang)
    signal.alarm(LONGEST_S)
    try:
        with (
            mock.patch.dict(os.environ, base | around.environ, clear=True),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(around.given))),
            mock.patch.object(sys, "stdout", stdout),
            mock.patch.object(sys, "stderr", stderr),
        ):
            ended = call(*line)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        os.chdir(before)
        os.umask(umask)
    return ended, out.getvalue().decode(around.encoding), err.getvalue().decode(around.encoding)


def report_hang(number: int, frame: FrameType | None) -> None:
    """End a command that waits for something."""
    raise AssertionError(f"a hang: nothing after {LONGEST_S} s")


def check(folder: Path, line: list[str], ended: int, out: str, err: str) -> None:
    """What holds for every command line."""
    assert ended in (EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_JOB_LEFT, EXIT_INTERRUPTED)
    assert "a bug in provision" not in err, err
    assert "Traceback" not in err, err
    assert not (folder / "canary").exists()
    assert ended != EXIT_USAGE or "error: " in err or out or "usage: " in err
    if line[-1] == "--json" and out.startswith("{"):
        body = strict_json(out)
        assert body["ok"] or body["error"]["kind"] in KINDS - {"bug"}, body
        assert body["ok"] is (ended in (EXIT_OK, EXIT_JOB_LEFT)) or line[0] in ("doctor", "verify"), body


@fuzzed(60)
@given(lines(), surroundings())
def test_any_command_line_ends_with_an_exit_code_and_no_traceback(
    folder: Path, line: list[str], around: Surroundings
) -> None:
    check(folder, line, *run(folder, line, around))


LONG = ("a" * 300, "a" * 5000, "a/" * 3000, "\udcff" * 300)
LONG_IDS = ("300", "5000", "folders", "bytes")
BEFORE_A_NAME = (
    *("list --site", "plan --stack", "plan --site nersc-cori --arch", "site show", "site new", "site new x --from"),
    *(
        "stack show",
        "show",
        "explain",
        "scaling",
        "data push --site nersc-cori",
        "job lint",
        "job lint job.sh --script",
    ),
    *(
        "job follow --site nersc-cori",
        "build --plan",
        "build --events",
        "lock --python",
        "__complete archs",
        "help",
        "",
    ),
)
PLAIN = Surroundings(environ={}, answer=b"", code=0, given=b"", encoding="utf-8")


@for_each("name", LONG, ids=LONG_IDS)
@for_each("words_before", BEFORE_A_NAME)
def test_a_long_name_is_refused(folder: Path, words_before: str, name: str) -> None:
    line = [*words_before.split(), name]
    ended, out, err = run(folder, line, PLAIN)
    check(folder, line, ended, out, err)
    assert ended in (EXIT_FAILED, EXIT_USAGE) or line[0] == "__complete", (ended, out[:300], err[:300])


@for_each("variable", ["PROVISION_ROOT", "PROVISION_CONFIG", "PROVISION_SITE", "HOME", "XDG_DATA_HOME"])
@for_each("name", LONG, ids=LONG_IDS)
def test_a_long_name_in_a_variable_is_no_traceback(folder: Path, variable: str, name: str) -> None:
    environ = {variable: f"/{name}", **({} if variable == "PROVISION_ROOT" else {"PROVISION_ROOT": ""})}
    for line in ("list", "plan", "doctor", "show x", "job build --profile --site example-slurm"):
        check(folder, line.split(), *run(folder, line.split(), dataclasses.replace(PLAIN, environ=environ)))


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 18, "1000001", "²", "-1", "0", ""])
def test_an_impossible_number_of_nodes_is_refused(folder: Path, number: str) -> None:
    line = ["job", "horovod", "--site", "nersc-cori", "--arch", "knl", "--account", "a", f"--nodes={number}"]
    ended, _, err = run(folder, line, PLAIN)
    assert ended == EXIT_USAGE and err.startswith("error: argument --nodes: ")
