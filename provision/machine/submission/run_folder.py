"""The output folder of a job with `--record`: the speed of its run, for a table of several runs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provision.errors import ConfigError
from provision.jobs.scaling import RecordedRun, read_run
from provision.machine.files.disk import is_file, read_given

SWEEP = "`provision job mirrored --sweep 1,2,4 --submit --site SITE` submits such jobs"


def read_runs(folders: Sequence[str]) -> tuple[list[RecordedRun], list[str]]:
    """The runs in these folders, or of these files `run.json`; and the folders without one, if others have one.

    With `runs/*` a shell also gives the folders of jobs that failed, still run, or record nothing.

    Raises:
        ConfigError: a folder is given twice, or none has a record, or a record is damaged.
    """
    paths = [path.parent if path.name == "run.json" else path for path in (Path(folder) for folder in folders)]
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise ConfigError("one run is given twice", hint="give each run once: `provision scaling RUN RUN`")
    recorded = [path for path in paths if is_file(str(path / "run.json"))]
    return [_read(path) for path in recorded or paths], [str(path) for path in paths if path not in recorded]


def _read(folder: Path) -> RecordedRun:
    record = _json(folder / "run.json")
    if record is None:
        raise ConfigError(
            f"`{folder}` is not the output folder of a job with `--record`, or that job failed",
            evidence=[f"looked for: {folder / 'run.json'}"],
            hint=SWEEP,
        )
    # One of a job without a launcher, or those of all nodes.
    files = [str(path) for path in sorted(folder.glob("gpu*.csv")) if is_file(str(path))]
    text = "\n".join(read_given(path, "use of the GPUs", errors="replace") for path in files)
    return read_run(folder.name or str(folder), record, _json(folder / "report.json"), text or None)


def _json(path: Path) -> dict[str, Any] | None:
    if not is_file(str(path)):
        return None
    text = read_given(str(path), "record")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"`{path}` cannot be read", evidence=[str(error)], hint="run that job again") from error
    if not isinstance(value, dict):
        raise ConfigError(f"`{path}` is not a JSON object", hint='an example: `{"images_per_second": 1234.5}`')
    return value
