"""The library in which a program crashed, from the list of calls below the signal."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.crash_frames import crash_place
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

OPEN_MPI = """\
[n17:07661] *** Process received signal ***
[n17:07661] Signal: Segmentation fault (11)
[n17:07661] Signal code: Address not mapped (1)
[n17:07661] Failing at address: 0x2ae83e011880
[n17:07661] [ 0] /usr/lib64/libpthread.so.0(+0xf5e0)[0x2ae7a1f685e0]
[n17:07661] [ 1] /opt/flurble/lib/libflurble.so.20(+0x133140)[0x2ae831b97140]
[n17:07661] [ 2] /opt/flurble/lib/libflurble.so.20(flurble_find+0x2a)[0x2ae831aa022a]
[n17:07661] [ 3] /opt/other/lib/libother.so.1(other_call+0x75)[0x2ae831b97875]
"""
UCX = """\
[n17:9444 :0:9444] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)
==== backtrace ====
    0  /opt/ucx/lib/libucs.so.0(+0x23f34) [0x2af2ba456f34]
    1  /opt/ucx/lib/libflurble.so.0(flurble_find+0x10) [0x2af2b9bf9639]
"""
GDB = """\
Program terminated: Segmentation fault
#0  0x00007ffff7a42428 in raise () from /lib64/libc.so.6
#1  0x00007ffff7a44024 in flurble_find (part=3) from /opt/flurble/lib/libflurble.so.20
"""


INTEL = """\
forrtl: severe (174): SIGSEGV, segmentation fault occurred
Image              PC                Routine            Line        Source
flux               00000000008181DA  Unknown               Unknown  Unknown
libpthread-2.17.s  00007FB4D974B630  Unknown               Unknown  Unknown
libflurble.so.20.  00007FB4D9CC2AC5  flurble_find          Unknown  Unknown
"""


@pytest.mark.parametrize("text", [OPEN_MPI, UCX, GDB, INTEL], ids=["Open MPI", "UCX", "gdb", "Intel"])
def test_the_first_library_that_is_not_of_the_system_is_named(text: str) -> None:
    """With its function, if a line of the same library has one."""
    known = explain([f"reading data\n{text}".encode()], known_failures()).known
    assert known is not None and known.failure.crashes
    assert "libflurble.so" in known.cause and "flurble_find()" in known.cause
    assert "libflurble.so" in known.hint


def test_without_a_list_of_calls_no_library_is_named() -> None:
    """Only the signal is known."""
    known = explain([b"reading data\nSegmentation fault\n"], known_failures()).known
    assert known is not None and "it was in" not in known.cause and "…" not in known.cause


def test_a_list_far_below_belongs_to_something_else() -> None:
    """Other lines end a list."""
    frame = "/opt/lib/libflurble.so.2(flurble_find+0x2a)[0x2a]"
    assert crash_place([*["a line"] * 3, frame])["place"] == "`flurble_find()` of `libflurble.so.2`"
    assert crash_place([*["a line"] * 9, frame]) == {}


def test_only_libraries_of_the_system_name_nothing() -> None:
    """The language crashed, or what calls the handler of the signal."""
    assert crash_place(["/lib64/libc.so.6(abort+0x2a)[0x2a]", "/env/lib/libpython3.11.so.1.0(main+0x2a)[0x2a]"]) == {}


def test_a_function_of_another_library_is_not_put_beside_the_first_one() -> None:
    """The first library has no names."""
    frames = ["/opt/libflurble.so.2(+0x2a)[0x2a]", "/opt/libother.so.1(other_call+0x2a)[0x2a]"]
    assert crash_place(frames) == {"place": "`libflurble.so.2`", "library": "libflurble.so.2"}


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        ("_ZN5Eigen4PoolE", "Eigen::Pool"),
        ("_ZNK4flux4PartIfE3runEv", "flux::Part"),
        ("_ZNSt6vectorIdSaIdEE9push_backEOd", "std::vector"),
        ("_Z4calli", "call"),
        ("_Zurich", "_Zurich"),
    ],
)
def test_a_name_of_cpp_is_readable(function: str, shown: str) -> None:
    """As far as it has plain parts."""
    assert crash_place([f"/opt/libflurble.so.2({function}+0x2a)[0x2a]"])["place"].startswith(f"`{shown}()`")


def test_frames_of_ucx_without_a_library_name_the_function() -> None:
    """UCX prints the function, and sometimes the place in a source; what handles the signal is first."""
    frames = [" 0 0x0000000000085f0c __GI___libc_free()  :0", " 0 0x0000000000033280 killpg()  ???:0"]
    assert crash_place([*frames, " 1 0x00000000000fef1f flurble_return()  ???:0"]) == {"place": "`flurble_return()`"}
    own = crash_place([*frames, " 1 0x00000000004006d6 compute_flux()  /home/ada/flux.c:12"])
    assert own == {"place": "`compute_flux()` at `/home/ada/flux.c:12`", "program": "/home/ada/flux.c:12"}


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (
            [
                "[ 1] ./flux(compute_flux._omp_fn.0+0x2a)[0x4006d6]",
                "[ 2] /lib64/libgomp.so.1(GOMP_parallel+0x46)[0x2a]",
            ],
            "`compute_flux._omp_fn.0()` of `flux`",
        ),
        (
            [
                "#0  0x00007ffff7a42428 in raise () from /lib64/libc.so.6",
                "#1  0x00000000004006d6 in compute_flux (part=3) at flux.c:12",
                "#2  0x00007ffff5a44024 in starpu_task_run () from /opt/lib/libstarpu-1.3.so.4",
            ],
            "`compute_flux()` at `flux.c:12`",
        ),
    ],
    ids=["Open MPI", "gdb"],
)
def test_a_function_of_the_program_itself_is_named_before_the_library_that_called_it(
    frames: list[str], place: str
) -> None:
    """The hint says to look at it, and not to try another version of the library."""
    text = "reading data\nProgram terminated: Segmentation fault\n" + "".join(f"{frame}\n" for frame in frames)
    known = explain([text.encode()], known_failures()).known
    assert known is not None and known.cause.endswith(f"it was in {place}")
    assert known.hint.startswith(f"look at {place} in your program; ")


def test_the_interpreter_is_not_the_program_that_crashed() -> None:
    """Python calls the library, and other programs call Python."""
    frames = ["[ 1] python(_PyEval_EvalFrameDefault+0x5d)[0x4f]", "[ 2] /opt/libflurble.so.2(flurble_find+0x2a)[0x2a]"]
    assert crash_place(frames)["library"] == "libflurble.so.2"


def test_frames_of_another_rank_are_not_those_of_the_crash() -> None:
    """With `--tag-output`, its list may stand directly below the signal."""
    lines = (
        "[1,0]<stderr>:[n17:07661] Signal: Segmentation fault (11)",
        "[1,1]<stderr>:[n18:07662] [ 1] /opt/libother.so.1(other_call+0x75)[0x2a]",
        "[1,0]<stderr>:[n17:07661] [ 1] /opt/libflurble.so.20(flurble_find+0x2a)[0x2a]",
    )
    known = explain(["\n".join((*lines, "")).encode()], known_failures()).known
    assert known is not None and "libflurble.so.20" in known.cause
