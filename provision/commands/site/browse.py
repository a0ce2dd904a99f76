"""`provision site list` and `site show`: show profiles as they are written; blanks are allowed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known
from provision.profile.document import join, layer_of
from provision.profile.provenance import nearest_source, read_sources, walk
from provision.profile.site import retirement
from provision.wording import columns

NO_SCHEDULER = "no scheduler"


def run_list(args: Args) -> Outcome:
    """List the sites."""
    rows, wrong = [], []
    for name in known("sites"):
        try:
            rows.append(describe(name))
        except ConfigError as error:
            wrong.append(f"{name}: {error.message}")
    lines = []
    for row in rows:
        notes = [row["scheduler"] or NO_SCHEDULER, f"archs: {', '.join(arch['name'] for arch in row['archs'])}"]
        notes += [retirement(row["retired"])] if row["retired"] else []
        lines.append((row["name"], "; ".join(notes)))
    return Outcome(text="\n".join([*columns(lines), *wrong]), result={"sites": rows, "unreadable": wrong})


def run_show(args: Args) -> Outcome:
    """Show one site."""
    row = describe(args.site)
    lines = [
        f"site       {row['name']}" + (f" ({row['title']})" if row["title"] else ""),
        f"profile    {row['path']}",
        f"root       {row['root'] or 'not filled in yet'}",
        f"scheduler  {row['scheduler'] or 'none: builds run on this machine'}",
        f"runtimes   {', '.join(row['runtimes'])}",
        *([f"retired    {row['retired']}"] if row["retired"] else []),
        *([f"support    {row['support']}"] if row["support"] else []),
    ]
    for title, arch in zip(["archs", *[""] * len(row["archs"])], row["archs"], strict=False):
        gpu = f", {arch['gpus_per_node']} GPUs per node" if arch["gpus_per_node"] else ""
        lines.append(
            f"{title:<10} {arch['name']}: {arch['target'] or 'target not filled in yet'}{gpu}, {arch['stack']}"
        )
    values = None
    if args.values:
        values = values_of(args.site)
        for file in dict.fromkeys(value["file"] for value in values):
            lines += ["", f"# {file}"]
            for value in (one for one in values if one["file"] == file):
                source = f"  # {value['source']}" if value["source"] else ""
                lines.append(f"{value['key']} = {json.dumps(value['value'], ensure_ascii=False)}{source}")
    return Outcome(text="\n".join(lines), result={**row, "values": values})


def values_of(name: str) -> list[dict[str, Any]]:
    """Every value of a profile: its key path, the file that has it, and the source that the profile names.

    Raises:
        ConfigError: there is no such profile, or it is not TOML.
    """
    layers = shipped.profile_layers(name)
    documents = [data for data, _ in layers]
    data = join(documents)
    sources = read_sources(data)
    values = []
    for key, value in walk(data):
        if not key.startswith("sources."):
            file, source = layers[layer_of(key, documents)][1], nearest_source(key, sources)
            values.append({"key": key, "value": value, "file": str(file), "source": str(source) if source else None})
    return values


def describe(name: str) -> dict[str, Any]:
    """What a profile says of its site, without checking it.

    Raises:
        ConfigError: there is no such profile, or it is not TOML.
    """
    data, path = shipped.load_profile(name)
    stack = data.get("stack")
    return {
        "name": str(data.get("name", name)),
        "title": data.get("title"),
        "path": str(path),
        "root": filled(data.get("root")),
        "scheduler": filled(table(data, "scheduler").get("system")),
        "runtimes": list(data.get("runtimes", ["venv"])),
        "retired": data.get("retired"),
        "support": data.get("support"),
        "stack": filled(stack),
        "archs": [
            {
                "name": arch,
                "target": filled(values.get("target")),
                "gpus_per_node": filled(table(values, "gpu").get("per_node")),
                "stack": filled(values.get("stack", stack)),
            }
            for arch, values in table(data, "archs").items()
            if isinstance(values, Mapping)
        ],
    }


def table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table of a profile, or an empty one."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def filled(value: object) -> object:
    """A value, or None if it is a blank."""
    return None if value == "?" else value
