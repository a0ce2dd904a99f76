"""`provision data fetch WHAT`: download a data set or weights on a node with network, to where jobs find them."""

from __future__ import annotations

import argparse
import posixpath
import re
import shlex
from pathlib import Path

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError, UsageError
from provision.jobs.environment_script import in_container
from provision.knowledge.keras_files import TFDS, WEIGHTS
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.files.tables import read_keras_files
from provision.machine.network.data_files import download_data, fetch_keras, fetch_tfds, keras_homes, place_of
from provision.machine.programs.shell import absolute
from provision.machine.submission.render_jobs import render_environment_script
from provision.machine.terminal.console import say
from provision.profile.patterns import NAME
from provision.profile.site import Site
from provision.wording import nearest, nearest_name

SHA256 = re.compile(r"[0-9a-f]{64}")
ADDRESS = re.compile(r"https?://[^/?#\s]+(?P<path>[^?#\s]*)([?#]\S*)?")
# NAME/CONFIG:VERSION, as tfds.builder takes it; options in brackets are left out.
TFDS_NAME = re.compile(r"[a-z0-9][a-z0-9_]*(/[A-Za-z0-9_.-]+)?(:[0-9.*]+)?")


def run(args: argparse.Namespace) -> Outcome:
    """Download it, and print where it is."""
    site = shipped.load_site(args.site)
    what: str = args.what
    if not what.startswith(TFDS):
        refuse_unused(args, f"`{what}` is not a set of TensorFlow Datasets", "--data-dir")
    if what.endswith(".py"):
        return _program(args, site)
    address = "://" in what
    if not address:
        refuse_unused(args, f"`{what}` is not an address", "--sha256", "--name")
    files = read_keras_files()
    if not address and what not in files and not what.startswith(TFDS):
        raise _unknown(what, tuple(files))
    place = place_of(site)
    if site.network.download_node:
        say(f"note: downloads of site `{site.name}` run on {site.network.where_to_download}")
    if address:
        return _fetch_address(args, place)
    if what.startswith(TFDS):
        return _fetch_tfds(what[len(TFDS) :], place, site, args.data_dir)
    say(f"fetching {what}")
    paths, links = fetch_keras(files[what], place)
    folder = posixpath.dirname(paths[0])
    lines = [f"{what}: {', '.join(paths)}"]
    if links:
        lines.append(f"every Keras finds it by a link below {keras_homes()[0]}")
    lines.append(f"for jobs: --data {shlex.quote(folder)}" if what == "mnist" else "jobs need no option for it")
    return Outcome(text="\n".join(lines), result={"what": what, "files": paths, "links": links, "folder": folder})


def _program(args: argparse.Namespace, site: Site) -> Outcome:
    """The script that runs a program of the user in the site's container, in the folder in which it is started.

    Raises:
        ConfigError: there is no such file, or the site has no containers.
    """
    refuse_unused(args, "a program is not an address", "--sha256", "--name")
    program = absolute(args.what)
    if not is_file(program):
        raise ConfigError(f"there is no program `{args.what}`", hint=f"`ls {shlex.quote(posixpath.dirname(program))}`")
    where = site.network.where_to_download or "a node with network"
    if "container" not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` runs no containers, so there is no script to write",
            hint=f"on {where}, load the environment of your job, then `python {shlex.quote(args.what)}`",
        )
    script = in_container(site, image=None, overlays=(), program=program)
    say(
        f"note: run the script on {where}, in the folder of your job; data with `data_dir='.'` and weights go where jobs look"
    )
    text = render_environment_script(script, command=command_line(args), again="write it again")
    return Outcome(text=text, result={"what": args.what, "files": [], "links": [], "folder": "."})


def _unknown(what: str, names: tuple[str, ...]) -> ConfigError:
    sets = [name for name in names if not name.startswith(WEIGHTS)]
    networks = [name[len(WEIGHTS) :] for name in names if name.startswith(WEIGHTS)]
    near = nearest_name(what, names)
    return UsageError(
        f"`{what}` is not a data set of Keras{nearest(what, names)}",
        evidence=[
            f"data sets: {', '.join(sets)}",
            f"`imagenet-weights:` {', '.join(networks)}",
            "`tfds:NAME` for TensorFlow Datasets, or an address with `--sha256`",
        ],
        hint=f"`provision data fetch {near or 'mnist'}`",
        correction=(what, near) if near else None,
    )


def _fetch_address(args: argparse.Namespace, place: Path | None) -> Outcome:
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


def _fetch_tfds(name: str, place: Path | None, site: Site, data_dir: str | None) -> Outcome:
    if not TFDS_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a name of TensorFlow Datasets", hint="`tfds:NAME` or `tfds:NAME/CONFIG:VERSION`"
        )
    say(f"TensorFlow Datasets prepares {name}; this can take long")
    python, folder = fetch_tfds(name, place, data_dir and absolute(data_dir))
    text = f"tfds:{name}: prepared by {python} in {folder}\njobs of site `{site.name}` find it by TFDS_DATA_DIR"
    text += ", unless the program names another folder (`data_dir=`): then `--data-dir` of this verb"
    if data_dir:
        text = f"tfds:{name}: prepared by {python} in {folder}, for a program that names this folder in `data_dir=`"
    elif place is None:
        text = f"tfds:{name}: prepared by {python} in {folder}, where TensorFlow Datasets looks"
    return Outcome(text=text, result={"what": f"tfds:{name}", "files": [], "links": [], "folder": folder})
