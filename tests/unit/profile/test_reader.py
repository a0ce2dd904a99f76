"""Profiles and stacks: every fault is reported at once with its key path, and misspelt names with the nearest one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


def test_all_faults_of_a_profile_are_reported_at_once() -> None:
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
    assert messages["rooot"] == "is not a known key (did you mean `root`?)"
    assert messages["archs.haswell.target"] == "missing; text is required"
    assert messages["archs.knl.proof.ranks_per_node"] == "must be a whole number, but is 'two'"


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("name", 3, "name: must be text, but is 3"),
        ("name", "", "name: is empty"),
        ("name", "../etc", "name: '../etc' does not have the form"),
        ("root", None, "root: missing; text is required"),
        ("archs", None, "archs: missing; a table is required"),
        ("archs", {}, "archs: contains no arch"),
        ("archs", ["knl"], "archs: must be a table, but is ['knl']"),
        ("archs/knl", 3, "archs.knl: must be a table, but is 3"),
        ("archs/knl/mpi", None, "archs.knl.mpi.provider: missing; text is required"),
        ("archs/knl/mpi/provider", "sites", "archs.knl.mpi.provider: must be one of site, pypi, but is 'sites'"),
        ("archs/knl/mpi/provider", "pypi", "archs.knl.mpi.requirements: missing; with provider `pypi`"),
        ("archs/knl/mpi/famly", "mpich", "archs.knl.mpi.famly: is not a known key (did you mean `family`?)"),
        ("archs/knl/math", "mkl", "archs.knl.math: must be one of onednn, but is 'mkl'"),
        ("archs/knl/modules", ["gcc/12", 3], "archs.knl.modules[1]: must be text, but is 3"),
        (
            "archs/knl/modules",
            ["gcc/12\nrm"],
            "archs.knl.modules[0]: must not contain a line break or another control character, but contains '\\n'",
        ),
        ("archs/knl/modules", ["$(reboot)"], "archs.knl.modules[0]: '$(reboot)' does not have the form"),
        ("archs/knl/modules", ["gcc;reboot"], "archs.knl.modules[0]: 'gcc;reboot' does not have the form"),
        ("archs/knl/modules", [""], "archs.knl.modules[0]: is empty"),
        ("archs/knl/environ", {"A B": "1"}, "archs.knl.environ.A B: is not the name of an environment variable"),
        ("archs/knl/environ", {"A": 1.5}, "archs.knl.environ.A: must be text or a whole number, but is 1.5"),
        ("archs/knl/environ", {"A": True}, "archs.knl.environ.A: must be text or a whole number, but is True"),
        ("archs/knl/environ", {"A": "x\ny"}, "archs.knl.environ.A: must not contain a line break"),
        ("archs/knl/job", {"time": "tomorrow"}, "archs.knl.job.time: 'tomorrow' does not have the form"),
        ("archs/knl/job", {"constraint": "knl\n#SBATCH"}, "archs.knl.job.constraint: "),
        ("archs/knl/job", {"options": ["--x=1\n--y"]}, "archs.knl.job.options[0]: "),
        ("archs/knl/job", {"options": ["x"]}, "archs.knl.job.options[0]: 'x' does not have the form"),
        (
            "archs/knl/launcher",
            {"name": "arun"},
            "archs.knl.launcher.name: must be one of srun, mpiexec, mpirun, none, but is 'arun'",
        ),
        ("modules/system", "lmodd", "modules.system: must be one of none, lmod, environment-modules, but is 'lmodd'"),
        ("modules/init", None, "modules.init: missing; the file that bash sources"),
        ("modules/system", "none", 'archs.knl.modules: lists modules, but `modules.system` is "none"'),
        (
            "scheduler/system",
            "slrm",
            "scheduler.system: must be one of none, slurm, pbs, cobalt, but is 'slrm' (did you mean `slurm`?)",
        ),
        ("arch", {}, "arch: is not a known key (did you mean `archs`?)"),
        (
            "archs/knl/modules",
            ["Python/3.8.2-GCCcore-9.3.0", "CUDA/10.1.243", "TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4"],
            "archs.knl.modules: mixes toolchain generations: `Python/3.8.2-GCCcore-9.3.0` is of 2020a, `TensorFlow/",
        ),
        ("modules/use", ["/m"], "modules.use: is not a known key (did you mean `modules.path`?)"),
        ("modules/load", ["gcc"], "modules.load: is not a known key (did you mean `archs.ARCH.modules`?)"),
        ("modules/paths", ["/m"], "modules.paths: is not a known key (did you mean `path`?)"),
        ("modules/reset", "purged", "modules.reset: must be one of purge, reset, none, but is 'purged'"),
        ("scheduler/required", ["acount"], "scheduler.required[0]: must be one of account, partition"),
        ("scheduler/forbidden", ["time"], "scheduler.forbidden: contains `time`, which is also in `required`"),
        ("archs/knl/unload", ["atp; reboot"], "archs.knl.unload[0]: 'atp; reboot' does not have the form"),
        ("archs/knl/node", {"sockets": 1}, "archs.knl.node.cores: missing; a whole number is required"),
        ("archs/knl/node", {"cores": 68, "sockets": 3}, "archs.knl.node.cores: is for the whole node, but 68 is not"),
        ("archs/knl/node", {"cores": 68, "threads": 4}, "archs.knl.node.threads: is for the whole node, but 4 is not"),
        ("archs/knl/gpu", {"model": "a100"}, "archs.knl.gpu.per_node: missing; a whole number is required"),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": ["8.0"]}, "archs.knl.gpu.capabilities[0]: '8.0' does not"),
        ("archs/knl/threads", {"owner": "me"}, "archs.knl.threads.owner: must be one of module, job, but is 'me'"),
        ("archs/knl/job", {"memory": "lots"}, "archs.knl.job.memory: 'lots' does not have the form"),
        ("archs/knl/job", {"filesystems": ["a b"]}, "archs.knl.job.filesystems[0]: 'a b' does not have the form"),
        ("archs/knl/queues", {"debug": {"time": "long"}}, "archs.knl.queues.debug.time: 'long' does not have the form"),
        ("archs/knl/queues", {"flat": {"constraint": "a b"}}, "archs.knl.queues.flat.constraint: 'a b' does not have"),
        (
            "archs/knl/queues",
            {"debug": {"least_nodes": 4, "most_nodes": 2}},
            "archs.knl.queues.debug.most_nodes: is less than `least_nodes` (4)",
        ),
        ("network", {"compute": "proxy"}, "network.proxy: missing; the address of the proxy"),
        ("network", {"compute": "proxy", "proxy": "http://x y"}, "network.proxy: is not an address like http"),
        (
            "network",
            {"proxy": "http://a:pw@h:1"},
            "network.proxy: is not an address like http://proxy.example.org:3128; all",
        ),
        ("root", "${HF_TOKEN}/x", "root: `${HF_TOKEN}` holds a secret"),
        ("archs/knl/environ", {"HF_TOKEN": "x"}, "archs.knl.environ.HF_TOKEN: holds a secret"),
        ("archs/knl/environ", {"A": "http://a:pw@h"}, "archs.knl.environ.A: holds a secret"),
        ("files", {"umask": "888"}, "files.umask: '888' does not have the form"),
        ("files", {"group": "a b"}, "files.group: 'a b' does not have the form"),
        ("files", {"admins": ["alice", "-rf"]}, "files.admins[1]: '-rf' does not have the form"),
        ("files", {"scratch": "/scratch/$(id)"}, "files.scratch: '/scratch/$(id)' does not have the form"),
        ("files", {"scratch": "/scratch/`id`"}, "files.scratch: '/scratch/`id`' does not have the form"),
        ("container", {"image": "/x.sif"}, "container.command: missing; text is required"),
        ("container", {"command": "docker", "image": "x"}, "container.command: must be one of apptainer, singularity"),
        (
            "container",
            {"command": "shifter", "image": "x", "overlay": "/o"},
            "container.overlay: is only for apptainer and",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay": "/o", "setup": "env.sh"},
            "container.setup: must be the path of the file in the overlay to source before Python",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay_templates": {"15GB-500K": "/t"}},
            "container.overlay: missing; the path of the overlay to make from `overlay_templates`",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "overlay_templates": {"large": "/t"}},
            "container.overlay_templates.large: is not a valid size: give the size and the number of files, as in `15GB-500K`",
        ),
        (
            "container",
            {"command": "apptainer", "image": "x", "write_options": ["fakeroot"]},
            "container.write_options[0]: 'fakeroot' does not have the form",
        ),
        ("network", {"download_node": "g dtn"}, "network.download_node: 'g dtn' does not have the form"),
        (
            "strategies",
            {"horovd": {}},
            "strategies.horovd: is not a known strategy (did you mean `horovod`?); known: single",
        ),
        (
            "strategies",
            {"cray-ml-plugin": {}},
            "strategies.cray-ml-plugin.modules: missing; a plug-in comes from modules",
        ),
        ("strategies", {"horovod": {"modules": ["x/1"]}}, "strategies.horovod.modules: is only for plug-ins"),
        (
            "strategies",
            {"cray-ml-plugin": {"modules": ["x/1"], "example": "/a.py"}},
            "strategies.cray-ml-plugin.example: must begin with a `$VARIABLE`",
        ),
        ("files", {"burst_buffer_from": 8}, "files.burst_buffer_from: needs a burst buffer, but `files.burst_buffer`"),
        ("strategies", {"horovod": {"status": "good"}}, "strategies.horovod.status: must be one of recommended"),
        ("retired", "long ago", "retired: 'long ago' does not have the form"),
        ("sources", {"page": {"date": "2018", "values": ["name"]}}, "sources.page.text: missing; text is required"),
        (
            "sources",
            {"page": {"text": "a page", "date": "lately", "values": ["name"]}},
            "sources.page.date: 'lately' does not have the form",
        ),
        (
            "sources",
            {"page": {"text": "a page", "date": "2018-09", "values": ["archs.*.nod"]}},
            "sources.page.values[0]: 'archs.*.nod' is not in this profile",
        ),
    ],
)
def test_a_fault_in_a_profile_is_reported_with_its_key_path(path: str, value: object, fault: str) -> None:
    assert any(line.startswith(fault) for line in faults(site, put(SITE, path, value)))


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("module", "tensorflow", "module: 'tensorflow' does not have the form"),
        ("module", "tensorflow/2/3", "module: 'tensorflow/2/3' does not have the form"),
        ("pythons", ["3.11", "311"], "pythons[1]: '311' does not have the form"),
        ("pythons", None, "pythons: missing; a list of texts is required"),
        ("framework", None, "framework: missing; a table is required"),
        ("framework/name", "torch", "framework.name: must be one of tensorflow, but is 'torch'"),
        ("framework/version", 2.15, "framework.version: must be text, but is 2.15"),
        ("horovod/version", "latest", "horovod.version: 'latest' does not have the form"),
        ("proof/digits", None, "proof.digits: missing; a table is required"),
        ("proof/mnist/epochs", 0, "proof.mnist.epochs: must be at least 1, but is 0"),
        ("proof/mnist/min_accuracy", "high", "proof.mnist.min_accuracy: must be a number, but is 'high'"),
        ("proof/mnist/batchsize", 3, "proof.mnist.batchsize: is not a known key (did you mean `batch_size`?)"),
        ("proof/program", "pytorch", f"proof.program: must be one of {', '.join(PROGRAMS)}, but is 'pytorch'"),
        ("proof/program", "cray-ml-plugin", "proof.program: `cray-ml-plugin` is only for job scripts"),
        ("sumary", "x", "sumary: is not a known key (did you mean `summary`?)"),
    ],
)
def test_a_fault_in_a_stack_is_reported_with_its_key_path(path: str, value: object, fault: str) -> None:
    assert any(line.startswith(fault) for line in faults(stack, put(STACK, path, value)))


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


def test_a_variable_is_expanded_and_an_unset_variable_is_a_fault() -> None:
    table = put(SITE, "root", "${SCRATCH}/provision")
    assert site(table, SCRATCH="/site/scratch").root == "/site/scratch/provision"
    assert "root: `${SCRATCH}` is not set in the environment" in faults(site, table)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("relative/root", "root: must be an absolute path, but is 'relative/root/x' (from `${SCRATCH}`)"),
        ("", "root: `${SCRATCH}` is empty in the environment"),
    ],
)
def test_a_wrong_variable_is_named_and_not_the_profile(value: str, fault: str) -> None:
    table = put(SITE, "root", "${SCRATCH}/x")
    with pytest.raises(ConfigError) as caught:
        site(table, SCRATCH=value)
    assert caught.value.evidence == (fault,)
    assert caught.value.hint == "`export SCRATCH=/PATH`; or edit `sites/cluster.toml`"
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


def test_all_variables_that_are_not_set_are_in_the_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", "/${A}/${B}"))
    assert caught.value.hint == "`export A=/PATH`, `export B=/PATH`; or edit `sites/cluster.toml`"


@pytest.mark.parametrize("value", ["", "here"])
def test_a_wrong_root_of_the_tool_can_be_unset(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, "root", "${PROVISION_ROOT}"), PROVISION_ROOT=value)
    assert caught.value.hint == "`unset PROVISION_ROOT` for the default folder, or `export PROVISION_ROOT=/PATH`"


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


def test_an_unknown_arch_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"site `cluster` has no arch `kln` \(did you mean `knl`\?\)") as caught:
        site(SITE).arch("kln")
    assert "known archs: `knl`, `haswell`" in caught.value.evidence


def test_an_arch_must_be_named_if_there_are_several() -> None:
    with pytest.raises(ConfigError, match="has several archs: `knl`, `haswell`") as caught:
        site(SITE).arch(None)
    assert caught.value.hint == "add `--arch knl`"
    assert site(put(SITE, "archs/haswell", None)).arch(None).name == "knl"


def test_an_unknown_target_is_refused_with_the_nearest_one() -> None:
    require_known_target("native")
    require_known_target("mic_knl")
    with pytest.raises(
        ConfigError, match=r"`haswel` is not a CPU target that archspec knows \(did you mean `haswell`\?\)"
    ):
        require_known_target("haswel")


def test_no_fact_of_an_unknown_target_is_made_up() -> None:
    for ask in (
        lambda: family_of("zen9", "x86_64"),
        lambda: flags_for("zen9", "gcc", "12.2.0"),
        lambda: is_foreign("zen3", "zen9"),
        lambda: missing_features("zen9", ()),
        lambda: features_of("zen9"),
    ):
        with pytest.raises(ConfigError, match=r"`zen9` is not a CPU target that archspec knows"):
            ask()
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


def test_an_unknown_site_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"there is no site `lokal` \(did you mean `local`\?\)") as caught:
        shipped.load_site("lokal")
    assert "local" in caught.value.evidence[0]
    assert caught.value.hint


@pytest.mark.parametrize(("kind", "shipped_name"), [("site", "local"), ("stack", "tensorflow-2.15.1")])
def test_a_copy_that_still_has_the_name_of_its_original_is_refused(
    kind: str, shipped_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        assert caught.value.hint == f'set `name = "ours"` in it, or rename the file to `{shipped_name}.toml`'
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


def test_an_unknown_stack_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"there is no stack `tensorflow-2\.15`") as caught:
        shipped.load_stack("tensorflow-2.15")
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
def test_every_shipped_profile_has_no_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_SITE", "/site")
    if name == "generic-slurm":
        with pytest.raises(ConfigError, match="has 30 values to fill in"):
            shipped.load_site(name)
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
def test_a_blank_is_refused_with_its_key_path(path: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        site(put(SITE, path, value))
    assert caught.value.message == "`sites/cluster.toml` has 1 value to fill in"
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
def test_a_stack_that_trains_with_horovod_must_name_it(program: str) -> None:
    (fault,) = faults(stack, put(put(STACK, "proof/program", program), "horovod", None))
    assert fault == (
        f"horovod: missing; `proof.program` is `{program}`, but only `single`, `mirrored` and `multiworker` train without it"
    )


def test_a_missing_version_and_a_misspelt_program_are_one_fault_each() -> None:
    plain = put(STACK, "proof/program", "mirrored")
    assert faults(stack, put(plain, "horovod", {})) == ("horovod.version: missing; text is required",)
    (fault,) = faults(stack, put(put(STACK, "proof/program", "mirored"), "horovod", None))
    assert fault.endswith("is 'mirored' (did you mean `mirrored`?)")


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
        assert fault == f"{place}: must not contain a line break or another control character, but contains {hidden!r}"
        assert fault.isprintable()


@for_each("path", leaves(STACK))
def test_no_text_of_a_stack_may_contain_a_control_character(path: str) -> None:
    for hidden in HIDDEN:
        many = path == "pythons"
        text = f"3.11{hidden}"
        (fault,) = faults(stack, put(STACK, path, [text] if many else text))
        assert fault.startswith(f"{path.replace('/', '.')}{'[0]' * many}: must not contain a line break or another")


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("archs/kn\nl", "archs.kn\\nl: is not a valid name of an arch"),
        ("archs/knl/queues/q\x1b", "archs.knl.queues.q\\x1b: is not a valid name of a queue"),
        ("sources/a\u2028b", "sources.a\\u2028b: is not a valid name of a source"),
        ("new\nline", "new\\nline: is not a known key"),
        ("archs/knl/environ/A\n", "archs.knl.environ.A\\n: is not the name of an environment variable"),
    ],
)
def test_a_key_with_a_control_character_is_one_fault_that_can_be_printed(path: str, fault: str) -> None:
    (only,) = faults(site, put(SITE, path, {}))
    assert only.startswith(fault)


def test_a_variable_with_a_line_break_is_a_fault_of_the_value_that_uses_it() -> None:
    (fault,) = faults(
        lambda table: site(table, PROVISION_ROOT="/x\ntouch /y"), put(SITE, "root", "${PROVISION_ROOT}/z")
    )
    assert fault == ("root: must not contain a line break or another control character, but contains '\\n'")


@pytest.mark.parametrize("number", ["\u0662", "\u00b2"])
def test_digits_of_other_scripts_are_not_numbers(number: str) -> None:
    for path, value in (
        ("archs/knl/job", {"time": f"0{number}:00:00"}),
        ("archs/knl/job", {"memory": f"1{number}G"}),
        ("archs/knl/gpu", {"per_node": 4, "capabilities": [f"8{number}"]}),
        ("retired", f"202{number}"),
    ):
        (fault,) = faults(site, put(SITE, path, value))
        assert "does not have the form" in fault


def test_the_sites_name_is_one_word_of_a_command() -> None:
    assert read_site(SITE, "x", {}, "a b$(id)").typed == "'a b$(id)'"
    assert site(SITE).typed == "cluster"
