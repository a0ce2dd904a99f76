"""Paths that are not there, and that the exception does not name: the place in Python shows what they were."""

from __future__ import annotations

from provision.knowledge.failures.tracebacks import Traceback

# What Python says without a path, the function of `subprocess` that starts a program, and how the working folder is asked for.
NOT_THERE, STARTS, ASKS = "[Errno 2] No such file or directory", "_execute_child", "getcwd()"


def gone_path(traceback: Traceback) -> tuple[str, str, str] | None:
    """The ID, cause and hint if the working folder is missing, or a program that the program starts; None otherwise."""
    if traceback.exception not in ("FileNotFoundError", "OSError") or not traceback.frames:
        return None
    if ASKS in traceback.code:
        return (
            "working-folder-gone",
            "the working folder of the program is gone: it was removed or made again, or its file system does not answer",
            "start the program again from a folder that stays (`cd FOLDER` in the job script); `ls -ld FOLDER` on the node",
        )
    if traceback.frames[-1].function == STARTS and traceback.text == NOT_THERE:  # Python 2 does not say which
        return (
            "started-program-missing",
            "the program starts another one that is not found: it is not installed, its module not loaded, or its folder gone",
            "the lines of the traceback name the call: `command -v NAME` with the modules of the job shows whether it is found",
        )
    return None
