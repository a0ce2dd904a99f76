"""The scaling table: the numbers of NYU's page as runs, what the table says of them, and the job that leaves them."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from golden_files import Golden, Words
from parts.jobs import job, render_user_job
from parts.profiles import profile
from provision import cli
from provision.errors import EXIT_USAGE, ConfigError
from provision.jobs.scaling import RecordedRun, drawing, notes, points, read_run, table
from provision.jobs.user_job import UserJob
from provision.machine.submission.run_folder import read_runs

# GPUs to CPUs to seconds and mean use of the GPUs in percent: the table of the page.
PAGE = {
    1: {2: (574, 85), 4: (565, 83), 8: (562, 89), 16: (564, 90)},
    2: {4: (339, 76), 8: (334, 81), 16: (332, 74)},
    3: {4: (256, 68), 8: (251, 73), 16: (249, 66)},
    4: {4: (226, 59), 8: (220, 58), 16: (214, 65), 32: (218, 63)},
}
RECORD: dict[str, Any] = {"nodes": 1, "tasks": 1, "cpus": 8, "gpus": 1, "seconds": 9}


def test_gpu_use_is_that_of_the_training_on_all_nodes(tmp_path: Path) -> None:
    """`gpu.csv` of one node, or `gpu-HOST-PID.csv` of several, in the form that nvidia-smi prints."""
    head = "timestamp, index, utilization.gpu [%], utilization.memory [%]\n"
    rows = (("08:59:59.900", 0), ("09:00:00.100", 90), ("09:00:05.000", 70), ("09:00:05.999", 80), ("09:00:06.100", 0))
    for host, load in (("n1-7", 0), ("n2-9", 10)):
        text = "".join(f"2026/11/22 {at}, 0, {max(0, use - load)} %, 1 %\n" for at, use in rows)
        (tmp_path / f"gpu-{host}.csv").write_text(head + text)
    record = RECORD | {"program": "x", "nodes": 2, "tasks": 2, "gpu": "A100", "tensorflow": None}
    (tmp_path / "run.json").write_text(json.dumps(record))
    report = {"trained": ["2026/11/22 09:00:00", "2026/11/22 09:00:05"], "batch": 32, "tensorflow": "2.15.1"}
    (tmp_path / "report.json").write_text(json.dumps(report))
    (run,), _ = read_runs([str(tmp_path)])
    assert run.gpu_use == pytest.approx((90 + 70 + 80 + 80 + 60 + 70) / 600)
    assert (run.gpu, run.batch, run.framework) == ("A100", 32, "TensorFlow 2.15.1")
    (tmp_path / "report.json").write_text("{}")
    (run,), _ = read_runs([str(tmp_path)])
    assert run.gpu_use == pytest.approx((90 + 70 + 80 + 80 + 60 + 70) / 1000), "without the times: the whole job"
    for wrong in ([], ["now", "then"], "2026/11/22 09:00:00", [1, 2]):
        (tmp_path / "report.json").write_text(json.dumps({"trained": wrong}))
        with pytest.raises(ConfigError, match="no valid `trained`"):
            read_runs([str(tmp_path)])


def test_runs_on_other_gpus_or_with_other_batches_are_noted(words: Words) -> None:
    first = RecordedRun(name="a", program="x", nodes=1, tasks=1, cpus=1, gpus=1, seconds=9, gpu="A100", batch=32)
    other = dataclasses.replace(first, name="b", gpus=2, seconds=5, gpu="P100", batch=64)
    said = notes((first, other))
    assert any("A100, P100" in note for note in said) and any("32, 64" in note for note in said)
    words("scaling", "\n".join(said))


def test_the_first_rank_of_each_node_records_the_gpus_until_it_ends(tmp_path: Path) -> None:
    """By bash: the words before the program of a Horovod job, with a stand-in for nvidia-smi of a node with four GPUs."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text('#!/bin/bash\n[ "$1" = -L ] && { printf "GPU\\n%.0s" 1 2 3 4; exit; }\necho "$*"; exec sleep 60\n')
    smi.chmod(0o755)
    text = render_user_job(job("sigma2-saga", "accel", "horovod", watch_gpus=True))
    assert "gpu.csv" not in text
    words = shlex.split(text[text.index("\nsrun ") :].partition("\n\n")[0].replace("\\\n", ""))
    watch = words[words.index("bash") : words.index("python")]
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PROVISION_OUTPUT": str(tmp_path)}
    for local in ("0", "1"):
        program = (
            f"for _ in $(seq 100); do ls {tmp_path}/gpu-*.csv >/dev/null 2>&1 && break; sleep 0.05; done; echo trained"
        )
        wait = program if local == "0" else "echo trained"
        done = subprocess.run(
            [*watch, "bash", "-c", wait],
            env={**environ, "SLURM_LOCALID": local},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "trained\n"
        (file,) = tmp_path.glob("gpu-*.csv")
    assert "--loop=1" in file.read_text()


def run(gpus: int, cpus: int, seconds: float, **more: Any) -> RecordedRun:
    """A run on one node."""
    given = {"name": f"g{gpus}-c{cpus}", "program": "train.py", "nodes": 1, "tasks": 1, **more}
    return RecordedRun(cpus=cpus, gpus=gpus, seconds=seconds, **given)


RUNS = [
    run(gpus, cpus, seconds, gpu_use=use / 100)
    for gpus, found in PAGE.items()
    for cpus, (seconds, use) in found.items()
]


def test_the_runs_of_the_page_have_the_speed_ups_of_the_page() -> None:
    found = points(RUNS)
    assert [one.run.workers for one in found] == [1, 2, 3, 4]
    assert [round(one.speed_up, 2) for one in found] == [1.0, 1.69, 2.26, 2.63]
    assert [round(one.efficiency * 100) for one in found] == [100, 85, 75, 66]
    assert [one.run.cpus for one in found] == [8, 16, 16, 16]


def test_every_run_has_a_row_and_the_best_runs_have_a_speed_up() -> None:
    rows = table(RUNS)
    assert len(rows) == len(RUNS)
    assert rows[0] == ("g1-c2", "1", "1", "2", "1", "574", "", "85%", "", "")
    assert rows[-2] == ("g4-c16", "1", "1", "16", "4", "214", "", "65%", "2.63", "66%")


def test_notes_name_a_slow_input_and_cpus_that_do_not_help(words: Words) -> None:
    first, *rest = notes(RUNS)
    assert "3 workers" in first and "2.26 times" in first and "66%" in first
    eight, sixteen = rest
    assert "8 CPUs" in eight and "1 worker" in eight
    assert "16 CPUs" in sixteen and "4 workers" in sixteen
    words("scaling", "\n".join([first, *rest]))
    assert notes([run(1, 8, 100), run(2, 8, 52)]) == ()


def test_images_per_second_are_preferred_if_every_run_has_them() -> None:
    runs = [run(1, 8, 10, images_per_second=100.0), run(2, 8, 10, images_per_second=180.0)]
    assert [round(one.speed_up, 2) for one in points(runs)] == [1.0, 1.8]
    assert [one.speed_up for one in points([runs[0], run(2, 8, 5)])] == [1.0, 2.0]


def test_the_first_run_can_have_several_workers_which_can_be_tasks() -> None:
    runs = [run(0, 4, 80, tasks=2), run(0, 4, 20, tasks=8, nodes=2, name="more")]
    assert [(one.run.workers, one.speed_up, one.efficiency) for one in points(runs)] == [(2, 1.0, 1.0), (8, 4.0, 1.0)]


def test_runs_of_two_programs_are_reported() -> None:
    assert "runs of 2 programs" in notes([run(1, 8, 10), run(2, 8, 5, program="other.py")])[0]


def test_the_drawing_has_every_point_and_a_dashed_ideal() -> None:
    tree = ElementTree.fromstring(drawing(RUNS))
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f"{space}circle")) == 4
    dashed, line = tree.findall(f"{space}polyline")
    assert dashed.get("stroke-dasharray")
    (x, y), *_, (end, high) = [map(float, one.split(",")) for one in str(line.get("points")).split()]
    ideal_end, ideal_high = map(float, str(dashed.get("points")).split()[-1].split(","))
    assert x < end == ideal_end
    assert y > high > ideal_high, "less than ideal is below it"


