"""The paths of everything below the root of a site. Paths only: nothing here accesses a disk.

envs/<arch>/<name>/<version>-<fingerprint>/   an environment; its records are in .provision/
modules/<arch>/{lua,tcl}/                     what users load: one symbolic link to a generation
modules/.generations/<arch>/<number>/         every state that was ever published
wheels/<abi key>/                             compiled Horovod wheels
cache/                                        source packages, fetched packages (wheelhouse/) and data sets
build/, logs/, locks/, jobs/                  builds in progress, their logs, their locks, generated job scripts
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.profile.module_system import ModuleKind

# The program that runs another one with the image of an environment; its folder is on PATH while the module is loaded.
DELIVER = "provision-deliver"
DELIVER_TEMPLATE = "modulefiles/deliver.sh.j2"
# What describes the images: the folder that each replaces, its hash and its size.
IMAGES = "images.json"
KINDS: tuple[ModuleKind, ...] = ("lua", "tcl")


@dataclass(frozen=True, slots=True)
class EnvironmentId:
    """The name of one environment: `knl/tensorflow/2.15.1-1a2b3c4d5e`."""

    arch: str
    name: str
    version: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.arch}/{self.name}/{self.version}-{self.fingerprint}"

    @property
    def base(self) -> str:
        """The hash of the identity: the fingerprint without the number of a rebuild."""
        return self.fingerprint.partition(".")[0]

    @property
    def number(self) -> int:
        """1 for the first build of an identity, 2 for the first rebuild."""
        number = self.fingerprint.partition(".")[2]
        return int(number) if number.isascii() and number.isdigit() else 1

    def rebuilt(self, number: int) -> EnvironmentId:
        """The environment of this identity with the number of a build."""
        fingerprint = self.base if number == 1 else f"{self.base}.{number}"
        return EnvironmentId(self.arch, self.name, self.version, fingerprint)

    @property
    def pointer(self) -> str:
        """What users get by loading the module: `<arch>/<name>/<version>` points to one environment."""
        return f"{self.arch}/{self.name}/{self.version}"

    @classmethod
    def parse(cls, text: str) -> EnvironmentId:
        """The inverse of `str`. Raises `ValueError` for anything else."""
        arch, name, last = text.split("/")
        version, separator, fingerprint = last.rpartition("-")
        if not separator:
            raise ValueError(text)
        return cls(arch, name, version, fingerprint)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one root."""

    root: PurePosixPath

    def prefix(self, env: EnvironmentId) -> PurePosixPath:
        """The directory of the environment."""
        return self.root / f"envs/{env}"

    def records_folder(self, env: EnvironmentId) -> PurePosixPath:
        """The folder of an environment's records: plan, receipts, lock, verdict, record."""
        return self.root / f"envs/{env}/.provision"

    def candidate(self, env: EnvironmentId, kind: str) -> PurePosixPath:
        """The modulepath with only this environment's modulefile, for its proof; nobody but the builder can write there."""
        return self.records_folder(env) / "candidate" / kind

    def modules(self, arch: str) -> PurePosixPath:
        """The pointer to the published generation; the modulepaths of users are `lua` and `tcl` below it."""
        return self.root / "modules" / arch

    def generations(self, arch: str) -> PurePosixPath:
        """The folder of all published generations."""
        return self.root / "modules" / ".generations" / arch

    def wheel(self, abi_key: str) -> PurePosixPath:
        """The folder of one compiled wheel."""
        return self.root / "wheels" / abi_key

    def images(self, env: EnvironmentId) -> PurePosixPath:
        """The folder of the images of an environment, their description, and the program that runs another one with them."""
        return self.records_folder(env) / "images"

    def build(self, env: EnvironmentId) -> PurePosixPath:
        """The folder in which Horovod is compiled for this environment."""
        return self.root / "build" / env.arch / f"{env.name}-{env.version}-{env.fingerprint}"

    def log(self, env: EnvironmentId, step: str) -> PurePosixPath:
        """The log of one step."""
        return self.root / "logs" / env.arch / f"{env.name}-{env.version}-{env.fingerprint}" / f"{step}.log"

    def events(self, env: EnvironmentId, token: str) -> PurePosixPath:
        """The events of the build that holds the lock with the claim of this token, for those who wait for it."""
        return self.log(env, "x").parent / f"events-{token}.jsonl"

    def lock(self, env: EnvironmentId) -> PurePosixPath:
        """The lock that a build of this environment holds."""
        return self.root / "locks" / f"{env.arch}-{env.name}-{env.version}-{env.fingerprint}.lock"

    def pin(self, env: EnvironmentId) -> PurePosixPath:
        """The file with the reason why an environment must not be removed."""
        return self.root / "pins" / env.arch / f"{env.name}-{env.version}-{env.fingerprint}"

    def upgrade(self, stack: str) -> PurePosixPath:
        """The folder of the last upgrade of a stack: how far it came, its locks in `after/`, and the ones before in `before/`."""
        return self.root / "upgrades" / stack

    def verified(self, env: EnvironmentId) -> PurePosixPath:
        """What the last `provision verify` found of an environment."""
        return self.root / "verified" / env.arch / f"{env.name}-{env.version}-{env.fingerprint}.json"

    @property
    def sources(self) -> PurePosixPath:
        """Downloaded source packages."""
        return self.root / "cache" / "sources"

    @property
    def wheelhouse(self) -> PurePosixPath:
        """Packages that were fetched for builds without network, and a receipt for each completely fetched lock."""
        return self.root / "cache" / "wheelhouse"

    def installers(self, user: str) -> PurePosixPath:
        """Where pip and uv keep what they downloaded and unpacked, if the user chose no other place."""
        return self.root / "cache" / "installers" / user

    @property
    def data(self) -> PurePosixPath:
        """Data sets."""
        return self.root / "cache" / "data"

    @property
    def spack(self) -> PurePosixPath:
        """The site's own Spack: its checkouts, the Python that runs it, and the file that says which are in use."""
        return self.root / "spack"

    @property
    def spack_store(self) -> PurePosixPath:
        """The packages that Spack installed, of all archs: their paths contain the target."""
        return self.root / "spack" / "store"

    @property
    def spack_cache(self) -> PurePosixPath:
        """What Spack may lose: a mirror of sources, its index of packages, an empty home."""
        return self.root / "cache" / "spack"

    def provided(self, arch: str) -> PurePosixPath:
        """What was found out about the modules with which the site itself provides TensorFlow for this arch."""
        return self.root / "provided" / arch

    @property
    def jobs(self) -> PurePosixPath:
        """A folder for each user who submits: see `jobs_of`."""
        return self.root / "jobs"

    def jobs_of(self, user: str) -> PurePosixPath:
        """Job scripts that this user's `--submit` wrote; for each job its output (`.out`) and its events (`.events.jsonl`).

        Only this user can write it: the scheduler writes the output as the user, through any link that is at its path.
        """
        return self.jobs / user


def modulefile_path(modulepath: PurePosixPath, kind: str, name: str, version: str) -> PurePosixPath:
    """The file of the module `name/version` on a modulepath of this kind."""
    return modulepath / name / (f"{version}.lua" if kind == "lua" else version)
