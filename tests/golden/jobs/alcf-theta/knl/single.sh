#!/usr/bin/env bash
#COBALT --jobname single-knl
#COBALT -O ./single-knl-$jobid
#COBALT -n 1
#COBALT -t 00:30:00
#COBALT -q debug-cache-quad
#COBALT -A tests
#COBALT --attrs mcdram=cache:numa=quad:filesystems=home,theta-fs0

# One process on the CPUs of one node.
# Written by `provision job single --site alcf-theta --arch knl --account tests`. Submit it with `qsub FILE`.
# Make it executable (`chmod +x`), and leave it in place until the job ends: Cobalt does not copy it.
# Output: runs/JOBID below the folder from which you submit.
# ALCF Theta (Cray XC40, KNL): retired on 2023-12-31.
# The options above:
#   --jobname  the job's name in the queue
#   -O         prefix of the .output, .error and .cobaltlog files
#   -n         number of nodes
#   -t         time limit, after which the scheduler ends the job
#   -q         the queue
#   -A         the account to charge
#   --attrs    the kind of node, and the file systems that the job needs

set -euo pipefail
umask 022

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
submit_folder=$PWD
job_id=${COBALT_JOBID:-by-hand}
script="$submit_folder"/train.py
runs="$submit_folder/runs"
export PROVISION_OUTPUT="$runs/$job_id"
export PROVISION_DATA="${PROVISION_DATA:-$submit_folder/data}"

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
[ -f "$script" ] || stop "there is no training script $script"
mkdir -p "$PROVISION_OUTPUT/checkpoints" "$PROVISION_OUTPUT/tensorboard" # once, before the ranks start
echo "output: $PROVISION_OUTPUT"
if [ -n "${COBALT_JOBID:-}" ] && [ -n "$(ls -A "$PROVISION_OUTPUT/checkpoints")" ]; then
  export PROVISION_RESUME="$PROVISION_OUTPUT/checkpoints" # the scheduler ended this job and has started it again
  echo "this job has run before: it continues from $PROVISION_RESUME"
fi

require_loaded() { # some versions of `module` succeed even if they load nothing
  case ":${LOADEDMODULES:-}:" in
    *":$1:"* | *":$1/"*) ;;
    *) stop "the module $1 was not loaded; \`module avail\` lists those that exist" ;;
  esac
}

# Start from a clean module environment and load exact versions: mixing in others is a known source of errors.
set +u # module systems use unset variables
if ! command -v module >/dev/null 2>&1; then
  # shellcheck source=/dev/null
  source /opt/modules/default/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/opt/modules/default/init/bash
module load miniconda-3.6/conda-4.5.12
require_loaded miniconda-3.6/conda-4.5.12
module list # record the modules in the output
set -u

# Variables that TensorFlow and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the modules
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}" # without what TensorFlow prints in each rank about the CPU
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export OMP_NUM_THREADS=62
export KMP_BLOCKTIME=0
export KMP_AFFINITY=granularity=fine,compact,1,0
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=62

aprun -n 1 -N 1 -d 64 -cc depth \
  python -u "$script"

echo "the job ended well"
