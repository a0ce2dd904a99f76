#!/usr/bin/env bash
#SBATCH --job-name=packages-cpu                # the job's name in the queue
#SBATCH --output=./packages-cpu-%j.out         # the output file (%j: the job ID)
#SBATCH --nodes=1                              # number of nodes
#SBATCH --ntasks-per-node=1                    # processes (ranks) on each node
#SBATCH --time=01:00:00                        # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=4                      # CPUs for each process
#SBATCH --account=tests                        # the account to charge
#SBATCH --mem=16G                              # memory on each node: 4G for each CPU
#SBATCH --comment=preemption=yes;requeue=true  # required by the site profile

# Your own packages, in an overlay over the one with TensorFlow 2.21.0 at NYU Torch: 2 GB, 100,000 files.
# Written by `provision job overlay --site nyu-torch --arch cpu --account tests`. Submit it with `sbatch FILE`.
# To download its packages before the job, run `bash FILE fetch` on a login node.

set -euo pipefail
umask 022
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the overlay

# The new overlay, the one with TensorFlow, which is only read, and the sources of the packages.
overlay="$SCRATCH/own.ext3"
base="/scratch/$USER/tensorflow/tensorflow.ext3"
template="/share/apps/overlay-fs-ext3/overlay-2GB-100K.ext3.gz" # 2 GB, 100,000 files
lock=/site/requirements/overlay-tensorflow-2.15.1-py311.txt # the packages of the one with TensorFlow
requirements=/home/ada/requirements.txt
packages="$(dirname "$overlay")/packages-bbbbbbbb-2fa0d8e0"

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}

# Download everything that needs the network and check each checksum; the folder gets its final name when it is complete.
fetch() {
  printf '%s  %s\n' 2fa0d8e00cba27ae0fd2ce1e9ac6ea6f876e95254cdfff2ba9c7fc03745393af "$lock" | sha256sum --check --quiet ||
    stop "$lock has changed since this script was written; write the script again"
  printf '%s  %s\n' bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "$requirements" | sha256sum --check --quiet ||
    stop "$requirements has changed since this script was written; write the script again"
  beside="$packages.$(hostname)-$$"
  trap 'rm -rf "$beside"' EXIT
  mkdir -p "$beside"
  kept="$(dirname "$base")/packages-2fa0d8e00cba/miniforge.sh"
  if [ -f "$kept" ]; then
    cp "$kept" "$beside/miniforge.sh"
  else
    curl --fail --location --silent --show-error --retry 3 --output "$beside/miniforge.sh" \
      https://github.com/conda-forge/miniforge/releases/download/25.3.0-3/Miniforge3-25.3.0-3-Linux-x86_64.sh
  fi
  printf '%s  %s\n' 1b57f8cb991982063f79b56176881093abb1dc76d73fda32102afde60585b5a1 "$beside/miniforge.sh" |
    sha256sum --check --quiet || stop "the downloaded file is not the released Miniforge 25.3.0-3"
  bash "$beside/miniforge.sh" -b -p "$beside/miniforge3"
  "$beside/miniforge3/bin/python" -m venv "$beside/tools"
  python="$beside/tools/bin/python"
  # What is in the overlay counts as installed, with exactly these versions: pip selects only the packages that are missing, and
  # refuses what needs other versions.
  sed -n 's/^\([A-Za-z0-9._-]*\)\(\[[^]]*\]\)\{0,1\}==\([^ ;\\]*\).*/\1==\3/p' "$lock" >"$beside/constraints.txt"
  "$python" - "$beside" <<'PYTHON'
import pathlib
import sys

beside = pathlib.Path(sys.argv[1])
for line in (beside / "constraints.txt").read_text().splitlines():
    name, version = line.split("==")
    info = beside / "installed" / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
PYTHON
  PYTHONPATH="$beside/installed" "$python" -m pip install --no-input --no-cache-dir --dry-run \
    --report "$beside/report.json" --constraint "$beside/constraints.txt" --requirement "$requirements" ||
    stop "pip cannot add the packages of $requirements to those of the overlay; it names them above"
  "$python" - "$beside" <<'PYTHON'
import json
import pathlib
import sys

beside = pathlib.Path(sys.argv[1])
lines = []
for package in json.loads((beside / "report.json").read_text())["install"]:
    archive = package["download_info"].get("archive_info", {})
    sha256 = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
    line = "{name}=={version}".format(**package["metadata"])
    lines.append(f"{line} --hash=sha256:{sha256}" if sha256 else line)
(beside / "requirements.txt").write_text("".join(f"{line}\n" for line in sorted(lines)))
PYTHON
  [ -s "$beside/requirements.txt" ] || stop "every package of $requirements is in the overlay with TensorFlow already"
  # One without a hash has none in the index either: then pip checks no hashes.
  grep -qv -e --hash "$beside/requirements.txt" && sed -i 's/ --hash=.*//' "$beside/requirements.txt"
  "$python" -m pip wheel --no-input --no-cache-dir --no-deps --wheel-dir "$beside/wheels" \
    --requirement "$beside/requirements.txt"
  rm -rf "$beside/miniforge3" "$beside/tools" "$beside/installed" "$beside/report.json" "$beside/miniforge.sh"
  mv -T "$beside" "$packages" || [ -d "$packages" ] # another process may have been faster
}

