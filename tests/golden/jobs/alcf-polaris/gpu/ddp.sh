#!/usr/bin/env bash
#PBS -N ddp-gpu
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

# PyTorch: 8 processes on 2 nodes, one for each GPU, started by mpiexec-pals.
# Written by `provision job ddp --site alcf-polaris --arch gpu --account tests`. Submit it with `qsub FILE`.
# Output: runs/JOBID below the folder from which you submit.
# supported here: PyTorch 2.14.1: with CUDA 13.0, for the driver 580.
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

# Variables that PyTorch and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export TMPDIR="/tmp"
export OMP_NUM_THREADS=8
# How the processes find each other (`init_method="env://"`): the first node, a port of this job alone, and their number.
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
[ -n "$MASTER_ADDR" ] || stop "the scheduler gives no address of the first node, so the processes cannot find each other"
job_number=${job_id%%.*}
MASTER_PORT=$((20000 + 10#0${job_number//[!0-9]/} % 10000))
export MASTER_ADDR MASTER_PORT WORLD_SIZE=8

# In the training script: `torch.distributed.init_process_group("nccl")`, which reads these variables. No torchrun.
# On each node, record the load of the GPUs every second: a few percent mean that the input is too slow.
# The last GPU is the nearest to the first cores, so ranks take GPUs from the end.
# shellcheck disable=SC2016 # the ranks expand the variables
mpiexec -n 8 --ppn 4 --depth 16 --cpu-bind depth --env "OMP_NUM_THREADS=${OMP_NUM_THREADS:-}" \
  --env "NCCL_NET_GDR_LEVEL=${NCCL_NET_GDR_LEVEL:-}" --env "NCCL_CROSS_NIC=${NCCL_CROSS_NIC:-}" \
  --env "NCCL_COLLNET_ENABLE=${NCCL_COLLNET_ENABLE:-}" --env "NCCL_NET=${NCCL_NET:-}" \
  --env "FI_CXI_DISABLE_HOST_REGISTER=${FI_CXI_DISABLE_HOST_REGISTER:-}" \
  --env "FI_MR_CACHE_MONITOR=${FI_MR_CACHE_MONITOR:-}" \
  --env "FI_CXI_DEFAULT_CQ_SIZE=${FI_CXI_DEFAULT_CQ_SIZE:-}" --env "VIRTUAL_ENV=${VIRTUAL_ENV:-}" \
  --env "PYTHONNOUSERSITE=${PYTHONNOUSERSITE:-}" --env "PATH=${PATH:-}" \
  --env "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}" --env "PROVISION_OUTPUT=${PROVISION_OUTPUT:-}" \
  --env "PROVISION_DATA=${PROVISION_DATA:-}" --env "PROVISION_RESUME=${PROVISION_RESUME:-}" \
  --env "HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-}" \
  --env "TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-}" --env "TMPDIR=${TMPDIR:-}" \
  --env "MASTER_ADDR=${MASTER_ADDR:-}" --env "MASTER_PORT=${MASTER_PORT:-}" --env "WORLD_SIZE=${WORLD_SIZE:-}" \
  --env http_proxy=http://proxy.alcf.anl.gov:3128 --env https_proxy=http://proxy.alcf.anl.gov:3128 \
  --env HTTP_PROXY=http://proxy.alcf.anl.gov:3128 --env HTTPS_PROXY=http://proxy.alcf.anl.gov:3128 \
  bash -c \
  '{ { [ "${PALS_LOCAL_RANKID:-0}" = 0 ] || [ "$(nvidia-smi -L | wc -l)" = 1 ]; } && { nvidia-smi --query-gpu=timestamp,index,utilization.gpu,utilization.memory --format=csv --loop=1 >"$PROVISION_OUTPUT/gpu-$(hostname)-$$.csv" & watcher=$!; while kill -0 $$; do sleep 1; done; kill $watcher; }; } >/dev/null 2>&1 & exec "$@"' \
  rank bash -c 'export RANK=$PALS_RANKID LOCAL_RANK=$PALS_LOCAL_RANKID CUDA_VISIBLE_DEVICES=3,2,1,0; exec "$@"' \
  rank python -u "$script"

echo "the job ended well"
