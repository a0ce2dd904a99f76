"""Run programs: their output is in the log, their end is reported, and no process that they started survives."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import CommandError
from provision.machine.programs.run import LONGEST_LINE, LONGEST_SHOWN, LONGEST_TAIL, TAIL, Result, capture, end, stream


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log file."""
    return tmp_path / "step.log"


def bash(script: str, log: Path, **options: object) -> Result:
    """Stream a script."""
    return stream(("bash", "-c", script), environ=dict(os.environ), log=log, **options)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Whether a process has ended (it may wait to be reaped)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def until(what: Callable[[], bool], patience_s: float = 5) -> bool:
    """Wait for a condition; whether it became true."""
    end_at = time.monotonic() + patience_s
    while time.monotonic() < end_at:
        if what():
            return True
        time.sleep(0.01)
    return what()


def test_output_goes_to_the_log_and_to_the_callback_line_by_line(log: Path) -> None:
    seen: list[str] = []
    result = bash("echo one; echo two >&2; printf three", log, on_line=seen.append)
    assert seen == ["one", "two", "three"]
    assert result.tail == ("one", "two", "three")
    assert result.code == 0
    assert not result.timed_out
    assert log.read_text().splitlines()[1:] == ["one", "two", "three", "# exit status 0 after 0 s"]


def test_a_silent_program_is_looked_at_every_second_and_a_short_one_never(log: Path) -> None:
    looks: list[float] = []
    bash("sleep 1.4", log, on_second=lambda: looks.append(time.monotonic()))
    assert len(looks) == 1
    looks.clear()
    bash("true", log, on_second=lambda: looks.append(time.monotonic()))
    assert looks == []


def test_the_log_names_each_program_and_is_appended_to(log: Path) -> None:
    bash("echo first", log)
    bash("echo second", log)
    assert log.read_text() == (
        "$ bash -c echo first\nfirst\n# exit status 0 after 0 s\n$ bash -c echo second\nsecond\n# exit status 0 after 0 s\n"
    )


def test_the_exit_code_is_returned_and_is_negative_for_a_signal(log: Path) -> None:
    assert bash("exit 7", log).code == 7
    assert bash("kill -SEGV $$", log).code == -signal.SIGSEGV


def test_the_result_has_the_last_lines_and_the_log_has_all(log: Path) -> None:
    result = bash(f"seq {TAIL + 50}", log)
    assert len(result.tail) == TAIL
    assert result.tail[-1] == str(TAIL + 50)
    assert len(log.read_text().splitlines()) == TAIL + 52


def test_output_that_is_not_text_does_not_stop_a_build(log: Path) -> None:
    assert bash("printf 'a\\377b\\n'", log).tail == ("a\ufffdb",)
    assert "a\ufffdb" in log.read_text(encoding="utf-8")


def test_a_program_gets_only_the_given_environment_and_no_input(log: Path) -> None:
    result = stream(("/bin/sh", "-c", 'echo "$ONLY$HOME"; cat'), environ={"ONLY": "1", "PATH": os.defpath}, log=log)
    assert result.tail == ("1",)


