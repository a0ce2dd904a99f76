#!/usr/bin/env bash
#COBALT --jobname ddp-knl
#COBALT -O ./ddp-knl-$jobid
#COBALT -n 2
#COBALT -t 00:30:00
#COBALT -q debug-cache-quad
#COBALT -A tests
#COBALT --attrs mcdram=cache:numa=quad:filesystems=home,theta-fs0

# PyTorch: 2 processes on 2 nodes, started by aprun.
# Written by `provision job ddp --site alcf-theta --arch knl --account tests`. Submit it with `qsub FILE`.
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

# Variables that PyTorch and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the modules
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export OMP_NUM_THREADS=62
export KMP_BLOCKTIME=0
export KMP_AFFINITY=granularity=fine,compact,1,0
# How the processes find each other (`init_method="env://"`): the first node, a port of this job alone, and their number.
MASTER_ADDR=$(printf nid%05d "${COBALT_PARTNAME%%[,-]*}")
[ -n "$MASTER_ADDR" ] || stop "the scheduler gives no address of the first node, so the processes cannot find each other"
job_number=${job_id%%.*}
MASTER_PORT=$((20000 + 10#0${job_number//[!0-9]/} % 10000))
export MASTER_ADDR MASTER_PORT WORLD_SIZE=2

# In the training script: `torch.distributed.init_process_group("gloo")`, which reads these variables. No torchrun.
# shellcheck disable=SC2016 # the ranks expand the variables
aprun -n 2 -N 1 -d 64 -cc depth \
  bash -c 'export RANK=$ALPS_APP_PE LOCAL_RANK=$((ALPS_APP_PE % 1)); exec "$@"' rank python -u "$script"

echo "the job ended well"
