"""spack.yaml and the generated packages: what Spack reads, and none of the traps that were met with it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import PurePosixPath

import pytest

from golden_files import (
    GPU_FACTS,
    PATCH_OF_ALL,
    PATCH_OF_THE_NEWEST,
    Golden,
    Words,
    facts_of,
    gpu_request,
    gpu_site,
    local_site,
    lock_of,
    request_for,
    slurm_site,
    without_horovod,
)
from parts.paths import REPOSITORY
from provision.backends.spack import program
from provision.backends.spack.draft import draft
from provision.backends.spack.environment_yaml import OWN, SpackEnvironment, scalar, shown_here, write_yaml
from provision.backends.spack.externals import module_changes, version_in
from provision.backends.spack.repository import PIP_WHEEL, repository_files, sources_of
from provision.errors import PlanError
from provision.machine.configuration import shipped
from provision.model.facts import Cpu, Existing, Facts, SpackFacts
from provision.model.layout import Layout
from provision.model.operation import CheckSpackLock, RunSpack, TryMpi
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.profile.site import Site

SPACK = SpackFacts(
    root="/site/root/spack/checkout/9cf6633",
    version="1.2.0.dev0",
    commit="9cf66332df3dd988248617fc93400045be59ebab",
    python="/site/root/spack/python/bin/python",
    sets=(("CRAY_MPICH_DIR", "/opt/cray/mpich"),),
    prepends=(("LD_LIBRARY_PATH", "/site/mpich/lib:/site/gcc/lib64"),),
)


def spack_request(request: Request) -> Request:
    """The same request for the backend `spack`."""
    return dataclasses.replace(request, stack=dataclasses.replace(request.stack, backend="spack"))


def facts(site: Site, **changes: object) -> Facts:
    """The hand-made machine, with a Spack."""
    return facts_of(site, **{"spack": SPACK, **changes})


def yaml_of(shown: SpackEnvironment) -> str:
    """The text of spack.yaml at a prefix."""
    return write_yaml(shown, OWN)


def slurm_shown() -> SpackEnvironment:
    """The environment for a cluster with Slurm and modules."""
    site = slurm_site()
    return shown_here(spack_request(request_for(site)), facts(site))


def slurm_plan(existing: Existing | None = None, **changes: object) -> Plan:
    """The plan for a cluster with Slurm and modules."""
    site = slurm_site()
    return make_plan(spack_request(request_for(site)), facts(site, **changes), existing or Existing())


def gpu_shown() -> SpackEnvironment:
    """The environment for a machine with GPUs."""
    site = gpu_site()
    return shown_here(spack_request(gpu_request(site)), facts(site, gpu=GPU_FACTS))


def externals(yaml: str) -> list[str]:
    """The specs of the externals in spack.yaml."""
    return re.findall(r"- spec: (.*)", yaml)


@pytest.mark.parametrize("name", ["slurm", "gpu", "local", "mirrored"])
def test_spack_yaml_is_the_golden_one(name: str, golden: Golden) -> None:
    """For a person to review as a diff."""
    local = local_site()
    here = facts(local, cpu=Cpu(target="zen3", features=frozenset()))
    shown = {
        "slurm": slurm_shown,
        "gpu": gpu_shown,
        "local": lambda: shown_here(spack_request(request_for(local)), here),
        "mirrored": lambda: shown_here(spack_request(without_horovod(request_for(local), "mirrored")), here),
    }
    golden(f"spack/{name}.yaml", yaml_of(shown[name]()))


def test_compilers_are_required_by_package_and_never_by_language() -> None:
    """Trap: `all: require: %gcc` ends in the message about externals; a language needs a wrapper from GitHub."""
    files = repository_files([sources_of(spack_request(request_for(slurm_site())))])
    assert "%gcc" not in yaml_of(slurm_shown())
    horovod = files["packages/py_horovod/package.py"]
    assert 'depends_on("site-compiler", type="build")' in horovod
    assert all('provides("site-compiler")' in files[f"packages/{name}/package.py"] for name in ("gcc", "llvm"))
    assert not re.search(r'depends_on\("(c|cxx|fortran)"', horovod)


def test_horovod_is_compiled_with_the_wrapper_that_the_probe_found() -> None:
    """Trap: at the prefix /usr there may be another MPI; Spack would look for /usr/bin/mpicxx."""
    assert "cxx: /site/mpich/bin/mpicxx" in yaml_of(slurm_shown())
    operations = [operation for step in slurm_plan().steps for operation in step.operations]
    (tried,) = (operation for operation in operations if isinstance(operation, TryMpi))
    assert tried.wrapper == "/site/mpich/bin/mpicxx"
    assert tried.libraries == ("/site/mpich/lib/libmpi.so.12.2.2",)
    assert (tried.nodes, tried.ranks_per_node) == (2, 1)
    names = [step.name for step in slurm_plan().steps]
    assert names.index("externals") < names.index("concretize")


def test_spack_writes_no_modulefiles() -> None:
    """Three traps: the family as folder of all archs, a hierarchy that merges, packages that are left out of autoload."""
    assert "modules:" not in yaml_of(slurm_shown())
    written = {
        operation["path"].rpartition("/")[2]: operation["text"]
        for step in slurm_plan().to_dict()["steps"]
        for operation in step["operations"]
        if operation["kind"] == "WriteFile"
    }
    assert "enable:: []" in written["modules.yaml"]
    assert "module" not in " ".join(word for run in runs(slurm_plan()) for word in run.argv[6:])


def test_the_modulefile_sets_path_and_never_pythonpath() -> None:
    """Trap: `spack env activate` exports a dist-packages path that does not exist."""
    module = slurm_plan().modulefile
    assert [name for name, _ in module.prepend] == ["PATH"]
    assert "PYTHONPATH" not in dict(module.environ)
    assert not any("activate" in run.argv for run in runs(slurm_plan()))


def test_packages_stand_where_a_virtual_environment_has_them() -> None:
    """Trap: an environment on top of a view cannot import TensorFlow; ours has `bin`, `lib` and `pyvenv.cfg` at its top."""
    view = next(step for step in slurm_plan().steps if step.name == "view")
    links = [operation.argv[-1].rpartition("/")[2] for operation in view.operations if hasattr(operation, "argv")]
    assert links[-3:] == ["bin", "lib", "pyvenv.cfg"]


def test_only_the_push_to_the_build_cache_may_fail() -> None:
    """What was proved is published without it."""
    optional = [run for run in runs(slurm_plan()) if run.without]
    assert [run.argv[run.argv.index("-e") + 2 :][:2] for run in optional] == [("buildcache", "push")]


def test_a_plan_says_how_much_spack_builds_and_about_how_long(words: Words) -> None:
    """Before anything starts; a plan that has nothing to do says nothing."""
    (note,) = slurm_plan().notes
    assert "3 packages" in note and "4 cores" in note
    words("spack", note)
    assert slurm_plan().notes == tuple(slurm_plan().to_dict()["notes"])
    cached = slurm_plan(spack=dataclasses.replace(SPACK, cache="file:///other/buildcache"))
    assert "3 packages from file:///other/buildcache" in cached.notes[0]
    again = slurm_plan(spack=dataclasses.replace(SPACK, took_s=600.0))
    assert "10 min" in again.notes[0]
    words("spack", again.notes[0])


@pytest.mark.parametrize("version", ["4.1 (Cray)", "", "4.1:", "@4", "4.1-", "8~gnu"])
def test_a_version_that_spacks_grammar_refuses_is_named_before_it_runs(version: str, words: Words) -> None:
    site = slurm_site()
    mpi = dataclasses.replace(facts(site).mpi, version=version)  # type: ignore[type-var]
    with pytest.raises(PlanError, match="`mpich`") as error:
        draft(spack_request(request_for(site)), facts(site, mpi=mpi), "haswell")
    assert "archs.haswell.modules" in str(error.value.hint)
    words("spack", "\n".join(error.value.to_lines()))


def test_a_root_whose_path_is_too_long_for_spack_is_named_before_it_runs(words: Words) -> None:
    """Trap: Spack finds that out after it has installed the first package."""
    site = slurm_site()
    for length, refused in ((105, False), (106, True)):
        root = "/" + "r" * (length - 1)
        request = spack_request(request_for(dataclasses.replace(site, root=root)))
        if refused:
            with pytest.raises(PlanError, match="1 character") as error:
                draft(request, facts(site), "haswell")
            words("spack", "\n".join(error.value.to_lines()))
        else:
            draft(request, facts(site), "haswell")


@pytest.mark.parametrize("wrapper", ["/mpicxx", "mpicxx", "/bin/mpicxx", "./bin/mpicxx"])
def test_a_module_that_gives_no_usable_prefix_is_named_before_spack_runs(wrapper: str, words: Words) -> None:
    """Trap: an external without a prefix builds with None/bin/mpicxx."""
    site = slurm_site()
    mpi = dataclasses.replace(facts(site).mpi, cxx=wrapper)  # type: ignore[type-var]
    with pytest.raises(PlanError, match="`mpich`") as error:
        draft(spack_request(request_for(site)), facts(site, mpi=mpi), "haswell")
    assert f"cxx: {wrapper}" in error.value.evidence
    words("spack", "\n".join(error.value.to_lines()))


def test_another_spack_yaml_is_another_environment() -> None:
    """Trap: `--only-concrete` installs a stale lock without a word; the lock is judged again before the install."""
    plan = slurm_plan()
    changed = make_plan(
        spack_request(request_for(slurm_site())),
        facts(slurm_site(), spack=dataclasses.replace(SPACK, commit="0" * 40)),
        Existing(),
    )
    assert plan.prefix != changed.prefix
    install = next(step for step in plan.steps if step.name == "install")
    kinds = [type(operation) for operation in install.operations]
    assert kinds.index(CheckSpackLock) < kinds.index(RunSpack)


@pytest.mark.parametrize("text", ["python@3.11:", "yes", "3.11", "a: b", "x#y", "", "- a", "~x", "*", "0x1f", "1e5"])
def test_what_yaml_would_read_as_something_else_is_quoted(text: str) -> None:
    """Trap: an unquoted spec that ends in a colon is a mapping."""
    assert scalar(text).startswith('"')


def runs(plan: Plan) -> list[RunSpack]:
    """Every run of Spack in a plan."""
    return [operation for step in plan.steps for operation in step.operations if isinstance(operation, RunSpack)]


def test_spack_runs_alone_and_with_the_python_that_has_clingo() -> None:
    """Traps: ~/.spack, a bootstrap of clingo from the network, and stdin from /dev/null in a batch job."""
    for run in runs(slurm_plan()):
        environ = dict(run.environ)
        assert environ["SPACK_DISABLE_LOCAL_CONFIG"] == "1"
        assert environ["SPACK_PYTHON"] == SPACK.python
        assert environ["HOME"].startswith("/site/root/cache/spack/")
        assert environ["SPACK_USER_CACHE_PATH"].startswith("/site/root/cache/spack/")
        assert environ["PATH"] == "/usr/bin:/bin"
        assert "< <(:)" in run.argv[2]


def test_the_record_will_name_spack_and_everything_that_was_generated() -> None:
    """The identity is what the record has."""
    identity = slurm_plan().identity
    assert identity["backend"] == "spack"
    assert list(identity)[:2] == ["recipe", "backend"]
    assert identity["spack"] == f"1.2.0.dev0 {SPACK.commit}"
    assert identity["spack packages"].startswith("generated, sha256 ")
    assert identity["spack.yaml"].startswith("sha256 ")
    assert identity["horovod"].startswith("0.28.1 ")


def test_without_network_a_build_names_what_was_not_fetched() -> None:
    """A mirror that lacks a package: the locks, Horovod's source and pip."""
    assert set(slurm_plan().not_fetched) >= {"horovod-0.28.1.tar.gz", PIP_WHEEL}
    request = request_for(slurm_site())
    here = Existing(
        fetched=frozenset(lock.sha256 for lock in request.locks),
        sources=frozenset((PIP_WHEEL, "horovod-0.28.1.tar.gz")),
    )
    assert slurm_plan(here).not_fetched == ()


