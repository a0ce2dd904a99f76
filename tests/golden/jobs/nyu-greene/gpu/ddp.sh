#!/usr/bin/env bash
#SBATCH --job-name=ddp-gpu         # the job's name in the queue
#SBATCH --output=./ddp-gpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=2                  # number of nodes
#SBATCH --ntasks-per-node=4        # processes (ranks) on each node
#SBATCH --time=00:20:00            # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=8          # CPUs for each process
#SBATCH --account=tests            # the account to charge
#SBATCH --gres=gpu:4               # GPUs on each node
#SBATCH --mem=128G                 # memory on each node: 4G for each CPU

# PyTorch: 8 processes on 2 nodes, one for each GPU, started by srun.
# Written by `provision job ddp --site nyu-greene --arch gpu --account tests`. Submit it with `sbatch FILE`.
# Output: /scratch/$USER/runs/JOBID. The site deletes there files that were not read for 60 days. Copy it to the current
# folder with
# `provision data pull runs/JOBID --site nyu-greene`.
# Questions about the site: hpc@nyu.edu
# supported here: PyTorch 2.7.1: newer wheels have no code for the V100.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_CPU,MEM_PER_GPU,CPUS_PER_GPU,GPU_BIND,GPUS,GPUS_PER_NODE,GPUS_PER_TASK,GPUS_PER_SOCKET} \
  SLURM_{NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
submit_folder=${SLURM_SUBMIT_DIR:-$PWD}
job_id=${SLURM_JOB_ID:-by-hand}
script="$submit_folder"/train.py
runs="/scratch/$USER/runs"
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


# Start from a clean module environment and load exact versions: mixing in others is a known source of errors.
set +u # module systems use unset variables
if ! command -v module >/dev/null 2>&1; then
  # shellcheck source=/dev/null
  source /share/apps/lmod/lmod/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/share/apps/lmod/lmod/init/bash
module purge >/dev/null 2>&1 || true
module list # record the modules in the output
set -u

# The container provides CUDA and PyTorch.
image="/scratch/$USER/images/pytorch-25.02-py3.sif"
[ -f "$image" ] || stop "there is no $image; pull it first: provision job image --site nyu-greene --arch gpu --image docker://nvcr.io/nvidia/pytorch:25.02-py3"
image=$(readlink -f "$image") # the real name contains the digest
echo "image: $image"
unset APPTAINER_CLEANENV APPTAINER_CONTAINALL APPTAINER_COMPAT SINGULARITY_CLEANENV SINGULARITY_CONTAINALL SINGULARITY_COMPAT # they hide the launcher's variables: every rank is rank 0 of 1
bind="$submit_folder,$(dirname "$script"),$PROVISION_OUTPUT,/scratch/$USER"

# Variables that PyTorch and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the container
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export OMP_NUM_THREADS=8
# How the processes find each other (`init_method="env://"`): the first node, a port of this job alone, and their number.
MASTER_ADDR=$(scontrol show node "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)" |
  sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
[ -n "$MASTER_ADDR" ] || stop "the scheduler gives no address of the first node, so the processes cannot find each other"
job_number=${job_id%%.*}
MASTER_PORT=$((20000 + 10#0${job_number//[!0-9]/} % 10000))
export MASTER_ADDR MASTER_PORT WORLD_SIZE=8

singularity exec --nv --bind "$bind" "$image" python -c 'import importlib.util as find; raise SystemExit(not find.find_spec("torch"))' ||
  stop "the container has no PyTorch; use another image, or an overlay with it"

# In the training script: `torch.distributed.init_process_group("nccl")`, which reads these variables. No torchrun.
# shellcheck disable=SC2016 # the ranks expand the variables
srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=8 \
  bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec "$@"' rank singularity exec --nv --bind \
  "$bind" "$image" python -u "$script"

echo "the job ended well"
echo "the site deletes in the folder of the output: files that were not read for 60 days; copy the output before:"
echo "provision data pull runs/$job_id --site nyu-greene"
