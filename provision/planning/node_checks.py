"""The checks of the node that builds, before anything is built: what would make a build, an import or the proof fail. Pure.

`doctor` prints them for a site, `build` stops at a bad one and prints the notes. Each has a stable name. A check is bad only if
what it rests on is sure; otherwise it is a note.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from provision.errors import Fault
from provision.knowledge.combinations import Combinations
from provision.knowledge.versions import release
from provision.launch.available_modules import describe
from provision.launch.modules import clean_environ
from provision.model.check import Check, State, observed
from provision.model.facts import Facts, Surroundings
from provision.model.quoting import quote_sh
from provision.profile.arch import Arch
from provision.profile.stack import Stack

# What pip and uv download and unpack into TMPDIR: the wheel of TensorFlow for GPUs alone has 0.6 GB, and is unpacked there.
TMP_BYTES = 2_500_000_000
# A path of a socket has at most 107 bytes (unix(7)); MPI's and CUDA's programs add names of up to 50 bytes to TMPDIR.
SOCKET_PATH = 107
NAMES_IN_TMP = 50
# Each rank of Open MPI or MPICH maps a segment of some MB; containers often have 64 MB.
SHARED_MEMORY = 256 * 1024**2
# Not measured: with less than this, compilers of large C++ sources are often killed.
COMPILER_BYTES = 1_000_000_000
PROCESSES = 512
# Packages that replace those of the environment if they come first, beside those of the framework.
SHADOWING = ("horovod", "numpy", "h5py", "mpi4py")
# Variables that programs of the environment read when they run; `clean_environ` removes them for a build.
HOROVOD_RANKS = tuple(
    f"HOROVOD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "GLOO_RENDEZVOUS_ADDR", "CONTROLLER")
)
# TensorFlow for GPUs with its packages has about 25,000 files; an environment with a user's packages has more.
FILES = 50_000
# Each worker of a data pipeline, each connection between ranks and each file of a data set needs one. Debian's default.
OPEN_FILES = 1024
# InfiniBand registers the buffers of each rank; MPI's documentation asks for an unlimited amount.
LOCKED_BYTES = 64 * 1024**2


def seen(state: State, check: str, message: str, *evidence: str, hint: str | None = None) -> Check:
    """What a check of the node saw, by the check's stable name."""
    return observed("node", state, message, *evidence, hint=hint, name=check)


good, note, bad = partial(seen, "good"), partial(seen, "note"), partial(seen, "bad")


def check_node(
    arch: Arch, stack: Stack, facts: Facts, around: Surroundings, known: Combinations, *, runs_here: bool
) -> tuple[Check, ...]:
    """All checks. `runs_here`: whether this machine has the arch's CPU, and not that of a login node."""
    return (
        *_folders(arch, stack, around, facts),
        *check_file_systems(around),
        *_shell(around, facts),
        *_set_by_modules(arch, facts, stack),
        *_home(around, stack),
        *_limits(around, facts, stack),
        *check_loaded(arch, facts, around),
        *_wheel(stack, facts, around, known, runs_here=runs_here),
        *_toolchain(arch, stack, facts, around, known),
    )


def faults_of(checks: Sequence[Check]) -> tuple[Fault, ...]:
    """The checks that stop a build, as faults."""
    return tuple(
        Fault("broken", seen.name.split("-")[0], seen.message, evidence=seen.evidence, hint=seen.hint)
        for seen in checks
        if not seen.passed
    )