def test_a_machine_without_spack_is_refused() -> None:
    """The probe gives the reason."""
    site = slurm_site()
    with pytest.raises(PlanError, match="did not find Spack"):
        draft(spack_request(request_for(site)), facts_of(site), "haswell")


def test_what_modules_change_is_data() -> None:
    """Spack has no module command in a batch job."""
    before = {"PATH": "/usr/bin", "HOME": "/root", "X": "1"}
    after = {
        "PATH": "/site/gcc/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/site/gcc/lib64",
        "X": "2",
        "HOME": "/root",
        "LOADEDMODULES": "gcc/12",
        "_ModuleTable001_": "x",
        "GCC_DIR": "/site/gcc",
    }
    sets, prepends = module_changes(before, after)
    assert sets == (("GCC_DIR", "/site/gcc"), ("X", "2"))
    assert prepends == (("LD_LIBRARY_PATH", "/site/gcc/lib64"), ("PATH", "/site/gcc/bin"))


@pytest.mark.parametrize("after", ["/site/bin:/a:/b", "/site/bin:/a:/b:/a", "/a:/site/bin:/b"])
def test_the_path_of_the_caller_never_comes_into_spack_yaml(after: str) -> None:
    """Lmod drops duplicates from PATH; another caller, or the job, would be another environment."""
    assert module_changes({"PATH": "/a:/b:/a"}, {"PATH": after}) == ((), (("PATH", "/site/bin"),))
    assert module_changes({"PATH": "/a:/b:/a"}, {"PATH": "/a:/b"}) == ((), ())


