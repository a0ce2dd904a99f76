"""Listeners that write events to a file, for commands that follow the job, and that pass events on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.files.beneath import open_own
from provision.machine.programs.secrets_here import secrets_here
from provision.machine.root.store import Store
from provision.machine.sharing.locks import HeldLock
from provision.model.event import Event, Listener, emit_event
from provision.model.layout import EnvironmentId


@contextlib.contextmanager
def to_file(path: Path) -> Iterator[Listener]:
    """A listener that writes events to a file.

    It writes progress at most once a second, because the file may be on a parallel file system, and no secrets of this run.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open_own(path)
    except OSError as error:
        raise ConfigError(
            f"`{path}` cannot be written: {error.strerror}", hint="pass another file to `--events`"
        ) from error
    last = 0.0

    def listen(event: Event) -> None:
        nonlocal last
        if event.kind == "progress":
            if time.monotonic() - last < 1:
                return
            last = time.monotonic()
        # A build must not fail because its events cannot be written. If the disk is full, the build reports that itself.
        with contextlib.suppress(OSError):
            secrets = secrets_here()
            event = replace(event, text=secrets.hide(event.text), error=secrets.hide_in(event.error))
            file.write(emit_event(event))
            file.flush()

    try:
        yield listen
    finally:
        # What could not be written is tried again, and its error would hide the one that ends the build.
        with contextlib.suppress(OSError):
            file.close()


@contextlib.contextmanager
def shown_to_waiting(store: Store, env: EnvironmentId, lock: HeldLock) -> Iterator[Listener]:
    """A listener that writes the events of a build for the processes that wait for its lock. The files of earlier builds go."""
    path = Path(store.layout.events(env, str(lock.says["token"])))
    store.shared.make(path.parent)
    for old in path.parent.glob("events-*.jsonl"):
        store.remove(str(old))
    with to_file(path) as listen:
        yield listen


def to_all(*listeners: Listener) -> Listener:
    """A listener that passes every event to all of these listeners."""

    def listen(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return listen
