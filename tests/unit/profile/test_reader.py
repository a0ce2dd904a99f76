"""Profiles and stacks: every fault is reported at once with its key path, and misspelt names with the nearest one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.loops import for_each
from provision.errors import EXIT_USAGE, ConfigError
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
from provision.profile.module_system import ModuleSystem, ModuleSystemName
from provision.profile.reader import Faults, Reader
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


def test_a_valid_profile_is_read_with_its_defaults() -> None:
    read = site(SITE)
    knl = read.arch("knl")
    assert (knl.target, knl.modules, knl.launcher.name) == ("mic_knl", ("gcc/12.2.0",), "srun")
    assert (knl.proof.nodes, knl.proof.ranks_per_node, knl.proof.ranks) == (1, 2, 2)


def test_all_faults_of_a_profile_are_reported_at_once(words: Words) -> None:
    table = put(SITE, "archs/knl/proof", {"nodes": 0, "ranks_per_node": "two", "timeout_s": True})
    table = put(table, "archs/haswell/target", None)
    table = put(table, "modules/path", "/site/modulefiles")
    table = put(table, "rooot", "/x")
    with pytest.raises(ConfigError) as caught:
        site(table)
    assert "6 faults in `sites/cluster.toml`" in caught.value.message
    assert caught.value.hint == "edit `sites/cluster.toml`"
    messages = dict(line.split(": ", 1) for line in caught.value.evidence)
    assert set(messages) == {
        "archs.knl.proof.nodes",
        "archs.knl.proof.ranks_per_node",
        "archs.knl.proof.timeout_s",
        "archs.haswell.target",
        "modules.path",
        "rooot",
    }
    assert "`root`" in messages["rooot"]
    assert messages["archs.haswell.target"] == "missing; text is required"
    assert "'two'" in messages["archs.knl.proof.ranks_per_node"]
    words("site", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("name", 3, "name: "),
        ("name", "", "name: "),
        ("name", "../etc", "name: "),
        ("root", None, "root: "),
        ("archs", None, "archs: "),
        ("archs", {}, "archs: "),
        ("archs", ["knl"], "archs: "),
        ("archs/knl", 3, "archs.knl: "),
        ("archs/knl/mpi", None, "archs.knl.mpi.provider: "),
        ("archs/knl/mpi/provider", "sites", "archs.knl.mpi.provider: "),
        ("archs/knl/mpi/provider", "pypi", "archs.knl.mpi.requirements: "),
        ("archs/knl/mpi/famly", "mpich", "archs.knl.mpi.famly: "),
        ("archs/knl/math", "mkl", "archs.knl.math: "),
        ("archs/knl/modules", ["gcc/12", 3], "archs.knl.modules[1]: "),
        (
            "archs/knl/modules",
            ["gcc/12\nrm"],
            "archs.knl.modules[0]: ",
        ),
        ("archs/knl/modules", ["$(reboot)"], "archs.knl.modules[0]: "),
        ("archs/knl/modules", ["gcc;reboot"], "archs.knl.modules[0]: "),
        ("archs/knl/modules", [""], "archs.knl.modules[0]: "),
        ("archs/knl/environ", {"A B": "1"}, "archs.knl.environ.A B: "),
        ("archs/knl/environ", {"A": 1.5}, "archs.knl.environ.A: "),
        ("archs/knl/environ", {"A": True}, "archs.knl.environ.A: "),
        ("archs/knl/environ", {"A": "x\ny"}, "archs.knl.environ.A: "),
        ("archs/knl/job", {"time": "tomorrow"}, "archs.knl.job.time: "),
        ("archs/knl/job", {"constraint": "knl\n#SBATCH"}, "archs.knl.job.constraint: "),
        ("archs/knl/job", {"options": ["--x=1\n--y"]}, "archs.knl.job.options[0]: "),
        ("archs/knl/job", {"options": ["x"]}, "archs.knl.job.options[0]: "),
        (
            "archs/knl/launcher",
            {"name": "arun"},
            "archs.knl.launcher.name: ",
        ),
        ("modules/system", "lmodd", "modules.system: "),
        ("modules/init", None, "modules.init: "),
        ("modules/system", "none", "archs.knl.modules: "),
        (
            "scheduler/system",
            "slrm",
            "scheduler.system: ",
        ),
        ("arch", {}, "arch: "),
        (
            "archs/knl/modules",
            ["Python/3.8.2-GCCcore-9.3.0", "CUDA/10.1.243", "TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4"],
            "archs.knl.modules: ",
        ),
        ("modules/use", ["/m"], "modules.use: "),
        ("modules/load", ["gcc"], "modules.load: "),
        ("modules/paths", ["/m"], "modules.paths: "),
        ("modules/reset", "purged", "modules.reset: "),
        ("scheduler/required", ["acount"], "scheduler.required[0]: "),
        ("scheduler/forbidden", ["time"], "scheduler.forbidden: "),
        ("archs/knl/unload", ["atp; reboot"], "archs.knl.unload[0]: "),
        ("archs/knl/node", {"sockets": 1}, "archs.knl.node.cores: "),
        ("archs/knl/node", {"cores": 68, "sockets": 3}, "archs.knl.node.cores: "),
        ("archs/knl/node", {"cores": 68, "threads": 4}, "archs.knl.node.threads: "),
        ("archs/knl/gpu", {"model": "a100"}, "archs.knl.gpu.per_node: "),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": ["8.0"]}, "archs.knl.gpu.capabilities[0]: "),
        ("archs/knl/threads", {"owner": "me"}, "archs.knl.threads.owner: "),
        ("archs/knl/job", {"memory": "lots"}, "archs.knl.job.memory: "),
        ("archs/knl/job", {"filesystems": ["a b"]}, "archs.knl.job.filesystems[0]: "),
        ("archs/knl/queues", {"debug": {"time": "long"}}, "archs.knl.queues.debug.time: "),
        ("archs/knl/queues", {"flat": {"constraint": "a b"}}, "archs.knl.queues.flat.constraint: "),
        (
            "archs/knl/queues",
            {"debug": {"least_nodes": 4, "most_nodes": 2}},
            "archs.knl.queues.debug.most_nodes: ",
        ),
        ("network", {"compute": "proxy"}, "network.proxy: "),
        ("network", {"compute": "proxy", "proxy": "http://x y"}, "network.proxy: "),
        (
            "network",
            {"proxy": "http://a:pw@h:1"},
            "network.proxy: ",
        ),
        ("root", "${HF_TOKEN}/x", "root: "),
        ("archs/knl/environ", {"HF_TOKEN": "x"}, "archs.knl.environ.HF_TOKEN: "),
        ("archs/knl/environ", {"A": "http://a:pw@h"}, "archs.knl.environ.A: "),
        ("files", {"umask": "888"}, "files.umask: "),
        ("files", {"group": "a b"}, "files.group: "),
        ("files", {"admins": ["alice", "-rf"]}, "files.admins[1]: "),
        ("files", {"scratch": "/scratch/$(id)"}, "files.scratch: "),
        ("files", {"scratch": "/scratch/`id`"}, "files.scratch: "),
        ("container", {"image": "/x.sif"}, "container.command: "),
        ("container", {"command": "docker", "image": "x"}, "container.command: "),
        (
            "container",
            {"command": "shifter", "image": "x", "overlay": "/o"},
            "container.overlay: ",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay": "/o", "setup": "env.sh"},
            "container.setup: ",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay_templates": {"15GB-500K": "/t"}},
            "container.overlay: ",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay_templates": {"large": "/t"}},
            "container.overlay_templates.large: ",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "write_options": ["fakeroot"]},
            "container.write_options[0]: ",
        ),
        ("network", {"download_node": "g dtn"}, "network.download_node: "),
        (
            "strategies",
            {"horovd": {}},
            "strategies.horovd: ",
        ),
        (
            "strategies",
            {"cray-ml-plugin": {}},
            "strategies.cray-ml-plugin.modules: ",
        ),
        ("strategies", {"horovod": {"modules": ["x/1"]}}, "strategies.horovod.modules: "),
        (
            "strategies",
            {"cray-ml-plugin": {"modules": ["x/1"], "example": "/a.py"}},
            "strategies.cray-ml-plugin.example: ",
        ),
        ("files", {"burst_buffer_from": 8}, "files.burst_buffer_from: "),
        ("strategies", {"horovod": {"status": "good"}}, "strategies.horovod.status: "),
        ("retired", "long ago", "retired: "),
        ("sources", {"page": {"date": "2018", "values": ["name"]}}, "sources.page.text: "),
        (
            "sources",
            {"page": {"text": "a page", "date": "lately", "values": ["name"]}},
            "sources.page.date: ",
        ),
        (
            "sources",
            {"page": {"text": "a page", "date": "2018-09", "values": ["archs.*.nod"]}},
            "sources.page.values[0]: ",
        ),
    ],
)
def test_a_fault_in_a_profile_is_reported_with_its_key_path(path: str, value: object, fault: str, words: Words) -> None:
    found = [line for line in faults(site, put(SITE, path, value)) if line.startswith(fault)]
    assert found
    words("site", "\n".join(found))


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("module", "tensorflow", "module: "),
        ("module", "tensorflow/2/3", "module: "),
        ("pythons", ["3.11", "311"], "pythons[1]: "),
        ("pythons", None, "pythons: "),
        ("framework", None, "framework: "),
        ("framework/name", "torch", "framework.name: "),
        ("framework/version", 2.15, "framework.version: "),
        ("horovod/version", "latest", "horovod.version: "),
        ("proof/digits", None, "proof.digits: "),
        ("proof/mnist/epochs", 0, "proof.mnist.epochs: "),
        ("proof/mnist/min_accuracy", "high", "proof.mnist.min_accuracy: "),
        ("proof/mnist/batchsize", 3, "proof.mnist.batchsize: "),
        ("proof/program", "pytorch", "proof.program: "),
        ("proof/program", "cray-ml-plugin", "proof.program: "),
        ("sumary", "x", "sumary: "),
    ],
)
def test_a_fault_in_a_stack_is_reported_with_its_key_path(path: str, value: object, fault: str, words: Words) -> None:
    found = [line for line in faults(stack, put(STACK, path, value)) if line.startswith(fault)]
    assert found
    words("stack", "\n".join(found))


@pytest.mark.parametrize(
    ("path", "value"),
    [
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
    (fault,) = faults(site, put(table, path, value))
    assert "must be " in fault


def test_a_variable_is_expanded_and_an_unset_variable_is_a_fault(words: Words) -> None:
    table = put(SITE, "root", "${SCRATCH}/provision")
    assert site(table, SCRATCH="/site/scratch").root == "/site/scratch/provision"
    (fault,) = faults(site, table)
    assert fault.startswith("root: ") and "`${SCRATCH}`" in fault
    words("site", fault)


@pytest.mark.parametrize("value", ["relative/root", ""])
def test_a_wrong_variable_is_named_and_not_the_profile(value: str, words: Words) -> None:
    table = put(SITE, "root", "${SCRATCH}/x")
    with pytest.raises(ConfigError) as caught:
        site(table, SCRATCH=value)
    (fault,) = caught.value.evidence
    assert fault.startswith("root: ") and "`${SCRATCH}`" in fault and value in fault
    assert "`export SCRATCH=/PATH`" in str(caught.value.hint)
    words("site", "\n".join(caught.value.to_lines()))
    with pytest.raises(ConfigError) as caught:
        site(put(table, "rooot", "x"), SCRATCH=value)
    assert caught.value.hint == "edit `sites/cluster.toml`"
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", "here/${SCRATCH}"), SCRATCH="/x")
    assert caught.value.hint == "edit `sites/cluster.toml`"


@pytest.mark.parametrize("root", ["${SCRATCH}/a\tb", "${SCRATCH}/" + 300 * "x", "${MY_TOKEN}/x", "/${SCRATCH}/a\nb"])
def test_the_hint_is_no_variable_that_is_right(root: str) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", root), SCRATCH="/s", MY_TOKEN="/t")
    assert caught.value.hint == "edit `sites/cluster.toml`"


def test_all_variables_that_are_not_set_are_in_the_hint(words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", "/${A}/${B}"))
    assert "`export A=/PATH`, `export B=/PATH`" in str(caught.value.hint)
    words("site", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize("value", ["", "here"])
def test_a_wrong_root_of_the_tool_can_be_unset(value: str, words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", "${PROVISION_ROOT}"), PROVISION_ROOT=value)
    for command in ("`unset PROVISION_ROOT`", "`export PROVISION_ROOT=/PATH`"):
        assert command in str(caught.value.hint)
    words("site", "\n".join(caught.value.to_lines()))


def test_a_variable_in_a_plain_text_is_not_expanded() -> None:
    assert site(put(SITE, "title", "costs ${MONEY}"), MONEY="1").title == "costs ${MONEY}"


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


def test_an_unknown_arch_is_refused_with_the_known_ones(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`cluster` .* `kln` .*`knl`") as caught:
        site(SITE).arch("kln")
    assert caught.value.kind == "unknown-arch"
    words("site", "\n".join(caught.value.to_lines()))
    assert "known archs: `knl`, `haswell`" in caught.value.evidence


def test_an_arch_must_be_named_if_there_are_several(words: Words) -> None:
    with pytest.raises(ConfigError, match="`knl`, `haswell`") as caught:
        site(SITE).arch(None)
    assert caught.value.kind == "ambiguous-arch"
    words("site", "\n".join(caught.value.to_lines()))
    assert caught.value.hint == "add `--arch knl`"
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


def test_a_profile_that_is_not_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('name = "x"\nroot = \n')
    with pytest.raises(ConfigError, match="is not TOML") as caught:
        shipped.load_site(str(path))
    assert "line 2" in caught.value.evidence[0]


def test_a_profile_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_bytes(b'name = "\xff"\n')
    with pytest.raises(ConfigError, match="cannot be read"):
        shipped.load_site(str(path))


def test_an_empty_profile_is_refused_with_all_required_keys(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text("")
    with pytest.raises(ConfigError) as caught:
        shipped.load_site(str(path))
    assert [line.split(":")[0] for line in caught.value.evidence] == ["name", "root", "stack", "archs"]


def test_an_unknown_site_is_refused_with_the_nearest_one(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`lokal` .*`local`") as caught:
        shipped.load_site("lokal")
    assert caught.value.kind == "unknown-site"
    words("site", caught.value.message)
    assert "local" in caught.value.evidence[0]
    assert caught.value.hint


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


def test_a_choice_is_one_of_its_texts_also_if_it_is_at_fault() -> None:
    faults = Faults("x.toml")
    reader = Reader({"right": "b", "wrong": "c", "many": ["b", "c", "a"]}, faults)
    assert reader.choice("right", ("a", "b")) == "b"
    assert reader.choice("wrong", ("a", "b"), "b") == "a"
    assert reader.choice("absent", ("a", "b"), "b") == "b"
    assert reader.choice("needed", ("a", "b")) == "a"
    assert reader.optional_choice("absent", ("a", "b")) is None
    assert reader.optional_choice("right", ("a", "b")) == "b"
    assert reader.choices("many", ("a", "b")) == ("b", "a", "a")
    assert [line.split(":")[0] for line in faults.lines] == ["wrong", "needed", "many[1]"]


@pytest.mark.parametrize(("name", "kind"), [("lmod", "lua"), ("environment-modules", "tcl"), ("none", "tcl")])
def test_only_lmod_reads_lua(name: ModuleSystemName, kind: str) -> None:
    assert ModuleSystem(name=name, init=None, path=()).module_kind == kind


def test_an_unknown_stack_is_refused_with_the_known_ones(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"`tensorflow-2\.15`") as caught:
        shipped.load_stack("tensorflow-2.15")
    assert caught.value.kind == "unknown-stack"
    words("stack", caught.value.message)
    assert "tensorflow-2.15.1" in caught.value.evidence[0]


def test_own_profiles_override_shipped_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "config" / "sites"
    folder.mkdir(parents=True)
    text = Path(shipped.load_site("local").origin).read_text(encoding="utf-8")
    (folder / "local.toml").write_text(text.replace("this machine: no", "OURS: no"))
    monkeypatch.setenv("PROVISION_CONFIG", str(folder.parent))
    monkeypatch.chdir(tmp_path)
    assert shipped.load_site("local").title.startswith("OURS")


@for_each("name", shipped.known("sites"))
def test_every_shipped_profile_has_no_fault(name: str, monkeypatch: pytest.MonkeyPatch, words: Words) -> None:
    monkeypatch.setenv("EXAMPLE_SITE", "/site")
    if name == "generic-slurm":
        with pytest.raises(ConfigError, match="30 values") as caught:
            shipped.load_site(name)
        words("site", caught.value.message)
        return
    read = shipped.load_site(name)
    assert read.name == name
    assert shipped.load_stack(read.stack).name == read.stack
    for arch in read.archs:
        require_known_target(arch.target)


# Optional parts of a profile


def test_optional_keys_of_a_profile_have_defaults() -> None:
    read = site(SITE)
    knl = read.arch("knl")
    assert (knl.node, knl.gpu, knl.queues, knl.unload, knl.provided, knl.build_environ) == (None, None, (), (), (), ())
    assert (knl.stack, site(put(SITE, "archs/knl/stack", "x-gpu")).arch("knl").stack) == (None, "x-gpu")
    assert (knl.threads.owner, knl.threads.omp, knl.compiler.cc) == ("job", 0, "gcc")
    assert (read.modules.reset, read.scheduler.memory, read.scheduler.gpus) == ("purge", "none", "none")
    assert (read.network.login, read.network.compute, read.network.environ) == ("yes", "yes", ())
    assert (read.files.root_writable, read.files.scratch, read.container, read.sources) == (
        "everywhere",
        None,
        None,
        (),
    )
    assert read.strategy("horovod").status == "supported"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("archs/knl/modules", ["gcc/12.2.0", "?"]),
        ("archs/knl/job", {"account": "?"}),
        ("archs/knl/node", {"cores": "?"}),
        ("root", "?"),
    ],
)
def test_a_blank_is_refused_with_its_key_path(path: str, value: object, words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, path, value))
    assert "1 value " in caught.value.message and "`sites/cluster.toml`" in caught.value.message
    words("site", "\n".join(caught.value.to_lines()))
    assert caught.value.evidence[0].startswith(path.replace("/", "."))
    assert caught.value.exit_code == EXIT_USAGE


def test_all_blanks_are_reported_at_once() -> None:
    table = put(put(SITE, "root", "?"), "archs/haswell/target", "?")
    assert faults(site, table) == ('root: is "?"', 'archs.haswell.target: is "?"')


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


@pytest.mark.parametrize("program", WITHOUT_HOROVOD)
def test_a_stack_that_trains_without_horovod_can_omit_it(program: str) -> None:
    plain = put(STACK, "proof/program", program)
    assert stack(put(plain, "horovod", None)).horovod is None
    assert stack(plain).horovod == "0.28.1"


@pytest.mark.parametrize("program", sorted(set(PROGRAMS) - set(WITHOUT_HOROVOD)))
def test_a_stack_that_trains_with_horovod_must_name_it(program: str, words: Words) -> None:
    (fault,) = faults(stack, put(put(STACK, "proof/program", program), "horovod", None))
    assert fault.startswith("horovod: ") and f"`{program}`" in fault
    words("stack", fault)


def test_a_missing_version_and_a_misspelt_program_are_one_fault_each(words: Words) -> None:
    plain = put(STACK, "proof/program", "mirrored")
    (fault,) = faults(stack, put(plain, "horovod", {}))
    assert fault.startswith("horovod.version: ")
    words("stack", fault)
    (fault,) = faults(stack, put(put(STACK, "proof/program", "mirored"), "horovod", None))
    assert "'mirored'" in fault and "`mirrored`" in fault
    words("stack", fault)


# Values that must be refused


def test_a_stack_without_a_python_is_refused() -> None:
    assert faults(stack, put(STACK, "pythons", []))


@pytest.mark.parametrize("module", ["../2.15.1", "tensorflow/..", "-x/1", "./."])
def test_a_module_name_that_leaves_its_folder_is_refused(module: str) -> None:
    assert faults(stack, put(STACK, "module", module))


@pytest.mark.parametrize("bar", [-1, 95, float("nan"), float("inf")])
def test_an_accuracy_outside_0_to_1_is_refused(bar: float) -> None:
    assert faults(stack, put(STACK, "proof/mnist/min_accuracy", bar))


def test_a_lock_for_mpi_is_refused_if_the_site_provides_mpi() -> None:
    assert faults(site, put(SITE, "archs/knl/mpi/requirements", "mpich-5.0.2"))


def test_a_module_name_that_looks_like_an_option_is_refused() -> None:
    assert faults(site, put(SITE, "archs/knl/modules", ["--help"]))


def test_an_arch_name_with_a_space_is_reported_with_its_key_path() -> None:
    lines = faults(site, put(SITE, "archs", {"k nl": SITE["archs"]["knl"]}))
    assert lines[0].startswith("archs.k nl: ")


def test_one_mistake_is_one_fault() -> None:
    assert len(faults(site, put(SITE, "root", "${SCRATCH}"))) == 1
    assert len(faults(site, put(SITE, "archs", "knl"))) == 1
    assert len(faults(site, put(SITE, "archs/knl/mpi", None))) == 1


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


WHOLE: Table = put(
    put(
        put(put(SITE, "title", "A cluster"), "files", {"scratch": "/s", "temporary": "/t"}),
        "network",
        {"proxy": "http://p:1", "host": "h", "download_node": "d", "compute": "proxy"},
    ),
    "archs/knl",
    {
        **SITE["archs"]["knl"],
        "python": "python3",
        "environ": {"A": "b"},
        "launcher": {"name": "srun", "options": ["--mpi=pmi2"]},
        "job": {"account": "a", "partition": "p", "time": "1:00", "options": ["--x=y"], "memory": "1G"},
        "gpu": {"per_node": 4, "capabilities": ["80"], "cuda_home": "/c", "nccl_home": "/n"},
        "compiler": {"cxx": "g++", "cc": "gcc"},
        "queues": {"q": {"time": "1:00"}},
    },
)
WHOLE["strategies"] = {"horovod": {"note": "a note"}}
WHOLE["container"] = {"command": "apptainer", "image": "/i", "overlay": "/o", "setup": "/ext3/env.sh", "bind": ["/b"]}


@for_each("path", leaves(WHOLE))
def test_no_text_of_a_profile_may_contain_a_control_character(path: str) -> None:
    assert site(WHOLE)
    key = path.replace("/", ".")
    for hidden in HIDDEN:
        *folders, last = path.split("/")
        table = WHOLE
        for folder in folders:
            table = table[folder]
        many = isinstance(table[last], list)
        text = f"{table[last][0] if many else table[last]}{hidden}x"
        place = f"{key}[0]" if many else key
        found = faults(site, put(WHOLE, path, [text] if many else text))
        (fault,) = [line for line in found if line.startswith(f"{place}: ")]
        assert repr(hidden) in fault
        assert fault.isprintable()


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


def test_a_variable_with_a_line_break_is_a_fault_of_the_value_that_uses_it(words: Words) -> None:
    (fault,) = faults(
        lambda table: site(table, PROVISION_ROOT="/x\ntouch /y"), put(SITE, "root", "${PROVISION_ROOT}/z")
    )
    assert fault.startswith("root: ") and r"'\n'" in fault
    words("site", fault)


@pytest.mark.parametrize("number", ["\u0662", "\u00b2"])
def test_digits_of_other_scripts_are_not_numbers(number: str, words: Words) -> None:
    for path, value in (
        ("archs/knl/job", {"time": f"0{number}:00:00"}),
        ("archs/knl/job", {"memory": f"1{number}G"}),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": [f"8{number}"]}),
        ("retired", f"202{number}"),
    ):
        (fault,) = faults(site, put(SITE, path, value))
        words("site", fault)


def test_the_sites_name_is_one_word_of_a_command() -> None:
    assert read_site(SITE, "x", {}, "a b$(id)").typed == "'a b$(id)'"
    assert site(SITE).typed == "cluster"