@pytest.mark.parametrize(
    ("modules", "name", "version"),
    [
        (("PrgEnv-gnu", "gcc-native/12.3"), "gcc(?:core|-native)?", "12.3"),
        (("OpenMPI/4.1.4-GCC-11.3.0",), "gcc(?:core|-native)?", "11.3.0"),
        (("openmpi/gcc/4.1.6",), "openmpi", "4.1.6"),
        (("nccl/2.18.3-cu12",), "nccl", "2.18.3"),
        (("PrgEnv-gnu",), "gcc(?:core|-native)?", None),
    ],
)
def test_the_versions_of_a_profile_come_from_the_names_of_its_modules(
    modules: tuple[str, ...], name: str, version: str | None
) -> None:
    """Only if they are there."""
    assert version_in(modules, name) == version


def test_two_builds_have_no_index_of_packages_in_common() -> None:
    """Trap: `Couldn't find patch for package provision.py-horovod`, since Spack keeps its index by namespace and time."""
    texts = [program.configuration(Layout(PurePosixPath("/site/root")), build, 4) for build in ("/b/one", "/b/two")]
    assert ["misc_cache: /b/one/misc" in texts[0], "misc_cache: /b/two/misc" in texts[1]] == [True, True]


def test_paths_are_padded_for_a_longer_root() -> None:
    """Trap of the build cache: text in a library cannot grow."""
    assert "padded_length: 128" in program.configuration(Layout(PurePosixPath("/site/root")), "/b", 4)
    long = PurePosixPath("/" + "x" * 150)
    assert "padded_length: 179" in program.configuration(Layout(long), "/b", 4)


