"""Small environments that look as if they had passed their proof, each with files of two packages, without building one."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from parts.records import DESCRIPTION, PROOF
from provision.machine.root.sealing import seal
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.record import Receipt, Record

SITE = "lib/python3.11/site-packages"


def put_unproved(store: Store, env: EnvironmentId, *, passed: bool = True) -> Path:
    """An environment with everything but its record; returns its prefix."""
    prefix, records = Path(store.layout.prefix(env)), Path(store.layout.records_folder(env))
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to(sys.executable)
    for package, files in (("tensorflow", ("__init__.py", "ops.so")), ("six", ("six.py",))):
        folder = prefix / SITE / package if package != "six" else prefix / SITE
        folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            (folder / name).write_text(f"{package} {name} of {env}\n")
        info = prefix / SITE / f"{package}-1.0.dist-info"
        info.mkdir()
        listed = [f"{package}/{name}" if package != "six" else name for name in files]
        (info / "RECORD").write_text("".join(f"{name},,\n" for name in (*listed, f"{info.name}/RECORD")))
    records.mkdir()
    modulefile = dataclasses.replace(
        DESCRIPTION.modulefile,
        version=env.version,
        environment=str(env),
        prefix=str(prefix),
        prepend=(("PATH", f"{prefix}/bin"),),
        environ=(("PROVISION_ENVIRONMENT", str(env)),),
    )
    description = dataclasses.replace(DESCRIPTION, modulefile=modulefile)
    (records / "description.json").write_text(json.dumps(description.to_dict()))
    (records / "plan.json").write_text(json.dumps({"python": "3.11.7"}))
    verdict = PROOF.to_dict()
    if not passed:
        verdict["checks"][0] |= {"passed": False, "message": "rank 1 ended with code 1"}
        verdict["passed"] = False
    (records / "verdict.json").write_text(json.dumps(verdict))
    for step in ("create", "install", "proof"):
        store.write_receipt(env, Receipt(step=step, seconds=1.5, host="n1"))
    details = {"checks": [], "versions": {"tensorflow": env.version, "keras": f"3.{env.fingerprint[0]}"}}
    store.write_receipt(env, Receipt(step="inspect", seconds=1.5, host="n1", details=details))
    return prefix


def put_proved(store: Store, env: EnvironmentId) -> Record:
    """An environment with its manifest and record; it is not published."""
    put_unproved(store, env)
    return seal(store, env)
