"""Commands that make virtual environments and install locks, with virtualenv and uv, or with the Python's own tools.

Every command refuses a package whose hash is not in the lock, and none resolves: the lock is complete.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """What installs packages into environments of `python`, and from which source.

    `own_venv`: virtualenv no longer has a pip for this Python. `wheelhouse`: the folder with everything that was fetched,
    the only source then.
    """

    python: str
    own_venv: bool
    tool_python: str
    uv: str | None
    wheelhouse: str | None

    @property
    def name(self) -> str:
        """The name of the installer, for people."""
        return f"{'uv' if self.uv else 'pip'}{' from the wheelhouse' if self.wheelhouse else ''}"

    def environment_argv(self, folder: str, *, pip: bool) -> tuple[str, ...]:
        """The command that makes an environment in `folder`, with its own pip if asked for."""
        if self.own_venv:
            # Without uv, the old Python's own pip has to install: the tool's does not run there.
            return (self.python, "-m", "venv", *(() if pip or not self.uv else ("--without-pip",)), folder)
        return (
            *(self.tool_python, "-m", "virtualenv", "--no-download", "--no-periodic-update"),
            *(() if pip else ("--no-seed",)),
            *("--python", self.python, folder),
        )

    def lock_argv(self, python: str, requirements: str) -> tuple[str, ...]:
        """The command that installs a lock into the environment of the interpreter `python`."""
        source = ("--no-index", "--find-links", self.wheelhouse) if self.wheelhouse else ()
        return self._install(python, *source, "--require-hashes", "--no-deps", "-r", requirements)

    def wheel_argv(self, python: str) -> tuple[str, ...]:
        """The command that installs a wheel, whose path is appended; it can be repeated."""
        return self._install(python, "--reinstall" if self.uv else "--force-reinstall", "--no-index", "--no-deps")

    def _install(self, python: str, *words: str) -> tuple[str, ...]:
        if self.uv:
            # Copies: by default uv links to its cache, and an edit of a package there would change the published one.
            return (self.uv, "pip", "install", "--link-mode", "copy", "--python", python, *words)
        # No bytecode here: the step `bytecode` compiles it once, with all cores, after uv and pip alike.
        pip = (python, "-m", "pip") if self.own_venv else (self.tool_python, "-m", "pip", "--python", python)
        return (*pip, "install", "--no-compile", "--no-input", *words)