def test_a_run_is_read_with_the_mean_use_of_its_gpus() -> None:
    csv = "timestamp, index, utilization.gpu [%], utilization.memory [%]\n"
    csv += "2026/11/21 18:00:00.000, 0, 80 %, 40 %\n2026/11/21 18:00:00.001, 1, 60 %, 40 %\nx, 0, [N/A], [N/A]\n"
    record = RECORD | {"program": "t", "gpus": 2}
    found = read_run("7", record, {"seconds": 42.5}, csv)
    assert (found.gpu_use, found.seconds, found.workers) == (0.7, 42.5, 2)
    assert read_run("7", record, None, None).seconds == 9


def test_a_record_without_a_number_is_refused(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`7` .*`gpus`") as caught:
        read_run("7", RECORD | {"gpus": None}, None, None)
    words("scaling", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize("value", [0, -1, 1e-10, 1e300, 10**400, float("inf"), float("nan"), [1], True, "many"])
@pytest.mark.parametrize("key", ["nodes", "tasks", "seconds", "images_per_second"])
def test_a_number_that_no_run_can_have_is_refused_by_name(key: str, value: object) -> None:
    record = {**RECORD, "images_per_second": 1.0, key: value}
    with pytest.raises(ConfigError, match=rf"`7` .*`{key}`") as caught:
        read_run("7", record, record, None)
    assert caught.value.evidence[0].startswith("it is "), caught.value.evidence


def test_a_long_text_instead_of_the_use_of_gpus_is_read_in_linear_time() -> None:
    began = time.process_time()
    assert read_run("7", RECORD, None, "a" * 200_000).gpu_use is None
    # Linear: a millisecond. When every letter was a possible beginning, this took a minute.
    assert time.process_time() - began < 1


# The job and the verb


def recording() -> UserJob:
    """Greene's job on two GPUs, with a record."""
    site = profile("nyu-greene")
    return UserJob(
        kind="mirrored",
        site=site,
        arch=site.arch("gpu"),
        command="provision job mirrored --site nyu-greene --arch gpu --gpus 2 --record",
        module="tensorflow/2.15.1",
        modulepath="/m",
        gpus=2,
        runtime="container",
        arguments=("--epochs", "it's 3%"),
        watch_gpus=True,
        record=True,
    )


def test_the_recording_job_equals_its_golden_file(golden: Golden, shellcheck: str, tmp_path: Path) -> None:
    text = render_user_job(recording())
    golden("jobs/nyu-greene/gpu/mirrored-recorded.sh", text)
    (tmp_path / "job.sh").write_text(text)
    subprocess.run([shellcheck, "--shell=bash", str(tmp_path / "job.sh")], check=True)


def last_lines(job: UserJob) -> str:
    """The lines of a job that write its record."""
    lines = render_user_job(job).splitlines()
    (first,) = [index for index, line in enumerate(lines) if line.startswith("printf '{")]
    return "\n".join(lines[first:])


@pytest.mark.parametrize("argument", ["100%d", "a\\nb", 'say "no"', "it's", "é", "$HOME"])
def test_the_record_of_a_job_has_every_argument_as_it_is(argument: str, tmp_path: Path) -> None:
    text = last_lines(dataclasses.replace(recording(), arguments=(argument,)))
    environ = {**os.environ, "PROVISION_OUTPUT": str(tmp_path)}
    subprocess.run(["bash", "-c", f"started=0; SECONDS=7\n{text}"], env=environ, check=True)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["program"] == f"train.py {argument}"
    assert record["seconds"] in (7, 8)  # bash counts whole seconds of the clock


def test_the_verb_reads_the_record_that_the_job_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    last = last_lines(recording())
    for name, seconds in (("41", 10), ("42", 20)):
        (tmp_path / name).mkdir()
        text = f"unset SECONDS; started=0; SECONDS={seconds}\n{last}"  # bash counts no more
        subprocess.run(["bash", "-c", text], env={**os.environ, "PROVISION_OUTPUT": str(tmp_path / name)}, check=True)
    record = json.loads((tmp_path / "41/run.json").read_text())
    assert record["program"] == "train.py --epochs it's 3%"
    assert (record["gpus"], record["cpus"], record["tasks"]) == (2, 16, 1)
    record["gpus"] = 1
    (tmp_path / "42/run.json").write_text(json.dumps(record | {"seconds": 20}))
    words = ["scaling", str(tmp_path / "41"), str(tmp_path / "42"), "--plot", str(tmp_path / "plot.svg")]
    assert cli.main(words) == 0
    head, first, second, written = capsys.readouterr().out.splitlines()
    assert written == f"written: {tmp_path / 'plot.svg'}"
    assert head.split() == ["run", "nodes", "tasks", "CPUs", "GPUs", "seconds", "speed-up", "efficiency"]
    assert first.split() == ["42", "1", "1", "16", "1", "20", "1.00", "100%"]
    assert second.split() == ["41", "1", "1", "16", "2", "10", "2.00", "100%"]
    assert (tmp_path / "plot.svg").read_text().startswith("<svg ")


def test_a_run_has_the_tensorflow_and_nodes_of_its_record_and_the_batch_of_its_report(words: Words) -> None:
    record = RECORD | {"tensorflow": "2.15.1", "hosts": "g[1-2]"}
    first = read_run("41", record, {"batch": 32}, None)
    assert (first.framework, first.hosts, first.batch) == ("TensorFlow 2.15.1", "g[1-2]", 32)
    second = read_run("42", record | {"tensorflow": "2.11.1", "gpus": 2, "hosts": ""}, None, None)
    assert (second.hosts, second.batch) == (None, None)
    third = read_run("43", record | {"tensorflow": None, "gpus": 2}, None, None)
    (note,) = [note for note in notes([first, second]) if "TensorFlow" in note]
    assert "TensorFlow 2.11.1, TensorFlow 2.15.1" in note
    words("scaling", note)
    assert not any("TensorFlow" in note for note in notes([first, third]))


def test_runs_without_a_record_are_left_out_if_others_have_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    for name in ("41", "42", "43"):
        (tmp_path / name).mkdir()
    (tmp_path / "41/run.json").write_text(json.dumps(RECORD))
    (tmp_path / "43/run.json").write_text(json.dumps(RECORD | {"gpus": 2, "seconds": 5}))
    assert cli.main(["scaling", str(tmp_path / "41/run.json"), str(tmp_path / "42"), str(tmp_path / "43")]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["41", "43"]
    (note,) = [line for line in out.splitlines() if line.startswith("note: ")]
    assert str(tmp_path / "42") in note
    words("scaling", note)


@pytest.mark.parametrize(
    ("text", "runs", "plot", "message"),
    [
        (None, ["7"], "plot.svg", "is not the output folder of a job with `--record`"),
        (None, ["7", "7/"], "plot.svg", "one run is given twice"),
        (None, [], "plot.svg", "the following arguments are required: RUN"),
        ("[", ["7"], "plot.svg", "cannot be read"),
        (json.dumps(RECORD), ["7"], "x.png", "/x.svg`"),
    ],
)
def test_a_folder_without_a_run_is_refused_and_nothing_is_written(
    text: str | None, runs: list[str], plot: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "7").mkdir()
    if text:
        (tmp_path / "7/run.json").write_text(text)
    given = [f"{tmp_path}/{run}" for run in runs]
    assert cli.main(["scaling", *given, "--plot", str(tmp_path / plot)]) == EXIT_USAGE
    assert message in capsys.readouterr().err
    assert not (tmp_path / plot).exists()
