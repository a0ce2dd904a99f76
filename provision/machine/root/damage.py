"""What is damaged of one environment: files that were cut, emptied, edited, or replaced by a folder.

`find_damage` looks, `repair` moves the damaged files aside, so that the planner sees that they are missing and their steps run
again. If the record is sound, it has the content of all others, and they are written again from it: an environment that users
have loaded is not built again because a receipt is damaged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import StoreError
from provision.machine.files.disk import disk_error, json_object, size_of, write
from provision.machine.root.checking import read_head
from provision.machine.root.sealing import refresh_head
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan, fingerprint
from provision.model.proof_result import ProofResult
from provision.model.receipt import Receipt
from provision.model.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A file or folder that is damaged, why we think so, and its content if it is known from the record."""

    path: Path
    reason: str
    content: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """What was found, as a phrase."""
        return f"damaged: `{self.path}` ({self.reason})"


def find_damage(store: Store, plan: Plan) -> list[Damage]:
    """What is damaged of the plan's environment and of its wheel; nothing if another admin owns the environment."""
    env, records = plan.environment, Path(store.layout.records_folder(plan.environment))
    found = [*_damaged_wheel(store, plan.abi_key)]
    if not records.is_dir() or not os.access(records, os.W_OK):
        return found
    try:
        record = store.record(env)
    except StoreError as error:
        if error.kind == "newer":
            raise
        record, copy = _copy_of_record(store, env)
        found.append(Damage(path=records / "record.json", reason=" ".join(error.evidence), content=copy))

    if record is None and not found and not os.path.lexists(records / "record.json"):
        record, copy = _copy_of_record(store, env)
        if copy is not None:
            found.append(Damage(path=records / "record.json", reason="it is missing", content=copy))

    def look(path: Path, read: Callable[[Mapping[str, Any]], object], content: Mapping[str, Any] | None) -> None:
        try:
            text = store.shared.read(path)
            if text is None:
                return
            read(json_object(text))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or ("it is empty" if not size_of(path) else str(error))
            found.append(Damage(path=path, reason=reason, content=content))

    receipts = records / "receipts"
    for step in sorted(path.stem for path in receipts.glob("*.json")):
        look(receipts / f"{step}.json", lambda data, step=step: _read_receipt(data, step), _receipt_of(record, step))  # type: ignore[misc]
    look(records / "verdict.json", ProofResult.from_dict, record.verdict.to_dict() if record else None)
    look(records / "plan.json", lambda data: _read_identity(data, env), plan.identity)
    if not os.path.lexists(records / "verdict.json") and (record or (receipts / "proof.json").exists()):
        content = record.verdict.to_dict() if record else None
        found.append(Damage(path=records / "verdict.json", reason="it is missing", content=content))
    return found


def repair(store: Store, plan: Plan) -> list[str]:
    """Move what is damaged aside, and write again what is known. Needs the lock of the environment.

    Returns a line for each damage: what was found, and what was done.

    Raises:
        StoreError: a file cannot be moved or written.
    """
    lines = []
    for damage in find_damage(store, plan):
        path, done = damage.path, "its step runs again"
        try:
            if path.is_relative_to(store.root / "wheels"):
                store.remove(str(path))
                done = "removed; it is compiled again when it is needed"
            elif os.path.lexists(path):
                aside = path.with_name(f"{path.name}.damaged.{os.urandom(3).hex()}")
                path.rename(aside)
                done = f"moved to `{aside.name}`; its step runs again"
        except OSError as error:
            raise disk_error(error, path) from error
        if damage.content is not None:
            write(path, json.dumps(damage.content, indent=1) + "\n")
            done = done.replace("its step runs again", "written again")
        lines.append(f"{damage.text}: {done}")
    if lines:
        refresh_head(store, plan.environment)
    return lines


def _copy_of_record(store: Store, env: EnvironmentId) -> tuple[Record | None, Mapping[str, Any] | None]:
    """The record as the head of the manifest has it, as value and as JSON; None if that is missing or damaged too."""
    try:
        copy = read_head(store, env).record
        return Record.from_dict(copy), copy
    except (OSError, ValueError):
        return None, None


def _damaged_wheel(store: Store, key: str | None) -> list[Damage]:
    """The cached wheel of this key, if there is one and it is damaged."""
    folder = Path(store.layout.wheel(key or ""))
    if key is None or not os.path.lexists(folder):
        return []
    try:
        store.wheels.find(key)
    except StoreError as error:
        return [Damage(path=folder, reason=" ".join(error.evidence))]
    return []


def _read_receipt(data: Mapping[str, Any], step: str) -> Receipt:
    receipt = Receipt.from_dict(data)
    if receipt.step != step:
        raise ValueError(f"it is the receipt of `{receipt.step}`")
    return receipt


def _read_identity(data: Mapping[str, Any], env: EnvironmentId) -> None:
    if not all(isinstance(value, str) for value in data.values()) or fingerprint(data) != env.base:
        raise ValueError("it is not the identity of this environment")


def _receipt_of(record: Record | None, step: str) -> dict[str, Any] | None:
    """The receipt of a step, as far as the record has it."""
    if record is None or step not in record.seconds:
        return None
    details: dict[str, Any] = {}
    if step == "inspect":
        details = {"checks": [check.to_dict() for check in record.checks], "versions": record.versions}
    if step == "proof":
        details = {"summary": record.proof}
    return Receipt(step=step, seconds=record.seconds[step], host=record.host, details=details).to_dict()
