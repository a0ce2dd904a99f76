"""Listeners that write events to a file, for the person who follows a job from elsewhere, and that pass them on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from provision.errors import ConfigError
from provision.model.event import Event, Listener, emit_event


@contextlib.contextmanager
def to_file(path: Path) -> Iterator[Listener]:
    """A listener that appends to a file, progress at most once a second: it may be on a parallel file system."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"`{path}` cannot be written: {error.strerror}", hint="give `--events` another file"
        ) from error
    last = 0.0

    def listen(event: Event) -> None:
        nonlocal last
        if event.kind == "progress":
            if time.monotonic() - last < 1:
                return
            last = time.monotonic()
        # A build does not end because nobody can be told how it goes: the disk may be full, and the error says so itself.
        with contextlib.suppress(OSError):
            file.write(emit_event(event))
            file.flush()

    with file:
        yield listen


def to_all(*listeners: Listener) -> Listener:
    """A listener that passes everything on."""

    def listen(event: Event) -> None:
        for one in listeners:
            one(event)

    return listen
