#!/usr/bin/env bash
#PBS -N mpi-gpu
#PBS -o ./
#PBS -j oe
#PBS -l select=2:system=polaris
#PBS -l place=scatter:excl
#PBS -l walltime=00:30:00
#PBS -W umask=022
#PBS -q debug
#PBS -A tests
#PBS -l filesystems=home:eagle
#PBS -k doe

# MPI: 64 ranks on 2 nodes, started by mpiexec-pals.
# Written by `provision job mpi --site alcf-polaris --arch gpu --account tests`. Submit it with `qsub FILE`.
# Output: runs/JOBID below the folder from which you submit.
# The options above:
#   -N              the job's name in the queue
#   -o              folder of the output file, which is named after the job ID
#   -j              standard error goes to the same file
#   -l select       number and kind of nodes
#   -l place        each chunk on a different node
#   -l walltime     time limit, after which the scheduler ends the job
#   -W umask        lets others read the output (PBS starts jobs with umask 0077)
#   -q              the queue
#   -A              the account to charge
#   -l filesystems  the file systems that the job needs
#   -k              required by the site profile

set -euo pipefail
umask 022

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
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
mkdir -p "$PROVISION_OUTPUT/checkpoints" "$PROVISION_OUTPUT/tensorboard" # once, before the ranks start
echo "output: $PROVISION_OUTPUT"
if [ -n "${PBS_JOBID:-}" ] && [ -n "$(ls -A "$PROVISION_OUTPUT/checkpoints")" ]; then
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
  source /usr/share/lmod/lmod/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/usr/share/lmod/lmod/init/bash
module reset >/dev/null 2>&1 || true
module use /soft/modulefiles
module use /site/root/modules/gpu/lua
module load tensorflow/2.15.1
require_loaded tensorflow/2.15.1
module list # record the modules in the output
set -u

# Compute nodes reach the internet only through a proxy.
export http_proxy="${http_proxy:-http://proxy.alcf.anl.gov:3128}"
export https_proxy="${https_proxy:-http://proxy.alcf.anl.gov:3128}"
export HTTP_PROXY="${HTTP_PROXY:-http://proxy.alcf.anl.gov:3128}"
export HTTPS_PROXY="${HTTPS_PROXY:-http://proxy.alcf.anl.gov:3128}"

# Variables that TensorFlow and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export TMPDIR="/tmp"
export OMP_NUM_THREADS=1
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=1
# XLA searches for CUDA in /usr/local, but here a module provides it.
cuda_home="/soft/compilers/cudatoolkit/cuda-12.9.1"
[ -n "$cuda_home" ] || stop "the modules do not set the folder of CUDA"
export XLA_FLAGS="--xla_gpu_cuda_data_dir=$cuda_home"

# If it is missing, the only line about it may be lost when the launcher ends the other ranks.
python -c 'import importlib.util as find; raise SystemExit(not find.find_spec("mpi4py"))' ||
  stop "there is no mpi4py; load a module that has it, or install it with the MPI of the site"

# `-m mpi4py` ends all ranks when one fails; without it the others would wait until the time of the job is over.
# The last GPU is the nearest to the first cores, so ranks take GPUs from the end.
# shellcheck disable=SC2016 # the ranks expand the variables
mpiexec -n 64 --ppn 32 --depth 1 --cpu-bind depth --env "OMP_NUM_THREADS=${OMP_NUM_THREADS:-}" \
  --env "NUM_INTER_THREADS=${NUM_INTER_THREADS:-}" --env "NUM_INTRA_THREADS=${NUM_INTRA_THREADS:-}" \
  --env "NCCL_NET_GDR_LEVEL=${NCCL_NET_GDR_LEVEL:-}" --env "NCCL_CROSS_NIC=${NCCL_CROSS_NIC:-}" \
  --env "NCCL_COLLNET_ENABLE=${NCCL_COLLNET_ENABLE:-}" --env "NCCL_NET=${NCCL_NET:-}" \
  --env "FI_CXI_DISABLE_HOST_REGISTER=${FI_CXI_DISABLE_HOST_REGISTER:-}" \
  --env "FI_MR_CACHE_MONITOR=${FI_MR_CACHE_MONITOR:-}" \
  --env "FI_CXI_DEFAULT_CQ_SIZE=${FI_CXI_DEFAULT_CQ_SIZE:-}" --env "VIRTUAL_ENV=${VIRTUAL_ENV:-}" \
  --env "PYTHONNOUSERSITE=${PYTHONNOUSERSITE:-}" --env "PATH=${PATH:-}" \
  --env "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}" --env "PROVISION_OUTPUT=${PROVISION_OUTPUT:-}" \
  --env "PROVISION_DATA=${PROVISION_DATA:-}" --env "PROVISION_RESUME=${PROVISION_RESUME:-}" \
  --env "HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-}" \
  --env "TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-}" --env "XLA_FLAGS=${XLA_FLAGS:-}" \
  --env "TMPDIR=${TMPDIR:-}" --env http_proxy=http://proxy.alcf.anl.gov:3128 \
  --env https_proxy=http://proxy.alcf.anl.gov:3128 --env HTTP_PROXY=http://proxy.alcf.anl.gov:3128 \
  --env HTTPS_PROXY=http://proxy.alcf.anl.gov:3128 \
  bash -c 'export CUDA_VISIBLE_DEVICES=$((3 - PALS_LOCAL_RANKID % 4)); exec "$@"' rank python -u -m mpi4py \
  "$script"

echo "the job ended well"
