"""A stand-in for apptainer and singularity, which cannot be had on Debian 12, and for what goes into an overlay.

Its errors are those of Apptainer 1.4.5, whose answers are in tests/recorded/apptainer-1.4.5. The jobs of
tests/real/test_containers_slurm.py ran with that program too, without root's rights (2026-11-28): they ended as here, but `--nv`
adds no library where there is no GPU, and fuse2fs writes the time of a read-only mount into the overlay's superblock.

It does what their manuals say of the options that our scripts use, in real namespaces: a root of its own, that is read-only
and holds the system's folders in place of an image's; a /tmp of its own, HOME, the working folder and what is bound; PATH
of the image, the rest of the environment as the caller has it. An overlay is a real ext3 image; what is
written to `/ext3` is kept beside the stand-in, by the file's inode, not in the file.
Several overlays are stacked by the kernel's overlay file system, as Apptainer does it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from provision.model.lock import Lock, lock_header, parse_lock

PROGRAM = f"""\
#!{sys.executable}
import os, shlex, subprocess, sys
NAME = os.path.basename(sys.argv[0])
STORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "overlays")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", {sys.prefix!r}, {sys.base_prefix!r})
FLAGS, VALUES = ("--nv", "--fakeroot"), ("--overlay", "--bind", "-B")

def fatal(text):
    print("FATAL:   " + text, file=sys.stderr)
    sys.exit(255)

def options(words, flags, values):
    found = []
    while words and words[0].startswith("-"):
        name, equals, value = words.pop(0).partition("=")
        if name in flags:
            found.append((name, None))
        elif name in values:
            found.append((name, value if equals else words.pop(0)))
        else:
            sys.exit(f'Error for command "{{sys.argv[1]}}": unknown flag: {{name}}')
    return found

def pull(words):
    asked = dict(options(words, ("--disable-cache",), ("--arch",)))
    file, source = words if len(words) == 2 else ("image.sif", words[0])
    if not source.startswith("docker://"):
        fatal("unsupported image source: " + source)
    if os.path.exists(file):
        fatal(f'Image file already exists: "{{file}}" - will not overwrite')
    cache = os.environ.get(NAME.upper() + "_CACHEDIR", os.path.expanduser("~/." + NAME))
    os.makedirs(os.path.join(cache, "cache"), exist_ok=True)
    with open(file, "w") as image:
        image.write(f"{{source}} {{asked.get('--arch', '')}}\\n")

def opened(text):
    path, _, mode = text.partition(":")
    said = f"while loading overlay images: failed to open overlay image {{path}}: "
    if not os.path.isfile(path):
        fatal(said + f"failed to retrieve path for {{path}}: lstat {{path}}: no such file or directory")
    with open(path, "rb") as file:
        file.seek(1080)
        if file.read(2) != b"\\x53\\xef":
            fatal(said + "image format not recognized")
        return os.path.join(STORE, str(os.fstat(file.fileno()).st_ino)), mode

