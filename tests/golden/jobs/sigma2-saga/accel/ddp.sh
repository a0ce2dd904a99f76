#!/usr/bin/env bash
#SBATCH --job-name=ddp-accel         # the job's name in the queue
#SBATCH --output=./ddp-accel-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=2                    # number of nodes
#SBATCH --ntasks-per-node=4          # processes (ranks) on each node
#SBATCH --time=00:30:00              # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=6            # CPUs for each process
#SBATCH --partition=accel            # the queue
#SBATCH --account=tests              # the account to charge
#SBATCH --gpus-per-node=4            # GPUs on each node
#SBATCH --mem-per-cpu=8G             # memory for each CPU

# PyTorch: 8 processes on 2 nodes, one for each GPU, started by srun.
# Written by `provision job ddp --site sigma2-saga --arch accel --account tests`. Submit it with `sbatch FILE`.
# Output: $USERWORK/runs/JOBID. The site deletes there files older than 21 days, or up to 42 if there is room. Copy it
# to the current folder with
# `provision data pull runs/JOBID --site sigma2-saga`.
# Questions about the site: support@nris.no
# supported here: PyTorch 2.7.1: newer wheels have no code for the P100.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_GPU,MEM_PER_NODE,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_TASK,GPUS_PER_SOCKET} \
  SLURM_{NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
submit_folder=${SLURM_SUBMIT_DIR:-$PWD}
job_id=${SLURM_JOB_ID:-by-hand}
script="$submit_folder"/train.py
runs="$USERWORK/runs"
export PROVISION_OUTPUT="$runs/$job_id"
export PROVISION_DATA="${PROVISION_DATA:-$submit_folder/data}"

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
[ -f "$script" ] || stop "there is no training script $script"
mkdir -p "$PROVISION_OUTPUT/checkpoints" "$PROVISION_OUTPUT/tensorboard" # once, before the ranks start
echo "output: $PROVISION_OUTPUT"
if [ -n "${SLURM_JOB_ID:-}" ] && [ -n "$(ls -A "$PROVISION_OUTPUT/checkpoints")" ]; then
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
  source /cluster/installations/lmod/lmod/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/cluster/installations/lmod/lmod/init/bash
module reset >/dev/null 2>&1 || true
module use /site/root/modules/accel/lua
module load pytorch/2.7.1
require_loaded pytorch/2.7.1
module list # record the modules in the output
set -u

# Compute nodes reach the internet only through a proxy.
export http_proxy="${http_proxy:-http://proxy.saga:3128}"
export https_proxy="${https_proxy:-http://proxy.saga:3128}"
export HTTP_PROXY="${HTTP_PROXY:-http://proxy.saga:3128}"
export HTTPS_PROXY="${HTTPS_PROXY:-http://proxy.saga:3128}"

# Variables that PyTorch and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export OMP_NUM_THREADS=6
# How the processes find each other (`init_method="env://"`): the first node, a port of this job alone, and their number.
MASTER_ADDR=$(scontrol show node "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)" |
  sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
[ -n "$MASTER_ADDR" ] || stop "the scheduler gives no address of the first node, so the processes cannot find each other"
job_number=${job_id%%.*}
MASTER_PORT=$((20000 + 10#0${job_number//[!0-9]/} % 10000))
export MASTER_ADDR MASTER_PORT WORLD_SIZE=8

# In the training script: `torch.distributed.init_process_group("nccl")`, which reads these variables. No torchrun.
# shellcheck disable=SC2016 # the ranks expand the variables
srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=6 \
  bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec "$@"' rank python -u "$script"

echo "the job ended well"
echo "the site deletes in the folder of the output: files older than 21 days, or up to 42 if there is room; copy the output before:"
echo "provision data pull runs/$job_id --site sigma2-saga"
