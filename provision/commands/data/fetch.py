"""`provision data fetch WHAT`: download a data set or weights on a node with network, to where jobs find them."""

from __future__ import annotations

import argparse
import posixpath
import re
import shlex
from typing import TYPE_CHECKING

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.machine.terminal.console import say

if TYPE_CHECKING:
    from pathlib import Path

    from provision.profile.site import Site

SHA256 = re.compile(r"[0-9a-f]{64}")
ADDRESS = re.compile(r"https?://[^/?#\s]+(?P<path>[^?#\s]*)([?#]\S*)?")
# NAME/CONFIG:VERSION, as tfds.builder takes it; options in brackets are left out.
TFDS_NAME = re.compile(r"[a-z0-9][a-z0-9_]*(/[A-Za-z0-9_.-]+)?(:[0-9.*]+)?")


def run(args: argparse.Namespace) -> Outcome:
    """Download it, and print where it is."""
    from provision.knowledge.keras_files import TFDS
    from provision.machine.configuration import shipped
    from provision.machine.files.tables import read_keras_files
    from provision.machine.network.data_files import fetch_keras, keras_homes, place_of

    site = shipped.load_site(args.site)
    what: str = args.what
    address = "://" in what
    if not address:
        refuse_unused(args, [("--sha256", args.sha256), ("--name", args.name)], f"`{what}` is not an address")
    files = read_keras_files()
    if not address and what not in files and not what.startswith(TFDS):
        raise _unknown(what, tuple(files))
    place = place_of(site)
    if site.network.download_node:
        say(f"note: downloads of site `{site.name}` run on {site.network.where_to_download}")
    if address:
        return _fetch_address(args, place)
    if what.startswith(TFDS):
        return _fetch_tfds(what[len(TFDS) :], place, site)
    say(f"fetching {what}")
    paths, links = fetch_keras(files[what], place)
    folder = posixpath.dirname(paths[0])
    lines = [f"{what}: {', '.join(paths)}"]
    if links:
        lines.append(f"every Keras finds it by a link below {keras_homes()[0]}")
    lines.append(f"for jobs: --data {shlex.quote(folder)}" if what == "mnist" else "jobs need no option for it")
    return Outcome(text="\n".join(lines), result={"what": what, "files": paths, "links": links, "folder": folder})


def _unknown(what: str, names: tuple[str, ...]) -> ConfigError:
    from provision.knowledge.keras_files import WEIGHTS
    from provision.wording import nearest, nearest_name

    sets = [name for name in names if not name.startswith(WEIGHTS)]
    networks = [name[len(WEIGHTS) :] for name in names if name.startswith(WEIGHTS)]
    near = nearest_name(what, names)
    return ConfigError(
        f"`{what}` is not a data set of Keras{nearest(what, names)}",
        evidence=[
            f"data sets: {', '.join(sets)}",
            f"`imagenet-weights:` {', '.join(networks)}",
            "`tfds:NAME` for TensorFlow Datasets, or an address with `--sha256`",
        ],
        hint=f"`provision data fetch {near or 'mnist'}`",
        kind="usage",
        correction=(what, near) if near else None,
    )


def _fetch_address(args: argparse.Namespace, place: Path | None) -> Outcome:
    from provision.machine.network.data_files import download_data
    from provision.profile.patterns import NAME

    address = ADDRESS.fullmatch(args.what)
    if address is None:
        raise ConfigError(f"`{args.what}` is not an address of http or https", hint="`https://HOST/PATH`")
    if args.sha256 is None or not SHA256.fullmatch(args.sha256.lower()):
        raise ConfigError(
            "`--sha256` must be the sha256 of the file: 64 hexadecimal digits",
            evidence=[f"it is `{args.sha256}`" if args.sha256 else "it was not given"],
            hint="the page of the file has it; `sha256sum FILE` prints it for a file that you trust",
        )
    name = args.name or posixpath.basename(address["path"])
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a file", hint="`--name NAME`: letters, digits and `_.+-`")
    say(f"fetching {name}")
    file = download_data(args.what, name, place, args.sha256.lower())
    text = f"{name}: {file}\nfor jobs: --data {shlex.quote(file)}"
    return Outcome(text=text, result={"what": name, "files": [file], "links": [], "folder": posixpath.dirname(file)})


def _fetch_tfds(name: str, place: Path | None, site: Site) -> Outcome:
    from provision.machine.network.data_files import fetch_tfds

    if not TFDS_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a name of TensorFlow Datasets", hint="`tfds:NAME` or `tfds:NAME/CONFIG:VERSION`"
        )
    say(f"TensorFlow Datasets prepares {name}; this can take long")
    python, folder = fetch_tfds(name, place)
    text = f"tfds:{name}: prepared by {python} in {folder}\njobs of site `{site.name}` find it by TFDS_DATA_DIR"
    if place is None:
        text = f"tfds:{name}: prepared by {python} in {folder}, where TensorFlow Datasets looks"
    return Outcome(text=text, result={"what": f"tfds:{name}", "files": [], "links": [], "folder": folder})
