"""`provision data`: downloads a data set to where jobs find it; writes scripts that copy one to a site, or results from it.

`push` and `pull` write a script instead of copying: a copy can take hours, so the user runs it in a terminal, where rsync
continues an interrupted copy and ssh asks for passwords. The script of `push` checks the free space first, and renames the
complete copy. Sites empty their scratch file systems, so what a job left there has to be pulled.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError, UsageError
from provision.jobs.environment_script import in_container
from provision.knowledge.keras_files import TFDS, WEIGHTS
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.files.tables import read_keras_files
from provision.machine.network.data_files import (
    download_data,
    fetch_keras,
    fetch_tfds,
    keras_homes,
    measure,
    place_of,
    sees,
)
from provision.machine.programs.shell import absolute
from provision.machine.rendering.render import render
from provision.machine.submission.render_jobs import render_environment_script
from provision.machine.terminal.console import say
from provision.profile.patterns import CONTROL, NAME, show_controls
from provision.profile.site import HOST, USER, Site
from provision.wording import count, nearest, nearest_name

# rsync expands these in a path that it reads at the site.
PATTERN = re.compile(r"[*?\[\]\\]")
SHA256 = re.compile(r"[0-9a-f]{64}")
ADDRESS = re.compile(r"https?://[^/?#\s]+(?P<path>[^?#\s]*)([?#]\S*)?")
# NAME/CONFIG:VERSION, as tfds.builder takes it; options in brackets are left out.
TFDS_NAME = re.compile(r"[a-z0-9][a-z0-9_]*(/[A-Za-z0-9_.-]+)?(:[0-9.*]+)?")


def run_fetch(args: Args) -> Outcome:
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
    return _fetched("\n".join(lines), what, folder, paths, links)


def _fetched(text: str, what: str, folder: str, files: Sequence[str] = (), links: Sequence[str] = ()) -> Outcome:
    result = {"what": what, "files": list(files), "links": list(links), "folder": folder}
    return Outcome(text=text, result=result)


def _program(args: Args, site: Site) -> Outcome:
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
    return _fetched(text, args.what, ".")


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


def _fetch_address(args: Args, place: Path | None) -> Outcome:
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
    return _fetched(f"{name}: {file}\nfor jobs: --data {shlex.quote(file)}", name, posixpath.dirname(file), [file])


def _fetch_tfds(name: str, place: Path | None, site: Site, data_dir: str | None) -> Outcome:
    if not TFDS_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a name of TensorFlow Datasets", hint="`tfds:NAME` or `tfds:NAME/CONFIG:VERSION`"
        )
    say(f"TensorFlow Datasets prepares {name}; this can take long")
    python, folder = fetch_tfds(name, place, data_dir and absolute(data_dir))
    used = f"\njobs of site `{site.name}` find it by TFDS_DATA_DIR"
    used += ", unless the program names another folder (`data_dir=`): then `--data-dir` of this verb"
    if data_dir:
        used = ", for a program that names this folder in `data_dir=`"
    elif place is None:
        used = ", where TensorFlow Datasets looks"
    return _fetched(f"tfds:{name}: prepared by {python} in {folder}{used}", f"tfds:{name}", folder)


def refuse_controls(*texts: str | None) -> None:
    """Raise a `ConfigError` for control characters, such as line breaks, in paths and names."""
    for text in texts:
        if text is not None and CONTROL.search(text):
            raise ConfigError(
                f"`{show_controls(text)}` contains a line break or another control character",
                hint="rename it, or copy the folder that contains it",
            )


def choose_place(args: Args, site: Site) -> tuple[str, str | None]:
    """A folder of the site, which a shell there expands, and the host for ssh; None if this machine sees the folder.

    Raises:
        ConfigError: the profile has no such folder, an option would not be used, or the site cannot be reached.
    """
    for option, value, form in (
        ("--user", args.user, USER),
        ("--host", args.host, HOST),
        ("--project", args.project, NAME),
    ):
        if value is not None and not form.fullmatch(value):
            raise ConfigError(f"{value!r} is not a valid value of `{option}`", hint="letters, digits and `_.-`")
    folders = {"scratch": site.files.scratch, "project": site.files.project, "home": "$HOME"}
    name = args.place or ("project" if site.files.scratch is None and site.files.project else "scratch")
    folder = folders[name]
    if folder is None:
        others = ", ".join(f"`{key}`" for key, value in folders.items() if value)
        raise ConfigError(
            f"the profile of site `{site.name}` has no {name} folder",
            evidence=[f"`files.{name}` in `{site.origin}` is missing"],
            hint=f"set `files.{name}`, or choose another folder of the site with `--to` or `--in`: {others}",
        )
    if "$PROJECT" not in folder:
        refuse_unused(args, f"the path `{folder}` contains no name of a project", "--project")
    elif args.project is None:
        raise ConfigError(
            f"the project folder of site `{site.name}` needs the name of a project",
            evidence=[f"`files.project` in `{site.origin}` is `{folder}`"],
            hint="`--project NAME`",
        )
    project = args.project or "any"
    seen = any(sees(path.replace("$PROJECT", project)) for path in (site.files.scratch, site.files.project) if path)
    there = folder.replace("$PROJECT", project)
    if seen and args.host is None:
        refuse_unused(args, "this machine sees the files of the site; for a copy by ssh add `--host`", "--user")
        return there, None
    host = args.host or site.network.data_host or site.network.host
    if host is None:
        raise ConfigError(
            f"this machine does not see `{folder}` of site `{site.name}`, and the profile names no host to reach it",
            evidence=[f"`network.host` and `network.data_host` in `{site.origin}` are missing"],
            hint="add `--host` with the name of a login node of the site, or run this on one",
        )
    return there, f"{args.user}@{host}" if args.user else host


def run_push(args: Args) -> Outcome:
    """Measure the source and write the script."""
    site = shipped.load_site(args.site)
    refuse_controls(args.source)
    path = absolute(args.source)
    name = args.name or PurePosixPath(path).name
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a data set", hint="`--name NAME`: letters, digits and `_.+-`"
        )
    base, host = choose_place(args, site)
    source = measure(path)
    what = f"{source.bytes / 1e6:.1f} MB in {count(source.files, 'file or folder', 'files and folders')}"
    text = render(
        "jobs/data-push.sh.j2",
        purpose=f"Copy data to {site.title or site.name}: {what}.",
        base=base,
        host=host,
        source=path,
        folder=source.is_folder,
        name=name,
        command=command_line(args),
        kilobytes=-(-source.bytes // 1024),
        files=source.files,
    )
    way = f"by ssh to `{host}`" if host else "on this machine"
    say(f"note: {what}, {way}; nothing is copied yet; to copy, run the script: `provision data push … | bash`")
    result = {"source": path, "bytes": source.bytes, "files": source.files, "host": host, "script": text}
    return Outcome(text=text, result=result)


def run_pull(args: Args) -> Outcome:
    """Write the script."""
    site = shipped.load_site(args.site)
    refuse_controls(args.source, args.folder, args.name)
    source = posixpath.normpath(args.source)
    if PATTERN.search(source) or source.startswith(("~", "$")):
        raise ConfigError(
            f"`{args.source}` is not the path of one folder or file",
            evidence=["wildcards, `~` and variables are not expanded in it"],
            hint="give an absolute path, or one below `--in scratch`, `--in project` or `--in home`",
        )
    if source in (".", "/") or source.split("/")[0] == "..":
        raise ConfigError(
            f"`{args.source}` is not a folder or file below a folder of the site", hint="name one, such as `runs/4711`"
        )
    name = args.name or posixpath.basename(source)
    if "/" in name or name in (".", ".."):
        raise ConfigError(f"{name!r} cannot be the name of the copy", hint="`--name NAME`, without `/`")
    if source.startswith("/"):
        refuse_unused(args, f"`{source}` is an absolute path", "--in", "--project")
        args.place = "home"
    base, host = choose_place(args, site)
    target = absolute(args.folder)
    text = render(
        "jobs/data-pull.sh.j2",
        purpose=f"Copy results from {site.title or site.name}.",
        base=base,
        host=host,
        source=source,
        target=target,
        name=name,
        command=command_line(args),
    )
    way = f"by ssh from `{host}`" if host else "on this machine"
    say(f"note: {way}; nothing is copied yet; to copy, run the script: `provision data pull … | bash`")
    return Outcome(text=text, result={"source": source, "folder": target, "name": name, "host": host, "script": text})
