"""The tool as its users start it: a process of its own, with an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parts.json_page import faults, result_faults
from parts.modules import ModuleTree

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Tool:
    """`provision` with these environment variables in place of the caller's own settings.

    `module` is what Python runs: the tool, or `parts.tiny_tool`, the tool with small packages.
    """

    root: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    module: str = "provision"

    def env(self, **more: str) -> dict[str, str]:
        """The whole environment of the process."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PROVISION_", "SLURM_", "LMOD_", "NO_COLOR"))}
        return {**kept, "PROVISION_ROOT": str(self.root), **self.environ, **more}

    def argv(self, *words: str) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", self.module, *words]

    def run(self, *words: str, timeout_s: float = 900, **env: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever that is."""
        return subprocess.run(
            self.argv(*words),
            env=self.env(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def good(self, *words: str, **env: str) -> str:
        """Run it; it must end well. Returns stdout."""
        done = self.run(*words, **env)
        assert done.returncode == 0, f"{words} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *words: str, **env: str) -> dict[str, Any]:
        """Run it with `--json`; returns the envelope, also of a failure."""
        done = self.run(*words, "--json", **env)
        envelope: dict[str, Any] = json.loads(done.stdout)
        assert faults(envelope, "The envelope") == []
        if envelope["ok"]:
            found = result_faults(words, envelope["result"])
            assert not found, found
        assert envelope["ok"] is (done.returncode in (0, 4)), done.stdout
        return envelope

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start it and go on."""
        return subprocess.Popen(
            self.argv(*words),
            env=self.env(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def messages_of(proof: Mapping[str, Any]) -> dict[str, str]:
    """The message of each check, by name, from what `provision test --json` printed; the proof must have passed."""
    assert proof["ok"], proof
    return {check["name"]: check["message"] for check in proof["result"]["verdict"]["checks"]}


def site_file(folder: Path, shipped: str, *replacements: tuple[str, str], name: str | None = None) -> str:
    """A copy of a shipped site file with these pieces of text replaced; each must be in it. Returns its path."""
    text = (REPOSITORY / "sites" / f"{shipped}.toml").read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text, f"{old!r} is not in sites/{shipped}.toml"
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    text = text.replace(f'name = "{shipped}"', f'name = "{name or shipped}"', 1)
    path = folder / f"{name or shipped}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def module_init(path: object) -> tuple[str, str]:
    """The file that starts the module system, for a profile that has it from what it extends."""
    return ("[scheduler]\n", f'[modules]\ninit = "{path}"\n\n[scheduler]\n')


def real_modules(tree: ModuleTree) -> tuple[tuple[str, str], ...]:
    """The module names of the example site, as this machine's compiler and MPI have them."""
    return (("gcc/12.2.0", tree.gcc), ("mpich/4.0.2", tree.mpich), ("python/3.11", tree.python))