def test_a_python_that_is_too_old_for_the_generated_pip_is_refused(words: Words) -> None:
    """Python 3.6: at the plan, at the download, and where files are only shown."""
    request = dataclasses.replace(spack_request(request_for(slurm_site())), minor="3.6")
    for refused in (lambda: draft(request, facts(slurm_site()), "haswell"), lambda: sources_of(request)):
        with pytest.raises(PlanError) as error:
            refused()
        names = ("`spack`", "Python 3.7 ", "`haswell`", "Python 3.6")
        assert [name for name in names if name not in error.value.message] == []
        assert "--backend venv`" in str(error.value.hint)
        words("spack", "\n".join(error.value.to_lines()))


def test_one_repository_serves_environments_of_several_stacks() -> None:
    """A patch says to which versions and builds it applies; what is the same for all environments has no condition."""
    cpu, gpu = slurm_shown().sources, gpu_shown().sources
    newer = dataclasses.replace(
        cpu,
        framework=dataclasses.replace(cpu.framework, version="2.19.1"),
        lock=dataclasses.replace(cpu.lock, path="/site/requirements/tensorflow-2.19.1-py311.txt"),
        patches=(PATCH_OF_ALL, PATCH_OF_THE_NEWEST),
    )
    files = repository_files([cpu, gpu, newer])
    horovod = files["packages/py_horovod/package.py"]
    assert re.findall(r'patch\("patches/(\d+)[^"]*"(?:, when="(.*)")?\)', horovod) == [
        ("0001", ""),
        ("0002", "^py-tensorflow@2.19.1"),
        ("0003", "+cuda"),
    ]
    assert re.findall(r'requires\("(.*)"\)', files["packages/py_tensorflow/package.py"]) == [
        "@2.15.1",
        "@2.15.1",
        "@2.19.1",
    ]
    assert set(files) >= set(repository_files([cpu])) | set(repository_files([gpu]))