if [ "${1:-}" = fetch ]; then
  if [ ! -d "$packages" ]; then
    fetch
  fi
  echo "fetched: $packages"
  exit
fi

# Only one job makes an overlay, and an existing overlay is never written again: running jobs may use it.
[ ! -e "$overlay" ] || stop "the overlay $overlay already exists; move it away to make a new one"
[ -f "$base" ] || stop "there is no overlay $base; make it first: provision job overlay --site nyu-torch --arch cpu"
[ -f "$template" ] || stop "there is no template $template"

set +u # module systems use unset variables
if ! command -v module >/dev/null 2>&1; then
  # shellcheck source=/dev/null
  source /share/apps/lmod/lmod/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/share/apps/lmod/lmod/init/bash
module purge >/dev/null 2>&1 || true
module list # record the modules in the output
set -u
image="/share/apps/images/cuda-13.3.1-ubuntu-26.04.sif"
[ -f "$image" ] || stop "there is no container image $image"
command -v apptainer >/dev/null || stop "there is no apptainer on this node"

if [ ! -d "$packages" ]; then
  (fetch)
fi

mkdir -p "$(dirname "$overlay")"
building="$overlay.building" # in the same folder, so that the last step is a rename
mkdir "$building" 2>/dev/null || stop "another job is making this overlay, or was killed; if it was killed: rm -r $building"
trap 'rm -rf "$building"' EXIT
gunzip --stdout "$template" >"$building/overlay.ext3"

# Install into the new overlay, inside the container: it gets only what is new, and the one with TensorFlow stays as it is.
compare=$(
  cat <<'PYTHON'
import pathlib
import sys
from importlib import metadata

wrong = []
for name in sys.argv[1:]:
    for line in pathlib.Path(name).read_text().splitlines():
        package, wanted = line.split(" ")[0].split("==")
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            version = "missing"
        if version != wanted:
            wrong.append(f"{package} is {version}, but should be {wanted}")
if wrong:
    sys.exit("error: this is not the overlay of the lock of this script: " + "; ".join(wrong))
PYTHON
)
install=$(
  cat <<'INSIDE'
source /ext3/env.sh && set -euo pipefail
python -c "$1" "$2/constraints.txt"
python -m pip install --no-input --no-cache-dir --no-index --no-deps "$2"/wheels/*.whl
INSIDE
)
apptainer exec --fakeroot --bind "$packages" --overlay "$base:ro" --overlay "$building/overlay.ext3" "$image" \
  /bin/bash -c "$install" bash "$compare" "$packages"

# Check both as jobs use them, read-only: each package has its version, and those of the overlay with TensorFlow are the same.
check=$(
  cat <<'INSIDE'
source /ext3/env.sh && set -euo pipefail
python -c "$1" "$2/constraints.txt" "$2/requirements.txt"
INSIDE
)
apptainer exec --bind "$packages" --overlay "$base:ro" --overlay "$building/overlay.ext3:ro" "$image" \
  /bin/bash -c "$check" bash "$compare" "$packages"
sed 's/^/added: /; s/ --hash=.*//' "$packages/requirements.txt"

mv "$building/overlay.ext3" "$overlay"
echo "made: $overlay"
echo "use it: provision job KIND --overlay $overlay"
