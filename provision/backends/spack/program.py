"""How Spack is run: its arguments, its environment, and the configuration of the site. Pure.

Nothing of the caller reaches it: no `~/.spack`, no `/etc/spack`, no variables of a shell, except the settings of the package
index and the proxy, which the executor adds. Source: Spack 1.2.0.dev0, `etc/spack/include.yaml`, `bin/spack`.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from provision.errors import Fault, raise_faults
from provision.model.facts import SpackFacts
from provision.model.layout import Layout
from provision.wording import count

# Text in a library can be replaced by a shorter one only, so paths are padded: the packages fit below a longer root.
PADDED_LENGTH = 128
# Spack starts scripts whose first line is too long through `bin/sbang` of its store, and refuses a longer path of that
# (`hooks/sbang.py`).
SBANG_LENGTH = 127
BUILD_CACHE = "provision-cache"
# What YAML reads as itself between other words, without quotes; and what it would read as something that is not a text.
PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.+@~-]*")
NOT_TEXT = re.compile(r"(true|false|yes|no|on|off|null|[0-9._+-]+(e[0-9]+)?|0x[0-9a-f]+|0o[0-7]+)", re.IGNORECASE)


def scalar(text: str) -> str:
    """A text as YAML reads it back; it is quoted if that is needed, as for a spec that ends in a colon."""
    if PLAIN.fullmatch(text) and not NOT_TEXT.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=True)


def refuse_long_store(layout: Layout) -> None:
    """Raise a `PlanError` if Spack cannot use its store below this root: the path is too long."""
    more = len(f"{layout.spack_store}/bin/sbang") - SBANG_LENGTH
    fault = Fault(
        "limit",
        "root",
        f"the path of the root is too long for Spack: by {count(more, 'character')}",
        evidence=(f"root: {layout.root}", f"Spack's store: {layout.spack_store}"),
        hint="set `root` in the profile, or PROVISION_ROOT, to a shorter path",
    )
    raise_faults([fault] if more > 0 else [])


def mirror_folder(layout: Layout) -> PurePosixPath:
    """The sources, at the paths at which Spack looks for them."""
    return layout.spack_cache / "mirror"


def mirrored(layout: Layout, sha256: str, extension: str) -> PurePosixPath:
    """The path of a source in the mirror, by its hash; only what Spack unpacks has an extension (`mirrors/layout.py`)."""
    return mirror_folder(layout) / "_source-cache" / "archive" / sha256[:2] / f"{sha256}{extension}"


def environ(layout: Layout, spack: SpackFacts) -> tuple[tuple[str, str], ...]:
    """The whole environment of Spack, apart from the settings of the index and the proxy."""
    cache = layout.spack_cache
    return (
        ("HOME", str(cache / "home")),
        ("LC_ALL", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        ("PROVISION_WHEELHOUSE", str(layout.wheelhouse)),
        ("SPACK_DISABLE_LOCAL_CONFIG", "1"),
        ("SPACK_PYTHON", spack.python),
        ("SPACK_USER_CACHE_PATH", str(cache / "user")),
    )


def argv(spack: SpackFacts, configuration: str, prefix: str, *words: str) -> tuple[str, ...]:
    """One command of Spack in the environment of a prefix; an empty prefix stands for no environment."""
    # In a batch job stdin is /dev/null, which some of Spack's installers cannot wait for: it gets a pipe.
    run = ("bash", "-c", 'exec "$@" < <(:)', "spack")
    where = ("-e", prefix) if prefix else ()
    return (*run, f"{spack.root}/bin/spack", "-C", configuration, *where, *words)


def configuration(layout: Layout, build: str, cores: int) -> str:
    """The text of `config.yaml`: where the site's store, caches and builds are."""
    store, cache = layout.spack_store, layout.spack_cache
    padded = max(PADDED_LENGTH, len(str(store)) + 16)
    return "\n".join(
        (
            "# Written by provision: the paths of the site. spack.yaml has the rest.",
            "config:",
            "  install_tree:",
            f"    root: {scalar(str(store))}",
            f"    padded_length: {padded}",
            f"  build_stage: [{scalar(build)}]",
            f"  source_cache: {scalar(str(cache / 'sources'))}",
            # Spack keeps one index of packages for each namespace: builds of two stacks would take each other's.
            f"  misc_cache: {scalar(f'{build}/misc')}",
            f"  build_jobs: {cores}",
            "",
        )
    )


def build_cache(layout: Layout) -> PurePosixPath:
    """The packages that were proved, as archives: another root, or another site with the same externals, installs them."""
    return layout.spack_cache / "buildcache"


def mirrors(layout: Layout, cache: str) -> str:
    """The text of `mirrors.yaml`: the site's own sources and build cache, and `cache`, that of another root, if any."""
    lines = ["# Written by provision.", "mirrors::", "  provision-sources:"]
    lines += [f"    url: {scalar(f'file://{mirror_folder(layout)}')}", "    binary: false"]
    given = {"provision-given": cache} if cache else {}
    for name, url in {**given, BUILD_CACHE: f"file://{build_cache(layout)}"}.items():
        lines += [f"  {name}:", f"    url: {scalar(url)}"]
        lines += ["    source: false", "    signed: false"]
    return "\n".join(lines) + "\n"


# Our modulefiles are the only ones. Spack's hierarchy would put all archs of a family into one folder.
NO_MODULES = "# Written by provision: Spack writes no modulefiles.\nmodules:\n  default:\n    enable:: []\n"
