#!/usr/bin/env bash
#SBATCH --job-name=multiworker-gpu         # the job's name in the queue
#SBATCH --output=./multiworker-gpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=2                          # number of nodes
#SBATCH --ntasks-per-node=4                # processes (ranks) on each node
#SBATCH --time=00:30:00                    # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=16                 # CPUs for each process
#SBATCH --partition=gpu                    # the queue
#SBATCH --constraint=a100                  # the kind of node
#SBATCH --account=tests                    # the account to charge
#SBATCH --qos=normal                       # the quality of service: its limits and its priority
#SBATCH --gres=gpu:4                       # GPUs on each node
#SBATCH --mem=256G                         # memory on each node: 4G for each CPU

# MultiWorkerMirroredStrategy: 8 workers on 2 nodes, started by srun.
# Written by `provision job multiworker --site generic-slurm --arch gpu --account tests`. Submit it with `sbatch FILE`.
# Output: /scratch/$USER/runs/JOBID. Copy it to the current folder with
# `provision data pull runs/JOBID --site generic-slurm`.

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
module purge >/dev/null 2>&1 || true
module use /apps/modulefiles
module use /site/root/modules/gpu/lua
module load tensorflow/2.15.1
require_loaded tensorflow/2.15.1
module list # record the modules in the output
set -u

# Variables that TensorFlow and its libraries read.
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
# What `provision data fetch` downloaded. Every Keras finds it in ~/.keras; KERAS_HOME is not set, because Keras 2 ignores it.
tfds="/scratch/$USER/tensorflow_datasets"
[ -d "$tfds" ] || tfds=~/tensorflow_datasets # where TensorFlow Datasets looks by itself
export TFDS_DATA_DIR="${TFDS_DATA_DIR:-$tfds}"
export TFHUB_CACHE_DIR="${TFHUB_CACHE_DIR:-/scratch/$USER/tfhub}"
export OMP_NUM_THREADS=16
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=16
# XLA searches for CUDA in /usr/local, but here a module provides it.
cuda_home="${CUDA_PATH:-}"
[ -n "$cuda_home" ] || stop "the modules do not set the folder of CUDA"
export XLA_FLAGS="--xla_gpu_cuda_data_dir=$cuda_home"
# How workers reduce gradients (tf.distribute.experimental.CommunicationImplementation). If workers stall with NCCL, try RING.
export PROVISION_COMMUNICATION=RING
# Workers connect with gRPC, which a proxy would intercept. From here on only the network of the cluster is reachable.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY grpc_proxy

# Only srun works: SlurmClusterResolver reads variables that srun sets. Keras divides each batch among the workers.
srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=16 --mpi=pmix \
  python -u "$script"

echo "the job ended well"