def _folders(arch: Arch, stack: Stack, around: Surroundings, facts: Facts) -> Iterator[Check]:
    """The folders in which programs write: TMPDIR and the root."""
    tmp, root = around.tmp, around.root
    local = tmp.path == "/tmp" or tmp.path.startswith("/tmp/")
    elsewhere = '`mkdir -p "$HOME/tmp" && export TMPDIR="$HOME/tmp"`' if local else "`export TMPDIR=/tmp`"
    if not tmp.is_folder or not tmp.writable:
        what = "cannot be written" if tmp.is_folder else "does not exist"
        yield bad("tmp-writable", f"the folder for temporary files `{tmp.path}` {what}", hint=elsewhere)
    else:
        if not tmp.runs:
            yield note(
                "tmp-runs",
                f"programs in `{tmp.path}` cannot be started (mounted with `noexec`)",
                "Horovod is compiled below the root, but MPI and users' builds may start programs in TMPDIR",
                hint=elsewhere,
            )
        if tmp.free_bytes < TMP_BYTES:
            yield note(
                "tmp-space",
                f"`{tmp.path}` has {tmp.free_bytes / 1e9:.1f} GB left; installers unpack up to {TMP_BYTES / 1e9:.1f} GB there",
                hint=f"`df -h {quote_sh(tmp.path)}`; free some space, or {elsewhere}",
            )
        if len(tmp.path.encode()) + NAMES_IN_TMP > SOCKET_PATH:
            yield note(
                "tmp-length",
                f"the path of TMPDIR has {len(tmp.path.encode())} bytes: with names of MPI's files behind it, it can be longer "
                f"than a socket's {SOCKET_PATH}",
                f"TMPDIR: {tmp.path}",
                hint="`export TMPDIR=/tmp`",
            )
        if " " in tmp.path:
            yield note(
                "tmp-spaces",
                f"the path of TMPDIR has a space, which some programs split: `{tmp.path}`",
                hint="`export TMPDIR=/tmp`",
            )
    if root.is_folder and root.writable and not root.runs:
        yield bad(
            "root-runs",
            f"programs below the root cannot be started: the file system of `{root.path}` is mounted with `noexec`",
            hint="`export PROVISION_ROOT=…` to another file system, or set `root` in the profile",
        )
    if " " in facts.place.path:
        # CMake splits the folders that MPI's compiler wrapper names: `includes non-existent path`.
        below = arch.mpi.provider == "pypi" and bool(stack.from_source)
        yield (bad if below else note)(
            "root-spaces",
            f"the path of the root has a space: `{facts.place.path}`",
            "MPI is installed below the root, and what is compiled there splits its path"
            if below
            else "the tool quotes it, but users' own scripts often do not",
            hint="set `root` in the profile to a path without spaces, or `export PROVISION_ROOT=/PATH` if the profile uses it",
        )


