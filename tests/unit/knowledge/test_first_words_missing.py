"""Logs that begin or end in the middle of a message, and words that only look like the cause."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

CASES = {
    # The exception that the program handled is above the beginning of the log.
    "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
    '  File "main.py", line 851, in <module>\n    if trainer.global_rank == 0:\n'
    "NameError: name 'trainer' is not defined": ("unknown", "error-in-program"),
    # The same without the words of Python: the program's own mistake.
    "Traceback (most recent call last):\n"
    '  File "main.py", line 851, in <module>\n    if trainer.global_rank == 0:\n'
    "NameError: name 'trainer' is not defined": ("known", "error-in-program"),
    # CMake goes on to write files.
    "-- Configuring done\nCMake Error at src/CMakeLists.txt:25 (add_executable):\n  Cannot find source file:\n\n"
    "    gpu_macros.cpp\n\n\n-- Generating done\n-- Build files have been written to: /home/ada/build": (
        "known",
        "cmake-error",
    ),
    # What follows from a rank that was killed.
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n"
    "[proxy:0:0@n1.local] HYD_pmcd_pmip_control_cmd_cb (./pm/pmiserv/pmip_cb.c:883): assert (!closed) failed\n"
    "[proxy:0:0@n1.local] HYDT_dmxu_poll_wait_for_event (./tools/demux/demux_poll.c:77): callback returned error status\n"
    "[proxy:0:0@n1.local] main (./pm/pmiserv/pmip.c:210): demux engine error waiting for event": (
        "known",
        "killed-with-others",
    ),
    "An error occurred while installing tensorflow-gpu==1.10.1\n"
    '[pipenv.exceptions.InstallError]:   File "/usr/lib/python3.7/site-packages/pipenv/core.py", line 1874, in do_install\n'
    "[pipenv.exceptions.InstallError]:       keep_outdated=keep_outdated": ("unknown", ""),
}
WARNING = """-- Could NOT find SZIP (missing: SZIP_DIR)
CMake Warning at CMakeFilters.cmake:159 (find_package):
  By not providing "FindSZIP.cmake" in CMAKE_MODULE_PATH this project has
  asked CMake to find a package configuration file provided by "SZIP", but
  CMake did not find one.

  Could not find a package configuration file provided by "SZIP" with any of
  the following names:

    SZIPConfig.cmake
    szip-config.cmake

Call Stack (most recent call first):
  CMakeLists.txt:10 (include)
"""


@for_each("text", list(CASES))
def test_what_a_cut_log_shows(text: str) -> None:
    found = explain([f"{text}\n".encode()], known_failures())
    verdict, name = CASES[text]
    assert found.verdict == verdict, found.known
    assert [finding.failure.id for finding in found.findings[:1]] == [name][: len(name)], found.findings


def test_a_warning_of_cmake_with_several_paragraphs_is_a_warning_to_its_end() -> None:
    assert explain([WARNING.encode()], known_failures()).verdict == "healthy"
    assert explain([WARNING.replace("CMake Warning", "CMake Error").encode()], known_failures()).verdict == "known"
