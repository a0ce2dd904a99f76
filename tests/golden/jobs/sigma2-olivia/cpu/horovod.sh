#!/usr/bin/env bash
#SBATCH --job-name=horovod-cpu         # the job's name in the queue
#SBATCH --output=./horovod-cpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=1                      # number of nodes
#SBATCH --ntasks-per-node=2            # processes (ranks) on each node
#SBATCH --time=00:30:00                # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=1              # CPUs for each process
#SBATCH --partition=small              # the queue
#SBATCH --account=tests                # the account to charge
#SBATCH --qos=devel                    # the quality of service: its limits and its priority
#SBATCH --mem=4G                       # memory on each node: 2G for each CPU

# Horovod: 2 ranks on 1 node, started by srun.
# Written by `provision job horovod --site sigma2-olivia --arch cpu --account tests`. Submit it with `sbatch FILE`.
# Output: runs/JOBID below the folder from which you submit.
# Questions about the site: support@nris.no
# deprecated here: the pages show torchrun; only the container contains Horovod.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_CPU,MEM_PER_GPU,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_NODE,GPUS_PER_TASK} \
  SLURM_{GPUS_PER_SOCKET,NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}

# The folder from which the job was submitted, the training script, and a folder for the output of this job.
submit_folder=${SLURM_SUBMIT_DIR:-$PWD}
job_id=${SLURM_JOB_ID:-by-hand}
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
module load EESSI/2023.06
module load TensorFlow/2.13.0-foss-2023a
require_loaded EESSI/2023.06
require_loaded TensorFlow/2.13.0-foss-2023a
module list # record the modules in the output
set -u

# Compute nodes reach the internet only through a proxy.
export http_proxy="${http_proxy:-http://10.63.2.48:3128}"
export https_proxy="${https_proxy:-http://10.63.2.48:3128}"
export HTTP_PROXY="${HTTP_PROXY:-http://10.63.2.48:3128}"
export HTTPS_PROXY="${HTTPS_PROXY:-http://10.63.2.48:3128}"

# Variables that TensorFlow and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the modules
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}" # without what TensorFlow prints in each rank about the CPU
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
export OMP_NUM_THREADS=1
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=1

# In the training script, use hvd.rank() and hvd.local_rank(), not variables of the scheduler.
srun --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --cpus-per-task=1 \
  python -u "$script"

echo "the job ended well"