def _shell(around: Surroundings, facts: Facts) -> Iterator[Check]:
    """What the caller's shell has set: removed for the build, but users have it too when they load the module."""
    kept = clean_environ(around.shell)
    dropped = sorted(name for name in around.shell if name not in kept and around.shell[name])
    ranks = [name for name in dropped if name in HOROVOD_RANKS]
    if ranks:
        yield note(
            "shell-horovod",
            f"the shell has variables of a Horovod run: {' '.join(ranks)}; the build ignores them",
            "in a job, each rank would take them for its own",
            hint=f"`unset {' '.join(ranks)}`",
        )
    paths = [name for name in ("PYTHONPATH", "PYTHONHOME") if name in dropped]
    if paths:
        yield note(
            "shell-python",
            f"the shell sets {' and '.join(paths)}; the build ignores it, but programs that users start do not",
            *(f"{name}={around.shell[name]}" for name in paths),
            hint=f"remove it from your start-up files; `unset {' '.join(paths)}`",
        )
    others = [name for name in dropped if name not in (*ranks, *paths)]
    if others:
        yield good("shell-build", f"ignored variables of the shell: {' '.join(others)}")
    if around.umask & 0o055:
        yield good(
            "shell-umask",
            f"the shell's umask is {around.umask:04o}; the tool writes with 0022, so that users can read environments",
        )
    if around.locale and not around.locale_works:
        yield note(
            "shell-locale",
            f"the locale `{around.locale}` is not installed on this node",
            "programs print warnings, and some read files as ASCII",
            hint="`export LC_ALL=C.UTF-8`",
        )
    proxies = [name for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY") if around.shell.get(name)]
    if proxies and not (around.shell.get("no_proxy") or around.shell.get("NO_PROXY")):
        yield note(
            "shell-proxy",
            f"the shell has a proxy ({' '.join(proxies)}) but no `no_proxy`: TensorFlow's workers would connect through it",
            hint="in jobs of MultiWorkerMirroredStrategy, `unset http_proxy https_proxy`, or set `no_proxy` to the nodes",
        )
    if around.tool_on_path:
        yield note(
            "shell-tool",
            f"`{around.tool_on_path}` is on PATH: its `python` and `pip` are those of this tool, and hide an environment's",
            hint=f"`mkdir -p ~/bin; ln -s {shlex.quote(around.tool_on_path)}/provision ~/bin`, and put ~/bin on PATH instead",
        )
    if around.shell.get("CONDA_PREFIX") and f"{around.shell['CONDA_PREFIX']}/bin" in facts.environ.get(
        "PATH", ""
    ).split(":"):
        yield note(
            "shell-conda",
            f"a conda environment is active, and its programs are on PATH: `{around.shell['CONDA_PREFIX']}`",
            "its compiler, `ld` or `mpicxx` can be found before the site's",
            hint="`conda deactivate`",
        )


def _set_by_modules(arch: Arch, facts: Facts, stack: Stack) -> Iterator[Check]:
    """Variables that the arch's modules set, and that change what is built or imported. `build_environ` of the profile wins."""
    environ = {**facts.environ, **dict(arch.build_environ)}
    if environ.get("PYTHONHOME"):
        yield bad(
            "modules-python-home",
            f"the modules set PYTHONHOME to `{environ['PYTHONHOME']}`: no other Python starts with it",
            hint="leave the module that sets it out of `archs.<arch>.modules`: `module show` lists what modules set",
        )
    if environ.get("PYTHONPATH"):
        yield note(
            "modules-python-path",
            "the modules set PYTHONPATH: packages there come before those of the environment",
            f"PYTHONPATH={environ['PYTHONPATH']}",
            hint="use a Python module without packages, or leave the module that sets it out of `archs.<arch>.modules`",
        )
    if environ.get("CCL_ROOT"):
        yield bad(
            "modules-ccl",
            "the modules set CCL_ROOT: Horovod's CMake then links oneCCL into every build",
            f"CCL_ROOT={environ['CCL_ROOT']}",
            hint='leave the oneAPI module out of `archs.<arch>.modules`, or set `CCL_ROOT = ""` in `build_environ` of the arch',
        )
    framework = stack.framework.interface
    described = [describe(name) for name in facts.modules] if framework.brings and arch.gpu else []
    older = [one.name for one in described if one.subject in ("cuda", "cudnn", "nccl")]
    if older:
        yield note(
            "modules-cuda",
            f"the wheels of {framework.title} bring CUDA, but the arch loads {' and '.join(f'`{name}`' for name in older)}",
            "libraries of the modules on LD_LIBRARY_PATH go before those of the wheels if they have the same name",
            hint="leave these modules out of an arch that is for PyTorch only; the inspection checks which are loaded",
        )
    flags = [name for name in ("LDFLAGS", "CFLAGS", "CXXFLAGS") if environ.get(name)]
    if flags:
        static = any("-static" in environ[name].split() for name in flags)
        yield (bad if static else note)(
            "modules-flags",
            f"the modules set {' and '.join(flags)}, which the build of Horovod uses"
            + (": it would be linked statically, and could not be imported" if static else ""),
            *(f"{name}={environ[name]}" for name in flags),
        )
    inherited = sorted(name for name in facts.environ if name.startswith("HOROVOD_"))
    if inherited:
        yield note(
            "modules-horovod",
            f"the modules set variables of Horovod: {' '.join(inherited)}",
            "the build sets its own, and other ones change what is built",
        )
    if environ.get("CRAYPE_LINK_TYPE") == "static":
        yield bad(
            "modules-static",
            "the modules set CRAYPE_LINK_TYPE=static: Cray's compiler wrappers make no shared libraries then",
            hint='set `CRAYPE_LINK_TYPE = "dynamic"` in `[archs.<arch>.build_environ]` of the profile',
        )


def _home(around: Surroundings, stack: Stack) -> Iterator[Check]:
    """Packages in the user's home, which hide those of an environment from programs without PYTHONNOUSERSITE."""
    shadowing = (*SHADOWING, *(name for one in stack.frameworks for name in one.shadowing))
    critical = [name for name in around.user_packages if name.replace("-", "_") in shadowing]
    if critical:
        yield note(
            "home-packages",
            f"your home has packages that could replace those of an environment: {' '.join(critical)}",
            f"in {around.user_site}; the module sets PYTHONNOUSERSITE=1, so that they do not",
            hint=f"`python3 -m pip uninstall {' '.join(critical)}`, if you do not need them",
        )


def _limits(around: Surroundings, facts: Facts, stack: Stack) -> Iterator[Check]:
    """Limits of this node: memory, processes, shared memory."""
    shared, memory = around.shared_memory_bytes, around.available_memory_bytes
    if shared is not None and shared < SHARED_MEMORY:
        yield note(
            "limit-shared-memory",
            f"/dev/shm has {shared / 1024**2:.0f} MiB; ranks of MPI on one node exchange data there",
            hint="in a container: `--shm-size=1g` (Docker), or bind the host's /dev/shm",
        )
    if stack.from_source and memory is not None and memory < COMPILER_BYTES:
        yield note(
            "limit-memory",
            f"this node has {memory / 1e9:.1f} GB of memory left; compilers of large sources can be killed",
            hint="build on another node; `Killed signal terminated program cc1plus` is the message when it does not suffice",
        )
    if around.process_limit is not None and around.process_limit < max(PROCESSES, 8 * facts.cores):
        yield note(
            "limit-processes",
            f"you may start {around.process_limit} processes and threads (`ulimit -u`); "
            f"{stack.framework.interface.title} starts several for each of {facts.cores} cores",
            hint="`ulimit -u $(ulimit -H -u)`, or build in a job",
        )


def _wheel(
    stack: Stack, facts: Facts, around: Surroundings, known: Combinations, *, runs_here: bool
) -> Iterator[Check]:
    """What the framework's wheel needs of the system: glibc, and AVX."""
    framework, title = stack.framework, stack.framework.interface.title
    row = known.of_framework(framework.name, framework.version)
    if row is not None and around.glibc is not None and release(around.glibc) < release(row.glibc):
        yield (note if "glibc" in row.unsure else bad)(
            "wheel-glibc",
            f"{framework.title} needs glibc {row.glibc} or newer, but `{facts.host}` has {around.glibc}",
            f"source: {row.source}, {row.checked}",
            hint=f"choose a stack with an older {title} (`provision compat`), or a container",
        )
    x86 = any(name in facts.cpu.features for name in ("sse2", "ssse3"))
    if framework.interface.needs_avx and runs_here and x86 and "avx" not in facts.cpu.features:
        yield bad(
            "wheel-avx",
            f"the CPU of `{facts.host}` has no AVX, which wheels of {title} need: imports end with `Illegal instruction`",
            f"source: {title}'s page of pip: wheels for x86_64 need AVX",
            hint="build on a node with a newer CPU; virtual machines can hide AVX",
        )


def _toolchain(arch: Arch, stack: Stack, facts: Facts, around: Surroundings, known: Combinations) -> Iterator[Check]:
    """Compiler, MPI and driver against each other."""
    compiler, target = facts.compiler, facts.target_of(arch.target)
    dropped = known.dropped(target, compiler.family, compiler.version) if compiler else None
    if compiler and dropped:
        yield (bad if dropped.sure else note)(
            "compiler-target",
            f"{compiler.family} {compiler.version} no longer builds for `{target}`; {dropped.since} was the first without it",
            f"source: {dropped.source}",
            hint=f"load an older compiler: change `archs.{arch.name}.modules` in the profile",
        )
    title, since = stack.framework.interface.title, stack.framework.interface.cxx17_since
    needs_cxx17 = stack.horovod is not None and release(stack.framework.version)[:2] >= since
    if compiler and compiler.family == "gcc" and needs_cxx17 and release(compiler.version) < (8,):
        yield note(
            "compiler-age",
            f"gcc {compiler.version} may be too old for the headers of {stack.framework.title}: they are C++17",
            f"Horovod 0.28 asks for g++ 8 or newer from {title} {'.'.join(map(str, since))} on",
            hint=f"load gcc 9 or newer: change `archs.{arch.name}.modules` in the profile",
        )
    yield from _mpi(arch, facts, around)
    framework, gpu = stack.framework, facts.gpu
    brought = None if stack.uses_cuda_of_site else framework.interface.cuda_of(framework.version)
    cuda = None if arch.gpu is None else brought or (gpu.cuda_version if gpu else None)
    row = known.of_cuda(cuda) if cuda else None
    if row and around.driver and release(around.driver) < release(row.driver):
        yield (bad if row.sure else note)(
            "driver-cuda",
            f"the driver {around.driver} of `{facts.host}` is too old for CUDA {cuda}, which needs {row.driver}",
            *((f"CUDA {cuda} comes with the wheels of {framework.title}",) if brought else ()),
            f"source: {row.source}",
            hint=f"choose a stack with an older {title} (`provision compat`), or ask the site for a newer driver"
            if brought
            else f"load an older CUDA module with a {title} for it, or ask the site for a newer driver",
        )


def _mpi(arch: Arch, facts: Facts, around: Surroundings) -> Iterator[Check]:
    """Whether one MPI is in use, and can be linked dynamically."""
    if facts.mpi is None:
        return
    words = facts.mpi.show.split()
    if "-static" in words:
        yield bad(
            "mpi-static",
            f"`{facts.mpi.cxx}` links statically: Horovod would not be a library that Python can load",
            facts.mpi.show,
        )
    families = {
        family: name
        for name in facts.modules
        for family, beginnings in (
            ("Open MPI", ("openmpi", "OpenMPI", "ompi")),
            ("MPICH", ("mpich", "MPICH", "cray-mpich", "intel-mpi", "impi", "mvapich")),
        )
        if name.startswith(beginnings)
    }
    if len(families) > 1:
        yield bad(
            "mpi-two",
            f"the arch loads two MPIs: {' and '.join(f'`{name}`' for name in families.values())}",
            hint=f"leave one of them out of `archs.{arch.name}.modules` in the profile",
        )
    starts = arch.launcher.name in ("mpiexec", "mpirun")
    folder = facts.mpi.cxx.rpartition("/")[0]
    if starts and around.mpiexec and around.mpiexec.rpartition("/")[0] != folder:
        yield note(
            "mpi-launcher",
            f"`mpiexec` is `{around.mpiexec}`, but the compiler wrapper is `{facts.mpi.cxx}`: they may be of two MPIs",
            "with the launcher of another MPI, every rank is rank 0 of 1",
            hint=f"`{around.mpiexec} --version`; correct `archs.{arch.name}.modules` in the profile",
        )


def check_file_systems(around: Surroundings) -> Iterator[Check]:
    """Quota, the number of files that may be made, and locks."""
    if around.over_quota:
        yield note(
            "quota",
            "you have used more than your quota on a file system: writes there fail",
            *around.over_quota,
            hint="`quota -s`; free some space, or `export PROVISION_ROOT=…` to a file system of your project",
        )
    for check, folder in (("tmp-files", around.tmp), ("root-files", around.root)):
        if folder.writable and folder.free_files is not None and folder.free_files < FILES:
            yield note(
                check,
                f"only {folder.free_files:,} more files can be made in `{folder.path}`; an environment has about {FILES // 2:,}",
                "the message when there are none left is `No space left on device`",
                hint=f"`df -i '{folder.path}'`; remove old environments: `provision prune`",
            )
    kind, options = around.root_mount[0], around.root_mount[1].split(",")
    without = kind == "lustre" and not {"flock", "localflock"} & set(options)
    if without or (kind in ("nfs", "nfs4") and "nolock" in options):
        yield note(
            "root-locks",
            f"the file system of the root ({kind}) is mounted without locks between nodes, which HDF5 and SQLite use",
            f"mounted with {around.root_mount[1]}; mount.lustre(8), nfs(5)",
            hint="`export HDF5_USE_FILE_LOCKING=FALSE` in jobs, and let only rank 0 write",
        )


def check_loaded(arch: Arch, facts: Facts, around: Surroundings) -> Iterator[Check]:
    """Limits of the user, certificates that are not there, and the stub of the driver in front of the driver."""
    if around.open_files_limit is not None and around.open_files_limit < OPEN_FILES:
        yield note(
            "limit-open-files",
            f"a process may open {around.open_files_limit} files (`ulimit -n`); data pipelines and many ranks need more",
            hint="`ulimit -n $(ulimit -H -n)`",
        )
    locked = around.locked_memory_bytes
    if around.infiniband and locked is not None and locked < LOCKED_BYTES:
        yield note(
            "limit-locked-memory",
            f"a process may lock {locked / 1024**2:.0f} MiB of memory (`ulimit -l`), but this node has InfiniBand, which locks "
            "the buffers of MPI and NCCL",
            hint="`ulimit -l unlimited`; if that is refused, ask the site to raise `memlock` in /etc/security/limits.conf",
        )
    for name, path in around.lost_certificates:
        yield note(
            "shell-certificates",
            f"{name} names a file that does not exist: downloads fail with an error about certificates",
            f"{name}={path}",
            hint=f"`unset {name}`, or set it to the site's bundle",
        )
    path = {**facts.environ, **dict(arch.build_environ)}.get("LD_LIBRARY_PATH", "")
    stubs = [folder for folder in path.split(":") if folder.rstrip("/").endswith("/stubs")]
    if arch.gpu and stubs:
        yield note(
            "modules-stubs",
            "the modules put stubs of CUDA on LD_LIBRARY_PATH: programs load a `libcuda.so` that is no driver, and see no GPU",
            *stubs,
            hint="leave the module that does it out of `archs.<arch>.modules`: `module show` lists what modules set",
        )
