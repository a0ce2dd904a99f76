"""Paths that are not there, and that the exception does not name: the place in Python shows what they were."""

from __future__ import annotations

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.tracebacks import Traceback

# What Python says without a path, the function of `subprocess` that starts a program, and how the working folder is asked for.
NOT_THERE, STARTS, ASKS = "[Errno 2] No such file or directory", "_execute_child", "getcwd()"


def gone_path(traceback: Traceback) -> KnownFailure | None:
    """The working folder, or a program that the program starts, if one of them is missing; None otherwise."""
    if traceback.exception not in ("FileNotFoundError", "OSError") or not traceback.frames:
        return None
    if ASKS in traceback.code:
        return _failure(
            "working-folder-gone",
            "the working folder of the program is gone: it was removed or made again while the program ran, or its file system "
            "does not answer",
            "start the program again from a folder that stays (`cd FOLDER` in the job script); `ls -ld FOLDER` on the node",
        )
    if traceback.frames[-1].function == STARTS and traceback.text == NOT_THERE:  # Python 2 does not say which
        return _failure(
            "started-program-missing",
            "the program starts another one that is not found: its module or environment is not loaded, it is not installed "
            "here, or the folder in which it should start is not there",
            "the lines of the traceback name the call: `command -v NAME` with the modules of the job shows whether it is found",
        )
    return None


def _failure(name: str, cause: str, hint: str) -> KnownFailure:
    return KnownFailure(
        id=name,
        message="",
        match=(),
        cause=cause,
        hint=hint,
        source="the traceback in the log",
        weight=WEIGHTS["error"],
    )
