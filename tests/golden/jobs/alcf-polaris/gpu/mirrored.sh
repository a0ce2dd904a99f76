#!/usr/bin/env bash
# MirroredStrategy: one process, 4 GPUs of one node.
# Written by `provision job mirrored --site alcf-polaris --arch gpu --account tests`. Submit it with `qsub FILE`.
# its name in the queue:
#PBS -N mirrored-gpu
# what it prints: a file of this folder, named by the job's id:
#PBS -o ./
# errors there too:
#PBS -j oe
# nodes, and their kind:
#PBS -l select=1:system=polaris
# each on a node of its own:
#PBS -l place=scatter
# time limit: after it the job is ended:
#PBS -l walltime=00:30:00
# others may read what it prints: PBS starts jobs with 0077:
#PBS -W umask=022
# the queue:
#PBS -q debug
# who pays:
#PBS -A tests
# the file systems that it needs:
#PBS -l filesystems=home:eagle
# as the site's file says:
#PBS -k doe

set -euo pipefail
umask 022

# Where this was submitted from, the training script, and a folder of this job's own for what it writes.
submit_folder=${PBS_O_WORKDIR:-$PWD}
job_id=${PBS_JOBID:-by-hand}
cd "$submit_folder"
script="$submit_folder"/train.py
runs="$submit_folder/runs"
export PROVISION_OUTPUT="$runs/$job_id"
export PROVISION_DATA="${PROVISION_DATA:-$submit_folder/data}"

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
[ -f "$script" ] || stop "there is no training script $script"
mkdir -p "$PROVISION_OUTPUT/checkpoints" "$PROVISION_OUTPUT/tensorboard" # once, before the ranks

# The modules, by exact names and from nothing: others than those of the build are a known source of errors.
set +u # module systems use unset variables
if ! command -v module >/dev/null 2>&1; then
  # shellcheck source=/dev/null
  source /usr/share/lmod/lmod/init/bash
fi
module reset >/dev/null 2>&1 || true
module use /soft/modulefiles
module use /site/root/modules/gpu/lua
module load tensorflow/2.15.1
module list # for the record
set -u

# What TensorFlow and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export TMPDIR="/tmp"
export OMP_NUM_THREADS=32
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=32
# XLA looks for CUDA in /usr/local; here it is a module's.
cuda_home="${CUDA_HOME:-}"
[ -n "$cuda_home" ] || stop "the modules do not say where CUDA is"
export XLA_FLAGS="--xla_gpu_cuda_data_dir=$cuda_home"
# For the script to compare with `strategy.num_replicas_in_sync`: fewer GPUs than asked for train silently.
export PROVISION_REPLICAS=4

python -u "$script"
