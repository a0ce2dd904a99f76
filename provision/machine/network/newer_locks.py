"""The newer locks of an upgrade, in a temporary folder: given, kept from an upgrade that did not end, or compiled."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.configuration.shipped import use_locks
from provision.machine.network.lock_compiler import compile_locks
from provision.machine.root.upgrades import text_of
from provision.model.facts import Interpreter


@contextlib.contextmanager
def newer_locks(
    stack: str, locks: Mapping[Path, tuple[str, Interpreter]], given: str | None, kept: Mapping[str, str]
) -> Iterator[Path]:
    """A folder with a newer lock for each lock of the configuration; everything inside uses them.

    `locks` are the locks with the name of their input, and the Python that they are for. `given` is a folder of the user, `kept`
    are texts by the names of the locks.

    Raises:
        ConfigError: the folder of the user lacks one, or it cannot be compiled.
    """
    with tempfile.TemporaryDirectory(prefix="provision-upgrade-") as scratch:
        for path, (source, interpreter) in locks.items():
            text = text_of(Path(given) / path.name) if given else kept.get(path.name)
            if text is not None:
                (Path(scratch) / path.name).write_text(text, encoding="utf-8")
            elif given:
                raise ConfigError(
                    f"`{given}` has no `{path.name}`",
                    hint=f"`provision lock --upgrade {stack}` compiles it",
                    kind="invalid-file",
                )
            else:
                compile_locks(interpreter, [path.parent / f"{source}.in"], upgrade=True, into=Path(scratch))
        with use_locks(scratch):
            yield Path(scratch)
