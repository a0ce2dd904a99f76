"""Profiles and stacks: every fault is reported at once with its key path, and misspelt names with the nearest one."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.loops import for_each
from parts.profiles import PROFILES, parsed
from provision.errors import EXIT_USAGE, ConfigError
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.targets import (
    family_of,
    features_of,
    flags_for,
    is_foreign,
    missing_features,
    require_known_target,
)
from provision.knowledge.toolchains import generation
from provision.machine.configuration import shipped
from provision.profile.site import Site, read_site
from provision.profile.stack import PROGRAMS, WITHOUT_HOROVOD, Stack, read_stack

Table = dict[str, Any]

SITE: Table = {
    "name": "cluster",
    "root": "/site/root",
    "stack": "tensorflow-2.15.1",
    "modules": {"system": "lmod", "init": "/site/lmod/init/bash", "path": ["/site/modulefiles"]},
    "scheduler": {"system": "slurm", "required": ["time"]},
    "archs": {
        "knl": {"target": "mic_knl", "modules": ["gcc/12.2.0"], "mpi": {"provider": "site"}},
        "haswell": {"target": "haswell", "mpi": {"provider": "site"}},
    },
}
TRAINING: Table = {"epochs": 1, "batch_size": 64, "learning_rate": 0.001, "min_accuracy": 0.9}
STACK: Table = {
    "name": "tensorflow-2.15.1",
    "summary": "TensorFlow",
    "module": "tensorflow/2.15.1",
    "pythons": ["3.11"],
    "framework": {"name": "tensorflow", "package": "tensorflow-cpu", "version": "2.15.1"},
    "horovod": {"version": "0.28.1"},
    "proof": {"program": "horovod_keras", "mnist": TRAINING, "digits": TRAINING},
}


def put(table: Table, path: str, value: object) -> Table:
    """A copy of `table` with the value at the dotted path replaced, or removed if it is None."""
    changed = copy.deepcopy(table)
    *folders, last = path.split("/")
    inner = changed
    for folder in folders:
        inner = inner.setdefault(folder, {})
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return changed


def site(table: Table, **environ: str) -> Site:
    """The site that `table` describes."""
    return read_site(table, "sites/cluster.toml", environ)


def stack(table: Table) -> Stack:
    """The stack that `table` describes."""
    return read_stack(table, "stacks/it.toml")


def faults(read: Callable[[Table], object], table: Table) -> tuple[str, ...]:
    """The faults that reading `table` reports."""
    with pytest.raises(ConfigError) as caught:
        read(table)
    assert caught.value.exit_code == EXIT_USAGE
    return caught.value.evidence


def test_all_faults_of_a_profile_are_reported_at_once(words: Words) -> None:
    table = put(SITE, "archs/knl/proof", {"nodes": 0, "ranks_per_node": "two", "timeout_s": True})
    for path, value in (("archs/haswell/target", None), ("modules/path", "/site/modulefiles"), ("rooot", "/x")):
        table = put(table, path, value)
    with pytest.raises(ConfigError, match=r"6 faults in `sites/cluster\.toml`") as caught:
        site(table)
    assert [line.partition(":")[0] for line in sorted(caught.value.evidence)] == [
        *("archs.haswell.target", "archs.knl.proof.nodes", "archs.knl.proof.ranks_per_node"),
        *("archs.knl.proof.timeout_s", "modules.path", "rooot"),
    ]
    words("site", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize(
    ("path", "value", "rest"),
    [
        ("name", 3, ""),
        ("name", "", ""),
        ("name", "../etc", ""),
        ("root", None, ""),
        ("root", "${HF_TOKEN}/x", ""),
        ("archs", None, ""),
        ("archs", {}, ""),
        ("archs", ["knl"], ""),
        ("archs", {"k nl": SITE["archs"]["knl"]}, ".k nl"),
        ("archs/knl", 3, ""),
        ("archs/knl/mpi", None, ".provider"),
        ("archs/knl/mpi", {"provider": "sites"}, ".provider"),
        ("archs/knl/mpi", {"provider": "pypi"}, ".requirements"),
        ("archs/knl/mpi", {"provider": "site", "requirements": "mpich-5.0.2"}, ".requirements"),
        ("archs/knl/mpi/famly", "mpich", ""),
        ("archs/knl/math", "mkl", ""),
        ("archs/knl/modules", ["gcc/12", 3], "[1]"),
        ("archs/knl/modules", ["$(reboot)"], "[0]"),
        ("archs/knl/modules", ["--help"], "[0]"),
        ("archs/knl/modules", [""], "[0]"),
        ("archs/knl/modules", ["Python/3.8.2-GCCcore-9.3.0", "TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4"], ""),
        ("archs/knl/environ", {"A B": "1"}, ".A B"),
        ("archs/knl/environ", {"A": 1.5}, ".A"),
        ("archs/knl/environ", {"A": True}, ".A"),
        ("archs/knl/environ", {"HF_TOKEN": "x"}, ".HF_TOKEN"),
        ("archs/knl/environ", {"A": "http://a:pw@h"}, ".A"),
        ("archs/knl/job", {"time": "tomorrow"}, ".time"),
        ("archs/knl/job", {"options": ["x"]}, ".options[0]"),
        ("archs/knl/job", {"memory": "lots"}, ".memory"),
        ("archs/knl/job", {"filesystems": ["a b"]}, ".filesystems[0]"),
        ("archs/knl/launcher", {"name": "arun"}, ".name"),
        ("archs/knl/unload", ["atp; reboot"], "[0]"),
        ("archs/knl/node", {"sockets": 1}, ".cores"),
        ("archs/knl/node", {"cores": 68, "sockets": 3}, ".cores"),
        ("archs/knl/node", {"cores": 68, "threads": 4}, ".threads"),
        ("archs/knl/gpu", {"model": "a100"}, ".per_node"),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": ["8.0"]}, ".capabilities[0]"),
        ("archs/knl/threads", {"owner": "me"}, ".owner"),
        ("archs/knl/queues", {"debug": {"time": "long"}}, ".debug.time"),
        ("archs/knl/queues", {"flat": {"constraint": "a b"}}, ".flat.constraint"),
        ("archs/knl/queues", {"debug": {"least_nodes": 4, "most_nodes": 2}}, ".debug.most_nodes"),
        ("arch", {}, ""),
        ("modules/system", "lmodd", ""),
        ("modules/init", None, ""),
        ("modules/use", ["/m"], ""),
        ("modules/load", ["gcc"], ""),
        ("modules/paths", ["/m"], ""),
        ("modules/reset", "purged", ""),
        ("scheduler/system", "slrm", ""),
        ("scheduler/system", "", ""),
        ("scheduler/required", ["acount"], "[0]"),
        ("scheduler/forbidden", ["time"], ""),
        ("network", {"compute": "proxy"}, ".proxy"),
        ("network", {"compute": "proxy", "proxy": "http://x y"}, ".proxy"),
        ("network", {"proxy": "http://a:pw@h:1"}, ".proxy"),
        ("network", {"download_node": "g dtn"}, ".download_node"),
        ("files", {"umask": "888"}, ".umask"),
        ("files", {"group": "a b"}, ".group"),
        ("files", {"readers": "-rf"}, ".readers"),
        ("files", {"scratch": "/scratch/$(id)"}, ".scratch"),
        ("files", {"burst_buffer_from": 8}, ".burst_buffer_from"),
        ("container", {"image": "/x.sif"}, ".command"),
        ("container", {"command": "docker", "image": "x"}, ".command"),
        ("container", {"command": "shifter", "image": "x", "overlay": "/o"}, ".overlay"),
        ("container", {"command": "apptainer", "image": "x", "overlay": "/o", "setup": "env.sh"}, ".setup"),
        ("container", {"command": "apptainer", "image": "x", "overlay_templates": {"15GB-500K": "/t"}}, ".overlay"),
        ("container", {"command": "apptainer", "overlay_templates": {"large": "/t"}}, ".overlay_templates.large"),
        ("container", {"command": "apptainer", "image": "x", "write_options": ["fakeroot"]}, ".write_options[0]"),
        ("strategies", {"horovd": {}}, ".horovd"),
        ("strategies", {"cray-ml-plugin": {}}, ".cray-ml-plugin.modules"),
        ("strategies", {"cray-ml-plugin": {"modules": ["x/1"], "example": "/a.py"}}, ".cray-ml-plugin.example"),
        ("strategies", {"horovod": {"modules": ["x/1"]}}, ".horovod.modules"),
        ("strategies", {"horovod": {"status": "good"}}, ".horovod.status"),
        ("retired", "long ago", ""),
        ("sources", {"page": {"date": "2018", "values": ["name"]}}, ".page.text"),
        ("sources", {"page": {"text": "a page", "date": "lately", "values": ["name"]}}, ".page.date"),
        ("sources", {"page": {"text": "a page", "date": "2018-09", "values": ["archs.*.nod"]}}, ".page.values[0]"),
        # A relative path would be another file in every folder that a user stands in.
        *(("root", path, "") for path in ("root", "./root", "/a:b", '/a"b')),
        ("files", {"scratch": "scratch"}, ".scratch"),
        ("files", {"temporary": "../tmp"}, ".temporary"),
        ("modules/init", "init/bash", ""),
        ("archs/knl/mpi/cxx", "./mpicxx", ""),
        ("archs/knl/python", "./evil.sh", ""),
        ("archs/knl/compiler", {"cxx": "./g++", "cc": "gcc"}, ".cxx"),
        ("archs/knl/compiler", {"cxx": "g++", "cc": "bin/gcc"}, ".cc"),
        ("strategies", {"ddp": {"communication": "RING"}}, ".ddp.communication"),
        ("strategies", {"multiworker": {"communication": "MPI"}}, ".multiworker.communication"),
    ],
)
def test_a_fault_in_a_profile_is_reported_with_its_key_path(path: str, value: object, rest: str, words: Words) -> None:
    place = f"{path.replace('/', '.')}{rest}: "
    found = [line for line in faults(site, put(SITE, path, value)) if line.startswith(place)]
    assert found
    words("site", "\n".join(found))


@pytest.mark.parametrize("python", ["python3.11", "/usr/bin/python3", "~/bin/python3", "${HOME}/python"])
def test_a_name_on_path_and_an_absolute_path_are_accepted(python: str) -> None:
    read = site(put(SITE, "archs/knl/python", python), HOME="/home/ada")
    assert str(read.arch("knl").python).endswith(python.rpartition("}")[2])


def test_an_arch_with_modules_needs_a_module_system() -> None:
    assert [line.partition(":")[0] for line in faults(site, put(SITE, "modules/system", "none"))] == [
        "archs.knl.modules"
    ]


@pytest.mark.parametrize(
    ("path", "value", "rest"),
    [
        ("module", "tensorflow", ""),
        ("module", "tensorflow/2/3", ""),
        *(("module", module, "") for module in ("../2.15.1", "tensorflow/..", "-x/1", "./.")),
        ("pythons", ["3.11", "311"], "[1]"),
        ("pythons", [], ""),
        ("pythons", None, ""),
        ("framework", None, ""),
        ("framework/name", "torch", ""),
        ("framework/version", 2.15, ""),
        ("horovod", {}, ".version"),
        ("horovod/version", "latest", ""),
        ("proof/digits", None, ""),
        ("proof/mnist/epochs", 0, ""),
        *(("proof/mnist/min_accuracy", bar, "") for bar in ("high", -1, 95, float("nan"), float("inf"))),
        ("proof/mnist/batchsize", 3, ""),
        ("proof/program", "pytorch", ""),
        ("proof/program", "mirored", ""),
        ("proof/program", "cray-ml-plugin", ""),
        ("sumary", "x", ""),
    ],
)
def test_a_fault_in_a_stack_is_reported_with_its_key_path(path: str, value: object, rest: str, words: Words) -> None:
    place = f"{path.replace('/', '.')}{rest}: "
    found = [line for line in faults(stack, put(STACK, path, value)) if line.startswith(place)]
    assert found
    words("stack", "\n".join(found))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("root", "${SCRATCH}"),
        ("archs", "knl"),
        ("archs/knl/mpi", None),
        ("modules/init", 2),
        ("network", {"compute": "proxy", "proxy": 2}),
        ("archs/knl/mpi", {"provider": "pypi", "requirements": 2}),
        ("container", {"command": "apptainer", "image": "x", "overlay": 2, "overlay_templates": {"15GB-500K": "/t"}}),
        ("strategies", {"cray-ml-plugin": {"modules": 2}}),
        ("archs/knl/gpu", {"per_node": "four", "capabilities": ["80"]}),
    ],
)
def test_a_value_with_a_fault_has_no_second_one(path: str, value: object) -> None:
    table = put(SITE, "archs/knl/proof", {"nodes": 2, "ranks_per_node": 4, "timeout_s": 600})
    assert len(faults(site, put(table, path, value))) == 1


EDIT, MINE = "edit `sites/cluster.toml`", "`export SCRATCH=/PATH`"


@pytest.mark.parametrize(
    ("root", "environ", "hint"),
    [
        ("${SCRATCH}/provision", {}, MINE),
        ("/${A}/${B}", {}, "`export A=/PATH`, `export B=/PATH`"),
        ("${SCRATCH}/x", {"SCRATCH": "relative/root"}, MINE),
        ("${SCRATCH}/x", {"SCRATCH": ""}, MINE),
        ("${PROVISION_ROOT}/z", {"PROVISION_ROOT": "/x\ntouch /y"}, EDIT),
        ("${PROVISION_ROOT}", {"PROVISION_ROOT": "here"}, "`unset PROVISION_ROOT`"),
        ("${PROVISION_ROOT}", {"PROVISION_ROOT": ""}, "`unset PROVISION_ROOT`"),
        # The variable is right, and the profile is wrong.
        ("here/${SCRATCH}", {"SCRATCH": "/s"}, EDIT),
        ("${SCRATCH}/a\tb", {"SCRATCH": "/s"}, EDIT),
        ("/${SCRATCH}/a\nb", {"SCRATCH": "/s"}, EDIT),
        ("${SCRATCH}/" + 300 * "x", {"SCRATCH": "/s"}, EDIT),
        ("${MY_TOKEN}/x", {"MY_TOKEN": "/t"}, EDIT),
    ],
)
def test_a_fault_of_a_variable_is_that_of_its_value_with_the_command_that_sets_it(
    root: str, environ: dict[str, str], hint: str, words: Words
) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", root), **environ)
    assert all(fault.startswith("root: ") and fault.isprintable() for fault in caught.value.evidence)
    assert hint in str(caught.value.hint)
    words("site", "\n".join(caught.value.to_lines()))


def test_a_variable_is_expanded_in_a_path_and_not_in_a_plain_text() -> None:
    read = site(put(put(SITE, "root", "${SCRATCH}/x"), "title", "costs ${SCRATCH}"), SCRATCH="/site/scratch")
    assert (read.root, read.title) == ("/site/scratch/x", "costs ${SCRATCH}")
    with pytest.raises(ConfigError) as caught:
        site(put(put(SITE, "root", "${SCRATCH}/x"), "rooot", "x"), SCRATCH="")
    assert caught.value.hint == EDIT, "not all faults are those of the variable"


def test_module_names_and_options_of_real_sites_are_accepted() -> None:
    names = ["gcc/12.2.0", "cray-mpich@8.1.25", "/site/modules/x", "intel-oneapi/2023.1+cuda", "PrgEnv-gnu"]
    assert site(put(SITE, "archs/knl/modules", names)).arch("knl").modules == tuple(names)
    options = ["--mem=4G", "--gres=gpu:4", "--comment=it's a test", "-C knl&quad"]
    assert site(put(SITE, "archs/knl/job", {"options": options})).arch("knl").job.options == tuple(options)


def test_easybuild_modules_of_one_generation_are_accepted() -> None:
    names = ["GCC/11.3.0", "Python/3.10.4-GCCcore-11.3.0", "Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0"]
    assert site(put(SITE, "archs/knl/modules", names)).arch("knl").modules == tuple(names)
    assert [generation(name) for name in (*names, "CUDA/11.7.0", "gcc/12.2.0", "x/1-foss-2031a")] == [
        *("2022a", "2022a", "2022a", None, None, "2031a")
    ]


@pytest.mark.parametrize(("name", "kind"), [("kln", "unknown-arch"), (None, "ambiguous-arch")])
def test_an_arch_must_be_named_if_there_are_several_and_known(name: str | None, kind: str, words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`cluster`.*`knl`") as caught:
        site(SITE).arch(name)
    assert caught.value.kind == kind
    words("site", "\n".join(caught.value.to_lines()))
    assert site(put(SITE, "archs/haswell", None)).arch(None).name == "knl"


def test_an_unknown_target_is_refused_with_the_nearest_one(words: Words) -> None:
    require_known_target("native")
    require_known_target("mic_knl")
    with pytest.raises(ConfigError, match=r"`haswel` .*`haswell`") as caught:
        require_known_target("haswel")
    words("site", caught.value.message)


def test_no_fact_of_an_unknown_target_is_made_up(words: Words) -> None:
    for ask in (
        lambda: family_of("zen9", "x86_64"),
        lambda: flags_for("zen9", "gcc", "12.2.0"),
        lambda: is_foreign("zen3", "zen9"),
        lambda: missing_features("zen9", ()),
        lambda: features_of("zen9"),
    ):
        with pytest.raises(ConfigError, match="`zen9`") as caught:
            ask()
        words("site", caught.value.message)
    assert family_of("native", "aarch64") == "aarch64"


@pytest.mark.parametrize(
    ("content", "evidence"),
    [
        (b'name = "x"\nroot = \n', ["line 2"]),
        (b'name = "\xff"\n', ["utf-8"]),
        (b"", ["name: ", "root: ", "stack: ", "archs: "]),
    ],
    ids=["not TOML", "not text", "empty"],
)
def test_a_file_that_is_no_profile_is_refused(content: bytes, evidence: list[str], tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"`{path}`") as caught:
        shipped.load_site(str(path))
    assert [part in line for part, line in zip(evidence, caught.value.evidence, strict=True)] == [True] * len(evidence)


@pytest.mark.parametrize(("kind", "shipped_name"), [("site", "local"), ("stack", "tensorflow-2.15.1")])
def test_a_copy_that_still_has_the_name_of_its_original_is_refused(
    kind: str, shipped_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    load = shipped.load_site if kind == "site" else shipped.load_stack
    text = shipped.read(f"{kind}s/{shipped_name}.toml")
    copy = tmp_path / f"{kind}s" / "ours.toml"
    copy.parent.mkdir()
    copy.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    for typed in ("ours", str(copy)):
        with pytest.raises(ConfigError, match=f"describes the {kind} `{shipped_name}`") as caught:
            load(typed)
        assert '`name = "ours"`' in str(caught.value.hint) and f"`{shipped_name}.toml`" in str(caught.value.hint)
        words("site", "\n".join(caught.value.to_lines()))
        assert caught.value.kind == "invalid-file"
    copy.write_text(text.replace(f'name = "{shipped_name}"', 'name = "ours"', 1), encoding="utf-8")
    assert load("ours").name == "ours"


@pytest.mark.parametrize(
    ("load", "word", "meant"),
    [(shipped.load_site, "lokal", "local"), (shipped.load_stack, "tensorflow-2.15", "tensorflow-2.15.1")],
    ids=["site", "stack"],
)
def test_an_unknown_name_is_refused_with_the_known_ones(
    load: Callable[[str], object], word: str, meant: str, words: Words
) -> None:
    with pytest.raises(ConfigError, match=f"`{word}`.*`{meant}`") as caught:
        load(word)
    assert caught.value.kind in ("unknown-site", "unknown-stack") and caught.value.hint
    assert meant in caught.value.evidence[0]
    words("site", caught.value.message)


def test_own_profiles_override_shipped_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "config" / "sites"
    folder.mkdir(parents=True)
    text = Path(shipped.load_site("local").origin).read_text(encoding="utf-8")
    (folder / "local.toml").write_text(text.replace("this machine: no", "OURS: no"))
    monkeypatch.setenv("PROVISION_CONFIG", str(folder.parent))
    monkeypatch.chdir(tmp_path)
    assert shipped.load_site("local").title.startswith("OURS")


# Optional parts of a profile


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("archs/knl/modules", ["gcc/12.2.0", "?"]),
        ("archs/knl/job", {"account": "?"}),
        ("archs/knl/node", {"cores": "?"}),
    ],
)
def test_every_blank_is_refused_with_its_key_path(path: str, value: object, words: Words) -> None:
    with pytest.raises(ConfigError, match=r"2 values.*`sites/cluster\.toml`|`sites/cluster\.toml`.*2 values") as caught:
        site(put(put(SITE, path, value), "root", "?"))
    assert caught.value.exit_code == EXIT_USAGE
    root, other = sorted(caught.value.evidence, reverse=True)
    assert root == 'root: is "?"' and other.startswith(path.replace("/", "."))
    words("site", "\n".join(caught.value.to_lines()))


def test_the_source_of_a_value_is_the_most_exact_one() -> None:
    page = {"text": "the pages of Cori", "date": "2018-09", "values": ["archs.*.target", "modules"]}
    guess = {"text": "general knowledge", "date": "2026", "sure": False, "values": ["scheduler.system"]}
    read = site(put(SITE, "sources", {"page": page, "guess": guess}))
    assert str(read.source("archs.knl.target")) == "the pages of Cori, 2018-09"
    assert str(read.source("modules.init")) == "the pages of Cori, 2018-09"
    assert str(read.source("scheduler.system")) == "general knowledge, 2026, unverified"
    assert read.source("archs.knl.mpi.provider") is None
    exact = {"text": "another page", "date": "2020", "values": ["modules.init"]}
    read = site(put(SITE, "sources", {"page": page, "exact": exact}))
    assert str(read.source("modules.init")) == "another page, 2020"
    assert str(read.source("modules.system")) == "the pages of Cori, 2018-09"
    assert read.source("root") is None


def test_proxy_variables_are_set_in_lower_and_upper_case() -> None:
    network = {"compute": "proxy", "proxy": "http://proxy.example:3128"}
    named = dict(site(put(SITE, "network", network)).network.environ)
    assert set(named) == {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}


def with_program(program: str) -> Table:
    """A stack whose proof is this program, with a framework that it trains."""
    name = next(one.name for one in FRAMEWORKS.values() if program in one.programs)
    return put(put(STACK, "proof/program", program), "framework/name", name)


@pytest.mark.parametrize("program", WITHOUT_HOROVOD)
def test_a_stack_that_trains_without_horovod_can_omit_it(program: str) -> None:
    plain = with_program(program)
    assert stack(put(plain, "horovod", None)).horovod is None
    assert stack(plain).horovod == "0.28.1"


@pytest.mark.parametrize("program", sorted(set(PROGRAMS) - set(WITHOUT_HOROVOD)))
def test_a_stack_that_trains_with_horovod_must_name_it(program: str, words: Words) -> None:
    (fault,) = faults(stack, put(with_program(program), "horovod", None))
    assert fault.startswith("horovod: ") and f"`{program}`" in fault
    words("stack", fault)


# Values that must be refused


HIDDEN = ("\n", "\r", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\udc80")


def leaves(table: Table, path: str = "") -> list[str]:
    """The path of every text of a file, and of every first text of a list."""
    found = []
    for key, value in table.items():
        if isinstance(value, dict):
            found += leaves(value, f"{path}{key}/")
        elif isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], str)):
            found.append(f"{path}{key}")
    return found


# Each text of the shipped profiles once, whatever the arch or the source, with the profile that has it.
TEXTS = {
    re.sub("^(archs|sources)/[^/]+", "", path): (name, path)
    for name in PROFILES
    for path in leaves(parsed(name))
    if name != "generic-slurm" and not re.match("sources/.*/values", path)
}


@for_each(("name", "path"), TEXTS.values())
def test_no_text_of_a_profile_may_contain_a_control_character(name: str, path: str) -> None:
    profile = parsed(name)
    old = functools.reduce(lambda table, key: table[key], path.split("/"), profile)
    for hidden in HIDDEN if path == "root" else ("\n", "\x1b"):
        text = f"{old[0] if isinstance(old, list) else old}{hidden}x"
        changed = put(profile, path, [text] if isinstance(old, list) else text)
        found = faults(lambda table: site(table, PROVISION_ROOT="/x"), changed)
        place = path.replace("/", ".") + "[0]" * isinstance(old, list)
        (fault,) = [line for line in found if line.startswith(f"{place}: ")]
        assert repr(hidden) in fault and fault.isprintable()


@for_each("path", leaves(STACK))
def test_no_text_of_a_stack_may_contain_a_control_character(path: str) -> None:
    for hidden in HIDDEN:
        many = path == "pythons"
        text = f"3.11{hidden}"
        (fault,) = faults(stack, put(STACK, path, [text] if many else text))
        assert fault.startswith(f"{path.replace('/', '.')}{'[0]' * many}: ") and repr(hidden) in fault


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("archs/kn\nl", "archs.kn\\nl: "),
        ("archs/knl/queues/q\x1b", "archs.knl.queues.q\\x1b: "),
        ("sources/a\u2028b", "sources.a\\u2028b: "),
        ("new\nline", "new\\nline: "),
        ("archs/knl/environ/A\n", "archs.knl.environ.A\\n: "),
    ],
)
def test_a_key_with_a_control_character_is_one_fault_that_can_be_printed(path: str, fault: str, words: Words) -> None:
    (only,) = faults(site, put(SITE, path, {}))
    assert only.startswith(fault)
    words("site", only)


@pytest.mark.parametrize("number", ["\u0662", "\u00b2"])
def test_digits_of_other_scripts_are_not_numbers(number: str) -> None:
    for path, value in (
        ("archs/knl/job", {"time": f"0{number}:00:00"}),
        ("archs/knl/job", {"memory": f"1{number}G"}),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": [f"8{number}"]}),
        ("retired", f"202{number}"),
    ):
        assert len(faults(site, put(SITE, path, value))) == 1


def test_the_sites_name_is_one_word_of_a_command() -> None:
    assert read_site(SITE, "x", {}, "a b$(id)").typed == "'a b$(id)'"
    assert site(SITE).typed == "cluster"
