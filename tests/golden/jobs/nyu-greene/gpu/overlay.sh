#!/usr/bin/env bash
#SBATCH --job-name=overlay-gpu         # the job's name in the queue
#SBATCH --output=./overlay-gpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=1                      # number of nodes
#SBATCH --ntasks-per-node=1            # processes (ranks) on each node
#SBATCH --time=01:00:00                # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=4              # CPUs for each process
#SBATCH --account=tests                # the account to charge
#SBATCH --mem=16G                      # memory on each node: 4G for each CPU

# An overlay with TensorFlow 2.15.1 for containers at NYU Greene: 10 GB, 400,000 files.
# `--stack NAME` installs another release of TensorFlow, such as tensorflow-2.21.0.
# Written by `provision job overlay --site nyu-greene --arch gpu --account tests`. Submit it with `sbatch FILE`.
# To download its packages before the job, run `bash FILE fetch` on gdtn (`ssh gdtn`).

set -euo pipefail
umask 022
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the overlay

# The overlay and its sources. Every overlay of this lock uses the same packages, which are kept.
overlay="/scratch/$USER/tensorflow-example/tensorflow.ext3"
template="/scratch/work/public/overlay-fs-ext3/overlay-10GB-400K.ext3.gz" # 10 GB, 400,000 files
lock=/site/requirements/overlay-tensorflow-2.15.1-py311.txt
packages="$(dirname "$overlay")/packages-2fa0d8e00cba"

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}

# Download everything that needs the network and check each checksum; the folder gets its final name when it is complete.
fetch() {
  printf '%s  %s\n' 2fa0d8e00cba27ae0fd2ce1e9ac6ea6f876e95254cdfff2ba9c7fc03745393af "$lock" | sha256sum --check --quiet ||
    stop "$lock has changed since this script was written; write the script again"
  beside="$packages.$(hostname)-$$"
  trap 'rm -rf "$beside"' EXIT
  mkdir -p "$beside"
  curl --fail --location --silent --show-error --retry 3 --output "$beside/miniforge.sh" \
    https://github.com/conda-forge/miniforge/releases/download/24.3.0-0/Miniforge3-24.3.0-0-Linux-x86_64.sh
  printf '%s  %s\n' 23367676b610de826f50f7ddc91139a816d4b59bd4c69cc9b6082d9b2e7fe8a3 "$beside/miniforge.sh" |
    sha256sum --check --quiet || stop "the downloaded file is not the released Miniforge 24.3.0-0"
  cp "$lock" "$beside/requirements.txt"
  # The pip of the overlay's Python selects packages that this Python can install; the locked setuptools prepares those without
  # a wheel.
  bash "$beside/miniforge.sh" -b -p "$beside/miniforge3"
  "$beside/miniforge3/bin/python" -m venv "$beside/tools"
  pip=("$beside/tools/bin/python" -m pip --no-input --no-cache-dir)
  sed -n '/^setuptools==/,/[^\\]$/p' "$lock" >"$beside/setuptools.txt"
  download=("${pip[@]}" download --no-deps --no-build-isolation --require-hashes --dest "$beside/wheels")
  "${download[@]}" --requirement "$beside/setuptools.txt"
  "${pip[@]}" install --no-index --no-deps "$beside"/wheels/setuptools-*.whl
  "${download[@]}" --requirement "$beside/requirements.txt"
  rm -rf "$beside/miniforge3" "$beside/tools" "$beside/setuptools.txt"
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
image="/scratch/work/public/singularity/cuda12.1.1-cudnn8.9.0-devel-ubuntu22.04.2.sif"
[ -f "$image" ] || stop "there is no container image $image"
command -v singularity >/dev/null || stop "there is no singularity on this node"

if [ ! -d "$packages" ]; then
  (fetch)
fi

mkdir -p "$(dirname "$overlay")"
building="$overlay.building" # in the same folder, so that the last step is a rename
mkdir "$building" 2>/dev/null || stop "another job is making this overlay, or was killed; if it was killed: rm -r $building"
trap 'rm -rf "$building"' EXIT
gunzip --stdout "$template" >"$building/overlay.ext3"

# Install into the overlay, inside the container: Python from Miniforge, and TensorFlow in a virtual environment of that Python
# (the packages of conda are not changed). All files come from the folder of packages, and pip checks their hashes.
install=$(
  cat <<'INSIDE'
set -euo pipefail
packages=$1 prefix=/ext3
unset PYTHONHOME PYTHONPATH
bash "$packages/miniforge.sh" -b -p "$prefix/miniforge3"
"$prefix/miniforge3/bin/python" -m venv "$prefix/tensorflow"
pip=("$prefix/tensorflow/bin/python" -m pip install --no-input --no-cache-dir --no-index --no-deps)
"${pip[@]}" "$packages"/wheels/setuptools-*.whl # builds the packages without a wheel
"${pip[@]}" --find-links "$packages/wheels" --use-pep517 --no-build-isolation --require-hashes \
  --requirement "$packages/requirements.txt"
"$prefix/miniforge3/bin/conda" clean --all --yes # unpacked packages use up the files of the overlay
cat >/ext3/env.sh <<'SETUP'
# Jobs source this file inside the container, before they start Python.
unset -f which # login nodes export a function `which` that does not work in the container
unset PYTHONHOME PYTHONPATH
export PYTHONNOUSERSITE=1
source /ext3/miniforge3/etc/profile.d/conda.sh
export VIRTUAL_ENV=/ext3/tensorflow
export PATH=/ext3/tensorflow/bin:/ext3/miniforge3/bin:$PATH
SETUP
INSIDE
)
singularity exec --bind "$packages" --overlay "$building/overlay.ext3" "$image" \
  /bin/bash -c "$install" bash "$packages"

# Check the overlay as jobs use it, read-only: its programs come first on PATH, and TensorFlow has the requested version.
check=$(
  cat <<'INSIDE'
source /ext3/env.sh && set -euo pipefail
for program in pip conda python; do
  path=$(type -P "$program") || path=missing
  case $path in
  /ext3/*) ;;
  *) echo "error: $program is $path, but should be in /ext3" >&2 && exit 1 ;;
  esac
done
if HOME=/nowhere conda config --show channels | grep -q defaults; then
  echo "error: conda would use the channel defaults, whose licence is not free" >&2 && exit 1
fi
python - <<'PYTHON'
import sys
import tensorflow as tf

print("TensorFlow", tf.__version__, "on Python", sys.version.split()[0], "in", sys.prefix)
if tf.__version__ != "2.15.1":
    sys.exit("error: TensorFlow 2.15.1 was requested")
if not tf.test.is_built_with_cuda():
    sys.exit("error: this TensorFlow was built without CUDA")
PYTHON
INSIDE
)
singularity exec --overlay "$building/overlay.ext3:ro" "$image" \
  /bin/bash -c "$check"

mv "$building/overlay.ext3" "$overlay"
echo "made: $overlay"
