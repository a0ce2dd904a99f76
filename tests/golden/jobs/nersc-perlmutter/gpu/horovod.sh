#!/usr/bin/env bash
#SBATCH --job-name=horovod-gpu         # the job's name in the queue
#SBATCH --output=./horovod-gpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=2                      # number of nodes
#SBATCH --ntasks-per-node=4            # processes (ranks) on each node
#SBATCH --time=00:30:00                # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=32             # CPUs for each process
#SBATCH --constraint=gpu               # the kind of node
#SBATCH --account=tests                # the account to charge
#SBATCH --qos=debug                    # the quality of service: its limits and its priority
#SBATCH --gpus-per-node=4              # GPUs on each node

# Horovod: 8 ranks on 2 nodes, one for each GPU, started by srun.
# Written by `provision job horovod --site nersc-perlmutter --arch gpu --account tests`. Submit it with `sbatch FILE`.
# Output: $SCRATCH/runs/JOBID. The site deletes there files that were not read for 8 weeks. Copy it to the current
# folder with
# `provision data pull runs/JOBID --site nersc-perlmutter`.
# deprecated here: the training page shows PyTorch only; the site's modules stop at TensorFlow 2.15.0.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_CPU,MEM_PER_GPU,MEM_PER_NODE,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_TASK} \
  SLURM_{GPUS_PER_SOCKET,NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
submit_folder=${SLURM_SUBMIT_DIR:-$PWD}
job_id=${SLURM_JOB_ID:-by-hand}
script="$submit_folder"/train.py
runs="$SCRATCH/runs"
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
  source /usr/share/lmod/lmod/init/bash || : # its last command may be false
fi
command -v module >/dev/null 2>&1 || stop "the command module is not defined by "/usr/share/lmod/lmod/init/bash
module reset >/dev/null 2>&1 || true
module use /site/root/modules/gpu/lua
module load tensorflow/2.15.1
require_loaded tensorflow/2.15.1
module list # record the modules in the output
set -u

# Variables that TensorFlow and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
# What `provision data fetch` downloaded. Every Keras finds it in ~/.keras; KERAS_HOME is not set, because Keras 2 ignores it.
tfds="$SCRATCH/tensorflow_datasets"
[ -d "$tfds" ] || tfds=~/tensorflow_datasets # where TensorFlow Datasets looks by itself
export TFDS_DATA_DIR="${TFDS_DATA_DIR:-$tfds}"
export TFHUB_CACHE_DIR="${TFHUB_CACHE_DIR:-$SCRATCH/tfhub}"
export OMP_NUM_THREADS=16
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=16
# XLA searches for CUDA in /usr/local, but here a module provides it.
cuda_home="${CUDA_HOME:-}"
[ -n "$cuda_home" ] || stop "the modules do not set the folder of CUDA"
export XLA_FLAGS="--xla_gpu_cuda_data_dir=$cuda_home"

# In the training script, use hvd.rank() and hvd.local_rank(), not variables of the scheduler.
srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=32 \
  python -u "$script"

echo "the job ended well"
echo "the site deletes in the folder of the output: files that were not read for 8 weeks; copy the output before:"
echo "provision data pull runs/$job_id --site nersc-perlmutter"
