"""A module that cannot be loaded: which modules are available instead, and which of them is the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import Words
from parts.profiles import SITES, profile
from provision import cli
from provision.launch.modules import find_newest_module

EASYBUILD = (
    "TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4",
    "TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0",
    "TensorFlow/2.9.1-foss-2022a-CUDA-11.7.0",
    "TensorFlow/2.15.1-foss-2023a",
)


@pytest.mark.parametrize(
    ("wanted", "available", "newest"),
    [
        ("gcc/99", ("gcc/9.3.0", "gcc/12.2.0", "gcc/8.3.0"), "gcc/12.2.0"),
        ("gcc", ("gcc/9.3.0", "gcc/12.2.0"), "gcc/12.2.0"),
        ("TensorFlow/2.99", EASYBUILD, "TensorFlow/2.15.1-foss-2023a"),
        ("TensorFlow/2.12.0-foss-2022a-CUDA-11.7.0", EASYBUILD, "TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0"),
        ("TensorFlow/2.12.0-foss-2024a", EASYBUILD, "TensorFlow/2.15.1-foss-2023a"),
        (
            "tensorflow/intel-2.5.0",
            ("tensorflow/intel-head", "tensorflow/intel-2.2.0-py37"),
            "tensorflow/intel-2.2.0-py37",
        ),
        (
            "datascience/tensorflow-2.9",
            ("datascience/horovod-19.0", "datascience/tensorflow-2.3"),
            "datascience/tensorflow-2.3",
        ),
        ("datascience/keras-3", ("datascience/horovod-19.0",), None),
        ("gcc/99", (), None),
    ],
)
def test_the_newest_module_has_the_same_name_and_generation(
    wanted: str, available: tuple[str, ...], newest: str | None
) -> None:
    assert find_newest_module(wanted, available) == newest


def test_a_plan_lists_the_available_modules_and_names_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    """The stand-in for the module system marks the default as Lmod does, and as Environment Modules does."""
    listed = "/site/modules:\\nPrgEnv-gnu/\\nPrgEnv-gnu/8.3.3\\nPrgEnv-gnu/8.10.1(default)\\nPrgEnv-gnu/8.4.0 <D>\\n"
    init = tmp_path / "init"
    init.write_text(f'module() {{ case "$*" in *avail*) printf "{listed}" ;; load*) return 1 ;; esac; }}\n')
    path = tmp_path / Path(profile("alcf-polaris").origin).name
    source = (SITES / path.name).read_text(encoding="utf-8")
    path.write_text(source.replace("[modules]\n", f'[modules]\ninit = "{init}"\n'))
    assert cli.main(["plan", "--site", str(path), "--stack", "tensorflow-2.15.1-gpu"]) == 1
    err = capsys.readouterr().err
    hint = err.splitlines()[-1]
    words("plan", hint)
