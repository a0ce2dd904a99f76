"""A Python program that has imported everything already: each run is a fork with a folder, variables and a umask of its own.

Starting a Python that imports the tool takes longer than most of what the tests let it do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TIME_LIMIT_S = 120
# The program in the first argument defines `main`, which gets the words of a run and returns its exit code.
SERVER = """
import json, os, signal, sys, traceback
program, limit_s = sys.argv[1:]
exec(program)
for line in sys.stdin:
    run = json.loads(line)
    files = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if not child:
        signal.alarm(int(limit_s))
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
            os.dup2(file, number)
        os.umask(run["umask"])
        code = 1
        try:
            if run["folder"]:
                os.chdir(run["folder"])
            os.environ.clear()
            os.environ.update(run["environ"])
            code = main(run["words"])
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        with open(file, encoding="utf-8") as written:
            written.seek(0)
            texts.append(written.read())
    print(json.dumps([code, *texts]), flush=True)
"""


class Forks:
    """The runs of one program; `argv` are the words before the Python that starts it, such as those of `setpriv`."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], program: str, *options: str) -> None:
        self.environ = dict(environ)
        self.process = subprocess.Popen(
            [*argv, sys.executable, *options, "-c", SERVER, program, str(TIME_LIMIT_S)],
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *words: str, umask: int = 0o022, folder: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What the program prints with these words, and its exit code; its stdin is empty."""
        assert self.process.stdin is not None and self.process.stdout is not None
        run = {"words": words, "umask": umask, "folder": folder and str(folder), "environ": environ or self.environ}
        print(json.dumps(run), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process that forks has ended"
        return subprocess.CompletedProcess(words, *json.loads(line))

    def close(self) -> None:
        """End the process that forks."""
        self.process.communicate()
