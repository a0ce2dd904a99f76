"""The end of a build, before anybody can load the environment: its manifest, its record, and files that nobody can write.

Everything is made from what is in the prefix, so `publish --force` can do it without a plan.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from provision import __version__
from provision.errors import StoreError
from provision.machine.files.disk import disk_errors, record_error, sha256_of, sync_folder, write, write_json
from provision.machine.files.file_tree import first_of, make_read_only, measure, packages_beside
from provision.machine.files.who_may_write import user_name
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.probes.traces import traces_now
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.machine.root.bill_of_materials import write_bill
from provision.machine.root.image_only import described_images
from provision.machine.root.linking import link_equal_files
from provision.machine.root.store import Store
from provision.machine.sharing.claims import utc_now
from provision.model.check import Check
from provision.model.layout import KINDS, EnvironmentId, modulefile_path
from provision.model.manifest import FILES, HEAD, ManifestHead, write_files
from provision.model.plan import Description, Modulefile
from provision.model.record import Record
from provision.model.verdict import ProofResult
from provision.schedulers import job_here

# Records that a later run changes, or that were not made by the build. Images have their hashes beside them.
CHANGING = ("tests", "candidate", "images", HEAD)
REBUILD = "`provision build --rebuild` builds the environment again, beside this one"


def seal(
    store: Store,
    env: EnvironmentId,
    *,
    seconds: Mapping[str, float] | None = None,
    forced: str | None = None,
    environ: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Record:
    """Write the manifest and the record of an environment that passed its proof, and make it read-only.

    The record is written last and once: what has a record is sealed, and is never written again.
    `forced` is the reason why it is sealed although its proof failed. `seconds` are those of steps without a receipt.
    `environ` has the modules of the build loaded. `say` gets a line about what is shared with other environments.

    Raises:
        StoreError: a file cannot be read or written, or the verdict is missing, damaged, or not a pass.
    """
    records, prefix = Path(store.layout.records_folder(env)), Path(store.layout.prefix(env))
    record = make_record(store, env, seconds or {}, forced, environ or {})
    record_text = json.dumps(record.to_dict(), indent=1) + "\n"
    record_digest = hashlib.sha256(record_text.encode()).hexdigest()
    with disk_errors(prefix):
        images = described_images(store, env)
        images = images.get("images", []) if images.get("only") else []
        hashes, linked = link_equal_files(store, env) if not images else ({}, 0)
        if linked:
            say(f"{linked / 1e6:,.0f} MB are files that other environments have too: linked, not copied")
        make_read_only(prefix)
        beside = packages_beside(prefix, str(store.layout.spack_store))
        files = measure(prefix, beside, hashes)
        own = {path: entry for path, entry in files.items() if not path.startswith("/")}
        text = write_files(files)
        write(records / FILES, text)
        if store.shared.admins.group() is not None:
            store.shared.make(records / "tests", below=records)
        module = read_description(store, env).modulefile
        write_candidate(store, env, module, record.proof, f"{record.proof}; not published")
        write_bill(record, records)
        head = ManifestHead(
            files=len(images or own),
            size=sum(image["size"] for image in images) or sum(entry.size for entry in own.values()),
            digest=hashlib.sha256(text.encode()).hexdigest(),
            first=(*first_of(own), *beside),
            records={
                **hashes_of_records(records),
                **{f"images/{Path(image['file']).name}": image["sha256"] for image in images},
                "record.json": record_digest,
            },
            beside=beside,
        )
        write_json(records / HEAD, head.to_dict())
        sync_folder(records)  # the record speaks for all of it
        write(records / "record.json", record_text)
        sync_folder(records)
    return record


def write_candidate(store: Store, env: EnvironmentId, module: Modulefile, proof: str, of_candidate: str) -> None:
    """What loads the environment without publishing it: for its proof, shells without a module system, and pilots."""
    write(Path(store.layout.records_folder(env)) / "activate.sh", emit_modulefile(module, "sh", proof))
    for kind in KINDS:
        path = modulefile_path(store.layout.candidate(env, kind), kind, module.name, module.version)
        write(Path(path), emit_modulefile(module, kind, of_candidate))


def hashes_of_records(records: Path) -> dict[str, str]:
    """The sha256 of each file in `.provision` that is not changed any more."""
    found = {}
    for path in sorted(records.rglob("*")):
        name = str(path.relative_to(records))
        if name.partition("/")[0] not in CHANGING and path.is_file() and not path.is_symlink():
            found[name] = sha256_of(path)
    return found


def make_record(
    store: Store, env: EnvironmentId, seconds: Mapping[str, float], forced: str | None, environ: Mapping[str, str]
) -> Record:
    """The record of an environment, from what its steps left in its prefix.

    Raises:
        StoreError: the description or the verdict of the proof is missing or damaged, or it is not a pass.
    """
    description, proof = read_description(store, env), _read_verdict(store, env, forced)
    receipts = store.read_receipts(env)
    inspected = receipts["inspect"].details if "inspect" in receipts else {}
    identity = store.shared.read_json(Path(store.layout.records_folder(env)) / "plan.json") or {}
    from provision.knowledge.advisories import open_advisories
    from provision.machine.files.tables import read_advisories

    module, prefix = description.modulefile, Path(store.layout.prefix(env))
    return Record(
        environment=str(env),
        site=description.site,
        stack=description.stack,
        module=f"{module.name}/{module.version}",
        prefix=str(store.layout.prefix(env)),
        modules=module.modules,
        identity={name: str(value) for name, value in identity.items()},
        wheel=description.wheel,
        wheels=description.wheels,
        versions=inspected.get("versions"),
        checks=tuple(Check.from_dict(check) for check in inspected.get("checks") or ()),
        seconds={
            **{name: receipt.seconds for name, receipt in receipts.items()},
            **seconds,
        },
        verdict=proof,
        proof=proof.summary,
        built=utc_now(),
        host=socket.gethostname(),
        job=job_here(os.environ),
        provision=__version__,
        user=user_name(os.geteuid()),
        forced=forced,
        traces=traces_now(environ, prefix, inspected.get("libraries") or ()),
        advisories=tuple(one.advisory.id for one in open_advisories(installed_versions(prefix), read_advisories())),
    )


def read_description(store: Store, env: EnvironmentId) -> Description:
    """The description of an environment.

    Raises:
        StoreError: it is missing or damaged, or a newer version wrote it.
    """
    path, hint = Path(store.layout.records_folder(env)) / "description.json", REBUILD
    found = store.shared.read_record(path, Description.from_dict, hint)
    if found is None:
        raise record_error(ValueError("it is missing"), path, hint)
    return found


def _read_verdict(store: Store, env: EnvironmentId, forced: str | None) -> ProofResult:
    path = Path(store.layout.records_folder(env)) / "verdict.json"
    try:
        proof = ProofResult.from_dict(store.shared.read_json(path) or {})
    except ValueError as error:
        raise StoreError(f"`{path}` is missing or damaged", evidence=[str(error)], hint="build again") from error
    if not proof.verdict.passed and not forced:
        raise StoreError(
            f"`{path}` is not the verdict of a passed proof",
            evidence=[f"{check.name}: {check.message}" for check in proof.verdict.failures],
            hint="`provision build` proves it again",
            kind="unproved",
        )
    return proof