def torch_request(name: str, site: Site) -> Request:
    """The request for a stack of PyTorch, without mpi4py."""
    stack = dataclasses.replace(shipped.load_stack(name), backend="spack", compiled=())
    lock = lock_of(name, f"torch=={stack.framework.version}", "horovod==0.28.1")
    return dataclasses.replace(spack_request(request_for(site)), stack=stack, lock=lock)


@pytest.mark.parametrize("site", [slurm_site(), gpu_site()], ids=["cpu", "gpu"])
def test_the_wheels_of_pytorch_are_a_package_beside_those_of_tensorflow(site: Site) -> None:
    """Of a repository that serves both; nothing of the site is needed but Python, not even with GPUs."""
    shown = shown_here(torch_request("pytorch-2.14.1", site), facts(site, mpi=None, gpu=None))
    both = slurm_shown().sources, shown.sources
    files = repository_files(both)
    assert {"py_tensorflow", "py_torch"} <= {path.split("/")[1] for path in files if path.startswith("packages/")}
    assert 'class PyTorch(Package):\n    """PyTorch with all' in files["packages/py_torch/package.py"]
    assert '"compileall", "-q", "-x", r"/py312_intrinsics\\.py$", "-j"' in files["packages/py_torch/package.py"]
    assert "pytorch" not in files["packages/py_tensorflow/package.py"]
    text = yaml_of(shown)
    assert "  specs:\n  - py-torch@2.14.1\n" in text
    assert re.search(
        r"    py-torch:\n      buildable: true\n      require: ..target=x86_64., .lock=\S*pytorch-2.14.1", text
    )
    assert re.findall(r"    ([a-z-]+):.*\n      buildable: false\n", text) == ["python", "gcc"]


def test_the_label_of_a_version_is_written_as_spack_allows_it() -> None:
    """Spack stops at `Bad characters in version string: 2.14.1+cpu`."""
    request, site = torch_request("pytorch-2.14.1-cpu", slurm_site()), slurm_site()
    shown = shown_here(request, facts(site))
    assert shown.sources
    package = repository_files([shown.sources])["packages/py_torch/package.py"]
    assert re.findall(r'version\("(.*)"\)|requires\("@(.*)"\)', package) == [("2.14.1-cpu", ""), ("", "2.14.1-cpu")]
    assert "  specs:\n  - py-torch@2.14.1-cpu\n" in yaml_of(shown)


def test_horovod_for_pytorch_is_refused(words: Words) -> None:
    site = slurm_site()
    request = torch_request("pytorch-2.14.1-horovod", site)
    with pytest.raises(PlanError) as error:
        shown_here(request, facts(site))
    words("spack", "\n".join(error.value.to_lines()))


def test_the_shipped_environments_are_those_that_the_tool_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`spack-envs/` of every profile and arch that environments are built for; `provision spack show` writes it."""
    from provision.commands.spack import every_file

    monkeypatch.setenv("EXAMPLE_SITE", "/example")
    folder = REPOSITORY / "spack-envs"
    files, skipped = every_file()
    assert not any("shipped" in line for line in skipped)
    # The locks and the patches are links to those of this repository: their files are no files of this folder.
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"README.md"}
    again = "run `EXAMPLE_SITE=/example provision spack show --all --into spack-envs`, then `git diff`"
    assert written == {name for name in files if "/locks/" not in name and "/patches/" not in name}, again
    for name, text in files.items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name} differs: {again}"