def execute(words):
    asked = options(words, FLAGS, VALUES)
    if not words:
        sys.exit(f'Error for command "{{sys.argv[1]}}": requires at least 2 arg(s), only received 0')
    image = words.pop(0)
    if not os.path.isfile(image):
        said = "While checking container encryption: could not open image "
        fatal(said + f"{{image}}: failed to retrieve path for {{image}}: lstat {{image}}: no such file or directory")
    binds = [one for name, value in asked if name in ("--bind", "-B") for one in value.split(",")]
    for one in binds:
        if not os.path.exists(one.split(":")[0]):
            said = f"container creation failed: mount hook function failure: mount {{one}}->{{one}} error: "
            fatal(said + f"while mounting {{one}}: mount source {{one}} doesn't exist")
    overlays = [opened(value) for name, value in asked if name == "--overlay"]
    lines = ["set -e", "root=$(mktemp -d)", "mount -t tmpfs tmpfs $root"]
    lines.append("mkdir -p $root/tmp $root/.singularity.d/libs; mount -t tmpfs tmpfs $root/tmp")
    def mount(source, target=None, more=""):
        source, target = shlex.quote(source), "$root" + shlex.quote(target or source)
        kind = "mkdir -p" if os.path.isdir(shlex.split(source)[0]) else 'mkdir -p "$(dirname ' + target + ')"; touch'
        lines.append(f"{{kind}} {{target}}; mount --rbind {{source}} {{target}}")
        if more:
            lines.append(f"mount -o remount,bind,{{more}} {{target}}")
    seen = [one for one in (*SYSTEM, os.environ["HOME"], os.getcwd()) if os.path.exists(one)]
    for one in dict.fromkeys(seen):
        mount(one)
    for one in binds:
        mount(*one.split(":")[:2])
    written = [value.partition(":")[0] for name, value in asked if name == "--overlay" and not value.endswith(":ro")]
    if len(written) > 1:
        fatal(
            f"while loading overlay images: you can't specify more than one writable overlay, {{written[0]}} contains a "
            f"writable overlay, requires to use '--overlay {{written[1]}}:ro'"
        )
    for store, _ in overlays:
        os.makedirs(store, exist_ok=True)
    if len(overlays) == 1:
        mount(overlays[0][0], "/ext3", "ro" if overlays[0][1] == "ro" else "")
    elif overlays:
        # As addOverlayMount and AddLowerDir of Apptainer (read in 2026-11): a writable one is above all, a read-only
        # one above those before it.
        lower = [store for store, mode in reversed(overlays) if mode == "ro"]
        upper = next((store for store, mode in overlays if mode != "ro"), None)
        text = "lowerdir=" + ":".join(lower)
        if upper:
            work = upper + ".work"
            os.makedirs(work, exist_ok=True)
            text += f",upperdir={{upper}},workdir={{work}}"
        lines.append(f"mkdir -p $root/ext3; mount -t overlay overlay -o {{shlex.quote(text)}} $root/ext3")
    if ("--nv", None) in asked:
        lines.append("touch $root/.singularity.d/libs/libcuda.so.1")
    lines.append("mount -o remount,ro $root")
    lines.append('exec chroot $root /bin/bash -c \\'cd "$0"; exec "$@"\\' ' + shlex.quote(os.getcwd()) + ' "$@"')
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["LD_LIBRARY_PATH"] = "/.singularity.d/libs"
    command = words or ["/bin/sh"]
    done = subprocess.run(["unshare", "-rm", "bash", "-c", "\\n".join(lines), "bash", *command])
    sys.exit(done.returncode)

verb, words = sys.argv[1], sys.argv[2:]
{{"exec": execute, "run": execute, "pull": pull}}.get(verb, lambda words: sys.exit("unknown command: " + verb))(words)
"""

INSTALLER = f"""\
#!/bin/bash
# A stand-in for Miniforge's installer: the Python of the tests in a folder of its own, and a conda that knows two questions.
set -e
[ "$1 $2" = "-b -p" ]
[ ! -e "$3" ]
{sys.executable} -m venv --without-pip "$3"
mkdir -p "$3/etc/profile.d"
touch "$3/etc/profile.d/conda.sh"
cat >"$3/bin/conda" <<'CONDA'
#!/bin/sh
case "$*" in
"config --show channels") printf 'channels:\\n  - conda-forge\\n' ;;
"clean --all --yes") ;;
*) exit 1 ;;
esac
CONDA
chmod +x "$3/bin/conda"
"""

TENSORFLOW = """\
__version__ = "2.15.1"


class test:
    @staticmethod
    def is_built_with_cuda():
        return True
"""


def no_namespaces() -> str | None:
    """Why the stand-in cannot run here, None where it can."""
    done = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
    )
    return f"namespaces cannot be had here: {done.stderr.strip()}" if done.returncode else None


def container_program(name: str, folder: Path) -> Path:
    """The stand-in under this name, in a folder for PATH."""
    place = folder / "bin"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(PROGRAM)
    (place / name).chmod(0o755)
    return place


def template(path: Path) -> Path:
    """A small real ext3 file system, compressed, as sites have them ready."""
    image = path.with_suffix("")
    mke2fs = shutil.which("mke2fs", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "mke2fs"
    subprocess.run([mke2fs, "-q", "-t", "ext3", str(image), "2M"], check=True, capture_output=True)
    path.write_bytes(gzip.compress(image.read_bytes()))
    image.unlink()
    return path


def installer(path: Path) -> str:
    """The stand-in of Miniforge's installer, and its sha256."""
    path.write_text(INSTALLER)
    return hashlib.sha256(INSTALLER.encode()).hexdigest()


def lock_of_wheels(path: Path, *wheels: Path) -> Lock:
    """A lock that pins these wheels, written to `path`."""
    lines = [lock_header("")]
    for one in wheels:
        name, version, *_ = one.name.split("-")
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(one.read_bytes()).hexdigest()}")
    path.write_text("\n".join(lines) + "\n")
    return parse_lock(path.read_text(), str(path))
