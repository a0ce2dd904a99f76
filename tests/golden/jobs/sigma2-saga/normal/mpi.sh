#!/usr/bin/env bash
#SBATCH --job-name=mpi-normal         # the job's name in the queue
#SBATCH --output=./mpi-normal-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=2                     # number of nodes
#SBATCH --ntasks-per-node=2           # processes (ranks) on each node
#SBATCH --time=00:30:00               # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=1             # CPUs for each process
#SBATCH --partition=normal            # the queue
#SBATCH --account=tests               # the account to charge
#SBATCH --qos=devel                   # the quality of service: its limits and its priority
#SBATCH --mem-per-cpu=4G              # memory for each CPU

# MPI: 4 ranks on 2 nodes, started by srun.
# Written by `provision job mpi --site sigma2-saga --arch normal --account tests`. Submit it with `sbatch FILE`.
# Output: $USERWORK/runs/JOBID. The site deletes there files older than 21 days, or up to 42 if there is room. Copy it
# to the current folder with
# `provision data pull runs/JOBID --site sigma2-saga`.
# Questions about the site: support@nris.no

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_GPU,MEM_PER_NODE,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_NODE,GPUS_PER_TASK} \
  SLURM_{GPUS_PER_SOCKET,NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}

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
module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0
module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0
require_loaded TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0
require_loaded Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0
module list # record the modules in the output
set -u

# Compute nodes reach the internet only through a proxy.
export http_proxy="${http_proxy:-http://proxy.saga:3128}"
export https_proxy="${https_proxy:-http://proxy.saga:3128}"
export HTTP_PROXY="${HTTP_PROXY:-http://proxy.saga:3128}"
export HTTPS_PROXY="${HTTPS_PROXY:-http://proxy.saga:3128}"

# Variables that TensorFlow and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the modules
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}" # without what TensorFlow prints in each rank about the CPU
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
# What `provision data fetch` downloaded. Every Keras finds it in ~/.keras; KERAS_HOME is not set, because Keras 2 ignores it.
tfds="$USERWORK/tensorflow_datasets"
[ -d "$tfds" ] || tfds=~/tensorflow_datasets # where TensorFlow Datasets looks by itself
export TFDS_DATA_DIR="${TFDS_DATA_DIR:-$tfds}"
export TFHUB_CACHE_DIR="${TFHUB_CACHE_DIR:-$USERWORK/tfhub}"
export OMPI_MCA_pml=ob1
export OMPI_MCA_btl='^openib'
export HOROVOD_MPI_THREADS_DISABLE=1
export OMP_NUM_THREADS=1
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=1

# If it is missing, the only line about it may be lost when the launcher ends the other ranks.
python -c 'import importlib.util as find; raise SystemExit(not find.find_spec("mpi4py"))' ||
  stop "there is no mpi4py; load a module that has it, or install it with the MPI of the site"

# `-m mpi4py` ends all ranks when one fails; without it the others would wait until the time of the job is over.
srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --cpus-per-task=1 \
  python -u -m mpi4py "$script"

echo "the job ended well"
echo "the site deletes in the folder of the output: files older than 21 days, or up to 42 if there is room; copy the output before:"
echo "provision data pull runs/$job_id --site sigma2-saga"
