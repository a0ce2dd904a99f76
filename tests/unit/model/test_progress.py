"""What a program does now, read from what it prints: counts stay, noise changes nothing."""

from __future__ import annotations

import pytest

from golden_files import Words
from provision.model.progress import Doing, package_line, read_progress


def last(*lines: str) -> str:
    """What is shown after a program has printed these lines."""
    doing = Doing()
    for line in lines:
        doing = read_progress(line, doing)
    return str(doing)


NINJA = "  [3/27] Building CXX object horovod/common/CMakeFiles/common.dir/group_table.cc.o"
UNITY = "[2/9] Building CXX object horovod/tensorflow/CMakeFiles/tensorflow.dir/Unity/unity_0_cxx.cxx.o"
LINK = "[27/27] Linking CXX shared library horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (NINJA, "file 3 of 27, group_table.cc"),
        (UNITY, "file 2 of 9, unity_0_cxx.cxx"),
        (LINK, "file 27 of 27, mpi_lib.cpython-311-x86_64-linux-gnu.so"),
        ("  -- Configuring done (2.3s)", "configuring"),
        ("package 12 of 44", "package 12 of 44"),
        ("Downloading tensorflow-cpu (264.1MiB)", "downloading tensorflow-cpu (264.1MiB)"),
        ("Prepared 44 packages in 12.31s", "installing"),
        (
            "  Downloading cmake-3.31.10-py3-none-manylinux_2_17_x86_64.whl (27.8 MB)",
            "downloading cmake-3.31.10 (27.8 MB)",
        ),
        ("Collecting cmake==3.31.10 (from -r /x/build.txt (line 3))", "reading cmake==3.31.10"),
        ("Processing /opt/wheels/ninja-1.13.2-py3-none-any.whl (from -r x)", "reading ninja-1.13.2"),
        ("Installing collected packages: ninja, cmake", "installing"),
        ("epoch 2/4  loss 0.3121  train accuracy 0.913  1.02 s", "epoch 2 of 4, loss 0.3121"),
        ("[0] epoch 2/4  loss of rank 0 0.3121  1.02 s", "epoch 2 of 4, loss 0.3121"),
        ("Epoch 1/3", "epoch 1 of 3"),
        ("rank 0 of 2  30000 images per rank  loss before training 2.3016", "training"),
        ("test accuracy 0.9562  1476 images/s over all ranks", "test accuracy 0.9562"),
        ("gradients        passed      1.2 s  worst difference 1.0e-07", "check 1, gradients passed"),
        ("reduction stalled; once more with RING", "reduction stalled; once more with RING"),
    ],
)
def test_a_known_line_of_output_gives_progress(line: str, text: str) -> None:
    assert last(line) == text
    assert last(f"\x1b[1m{line}\x1b[0m") == text


@pytest.mark.parametrize(
    "noise",
    [
        "",
        "  | ^~~~~~~~~~~~~",
        "/x/common.cc:12:3: warning: unused variable 'x' [-Wunused-variable]",
        "I0000 00:00:1795302236.353468 5 port.cc:153] oneDNN custom operations are on.",
        "2026-11-21 22:33:50.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
        "Uninstalled 1 package in 10ms",
        " + cmake==3.31.10",
        "Resolved 44 packages in 186ms",
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
    ],
)
def test_unknown_lines_do_not_change_the_progress(noise: str) -> None:
    assert last(noise) == ""
    assert last(NINJA, noise).endswith("3 of 27, group_table.cc")


def test_the_progress_is_cleared_when_an_installer_ends() -> None:
    assert last("Downloading cmake (26.5MiB)", " Downloaded cmake") == ""
    assert last("Downloading cmake (26.5MiB)", " Downloaded ninja") == "downloading cmake (26.5MiB)"
    assert last("Prepared 2 packages in 1.4s", "Installed 2 packages in 4.22s") == ""


def test_packages_are_counted_while_they_are_installed(words: Words) -> None:
    lines = ("Prepared 44 packages in 12s", package_line(1, 44), "Uninstalled 1 package in 10ms", package_line(9, 44))
    words("build", last(*lines))
    words("build", last(*lines, "Installed 44 packages in 4s"))


def test_checks_of_the_numerical_proof_are_counted(words: Words) -> None:
    lines = ("gradients   passed   1.2 s", "I0000 noise", "sparse gradients   skipped   0.0 s  one rank")
    words("build", last(*lines))