def test_a_module_in_the_working_directory_is_not_run(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m pip` runs `pip.py` of the folder in which it starts."""
    (tmp_path / "compileall.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit('PLANTED')\n")
    monkeypatch.chdir(tmp_path)
    argv = (sys.executable, "-m", "compileall", "--help")
    assert "usage: " in capture(argv, os.environ).stdout
    assert "PLANTED" not in stream(argv, environ=os.environ, log=log).tail
    assert not (tmp_path / "ran").exists()


def test_a_program_can_be_started_in_a_folder_that_the_caller_names(tmp_path: Path) -> None:
    assert capture(("pwd",), os.environ, folder=str(tmp_path)).stdout == f"{tmp_path}\n"


def test_a_missing_program_is_an_error(log: Path) -> None:
    with pytest.raises(CommandError, match="`nosuch-program` cannot be run") as caught:
        stream(("nosuch-program", "x"), environ=dict(os.environ), log=log)
    assert "No such file" in caught.value.evidence[0]
    assert caught.value.log == str(log)
    with pytest.raises(CommandError, match="cannot be run"):
        capture(("nosuch-program",), os.environ)


def test_a_program_that_exceeds_its_time_limit_is_ended_with_its_children(log: Path) -> None:
    began = time.monotonic()
    result = bash("echo $$; sleep 60 & echo $!; wait", log, timeout_s=0.5)
    assert result.timed_out
    assert result.code < 0
    assert time.monotonic() - began < 5
    assert len(result.tail) == 2
    assert all(until(lambda pid=pid: gone(int(pid))) for pid in result.tail)  # type: ignore[misc]


def test_a_program_within_its_time_limit_leaves_no_thread(log: Path) -> None:
    assert not bash("true", log, timeout_s=30).timed_out
    assert threading.active_count() == 1 or until(lambda: threading.active_count() == 1)


def test_an_interrupt_ends_the_program_and_its_children(log: Path) -> None:
    seen: list[int] = []

    def interrupt(line: str) -> None:
        seen.append(int(line))
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bash("echo $$; sleep 60 & echo $!; wait", log, on_line=interrupt)
    assert log.read_text().splitlines()[-1].startswith("# interrupted after ")
    assert all(until(lambda pid=pid: gone(pid)) for pid in seen)  # type: ignore[misc]


STREAM = "stream(('bash', '-c', sys.argv[1]), environ=dict(os.environ), log=pathlib.Path(sys.argv[2]))"


def last_line(log: Path) -> str:
    """The last line of a log, without the seconds."""
    return re.sub(r" after \d+ s$", "", log.read_text().splitlines()[-1])


def test_the_log_ends_with_how_the_program_ended(log: Path, words: Words) -> None:
    bash("exit 3", log)
    assert last_line(log) == "# exit status 3"
    bash("kill -9 $$", log)
    words("build", last_line(log))
    bash("sleep 60", log, timeout_s=0.2)
    words("build", last_line(log))
    with pytest.raises(CommandError):
        stream(["/nosuch/program"], environ={}, log=log)
    words("build", last_line(log))


def test_an_error_of_ours_is_not_an_interruption(log: Path) -> None:
    def fail(line: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        bash("echo x; sleep 60", log, on_line=fail)
    assert last_line(log) == "# stopped: [Errno 28] No space left on device"


@contextlib.contextmanager
def running(tmp_path: Path, script: str, call: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A Python that runs a script by this call, and ends with 130 if it is interrupted; and the id of the script's process."""
    program = (
        "import os, sys, pathlib; from provision.machine.programs.run import capture, stream\n"
        f"try:\n  {call}\nexcept KeyboardInterrupt:\n  sys.exit(130)\n"
    )
    argv = [sys.executable, "-c", program, f"echo $$ >{tmp_path}/pid; {script}", str(tmp_path / "step.log")]
    with subprocess.Popen(argv, start_new_session=True) as process:
        try:
            child = started(tmp_path / "pid")
            try:
                yield process, child
            finally:
                if not gone(child):
                    os.killpg(child, signal.SIGKILL)
        finally:
            process.kill()


def started(place: Path) -> int:
    """The process id that a script wrote to `place`."""
    assert until(lambda: place.is_file() and place.read_text().endswith("\n"))
    return int(place.read_text())


def test_ctrl_c_reaches_us_and_we_end_the_program(tmp_path: Path) -> None:
    with running(tmp_path, "trap 'echo asked; exit 1' INT; while :; do sleep 0.05; done", STREAM) as (process, child):
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert until(lambda: gone(child))


def test_a_program_that_the_scheduler_ended_before_us_did_not_fail(tmp_path: Path) -> None:
    """It signals all processes of a job, one after the other."""
    with running(tmp_path, "while :; do sleep 0.05; done", STREAM) as (process, child):
        os.kill(child, signal.SIGTERM)
        assert until(lambda: gone(child))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130


def test_an_interruption_while_a_program_is_ended_is_not_lost() -> None:
    with subprocess.Popen(
        ["bash", "-c", "trap '' INT; echo; exec sleep 60"], stdout=-1, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        interrupt = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            end(process)
    assert process.returncode == -signal.SIGTERM


def test_capture_separates_the_streams_and_has_a_time_limit(words: Words) -> None:
    done = capture(("bash", "-c", "echo out; echo err >&2; exit 3"), os.environ)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    with pytest.raises(CommandError, match="`sleep`") as caught:
        capture(("sleep", "60"), os.environ, timeout_s=0.1)
    words("doctor", caught.value.message)


# What is wrong


def test_the_time_limit_holds_if_a_child_left_the_session(log: Path) -> None:
    began = time.monotonic()
    assert bash("setsid sleep 2 & exec sleep 60", log, timeout_s=0.1).timed_out
    assert time.monotonic() - began < 1.5


def test_a_second_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    with running(tmp_path, "trap 'echo asked' INT; while :; do sleep 0.05; done", STREAM) as (process, child):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
        assert until(lambda: gone(child), patience_s=0.5)


def test_a_line_is_in_the_log_as_soon_as_it_is_printed(log: Path) -> None:
    logged: list[str] = []
    bash("echo one; echo two", log, on_line=lambda line: logged.append(log.read_text().splitlines()[-1]))
    assert logged == ["one", "two"]


# Hostile programs

ONE_LINE = "import sys\nfor _ in range(24): sys.stdout.write('x' * 1000000)"


def test_a_program_that_prints_one_endless_line_costs_little_time_and_memory(log: Path) -> None:
    shown: list[str] = []
    began = time.process_time()
    argv = (sys.executable, "-c", ONE_LINE)
    result = stream(argv, environ=dict(os.environ), log=log, on_line=shown.append, shown=("python",))
    # Linear: 0.1 s. When each block was joined with all before it, this took 6 s.
    assert time.process_time() - began < 2
    assert log.read_text().count("xx") == 12_000_000, "the log has all of it"
    assert max(map(len, result.tail)) <= LONGEST_LINE + 65536
    assert sum(map(len, result.tail)) <= LONGEST_TAIL
    assert max(map(len, shown)) == LONGEST_SHOWN


def test_a_line_that_comes_in_pieces_is_one_line(log: Path) -> None:
    long = "head -c 200000 /dev/zero | tr '\\0' y"
    result = bash(f"printf a; sleep 0.05; printf 'b\\r\\n\\n'; {long}; {long}; printf '\\nc'", log)
    assert result.tail == ("ab", "", "y" * 400_000, "c")


def test_a_probe_over_its_time_limit_leaves_no_child_behind(tmp_path: Path, words: Words) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(CommandError, match="`bash`") as caught:
        capture(("bash", "-c", f"sleep 60 & echo $! >{pid}; wait"), os.environ, timeout_s=0.3)
    words("doctor", caught.value.message)
    assert until(lambda: gone(started(pid)))


@pytest.mark.parametrize(
    "script",
    [
        "setsid sh -c 'echo $$ >PID; exec sleep 60' & wait",
        # `set -m` gives every job a process group; the shell between ends at once, so no living parent leads to the job.
        "bash -c 'set -m; sleep 60 & echo $! >PID'; sleep 60",
    ],
    ids=["a session of its own", "a group of the session, after its parent"],
)
def test_a_process_that_left_the_program_is_ended_with_it(script: str, log: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert bash(script.replace("PID", str(pid)), log, timeout_s=0.5).timed_out
    assert until(lambda: gone(started(pid)))


def test_a_probe_that_prints_without_end_is_an_error(tmp_path: Path, words: Words) -> None:
    with pytest.raises(CommandError, match=r"`yes` .* 64 MiB") as caught:
        capture(("yes",), os.environ)
    words("doctor", caught.value.message)


def test_the_output_of_a_probe_ends_with_the_probe() -> None:
    began = time.monotonic()
    done = capture(("bash", "-c", "sleep 20 & echo $!; echo error >&2"), os.environ)
    assert time.monotonic() - began < 5
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.stderr == "error\n"


def test_an_interrupt_ends_a_probe(tmp_path: Path) -> None:
    with running(tmp_path, "sleep 60", "capture(('bash', '-c', sys.argv[1]), os.environ)") as (process, child):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert until(lambda: gone(child))
