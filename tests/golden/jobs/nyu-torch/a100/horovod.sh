#!/usr/bin/env bash
#SBATCH --job-name=horovod-a100                # the job's name in the queue
#SBATCH --output=./horovod-a100-%j.out         # the output file (%j: the job ID)
#SBATCH --nodes=1                              # number of nodes
#SBATCH --ntasks-per-node=4                    # processes (ranks) on each node
#SBATCH --time=00:20:00                        # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=8                      # CPUs for each process
#SBATCH --constraint=a100                      # the kind of node
#SBATCH --account=tests                        # the account to charge
#SBATCH --gres=gpu:4                           # GPUs on each node
#SBATCH --mem=128G                             # memory on each node: 4G for each CPU
#SBATCH --comment=preemption=yes;requeue=true  # required by the site profile

# Horovod: 4 ranks on 1 node, one for each GPU, started by srun.
# Written by `provision job horovod --site nyu-torch --arch a100 --account tests --image docker://horovod/horovod:0.28.1 --no-overlay`. Submit it with `sbatch FILE`.
# Output: /scratch/$USER/runs/JOBID. The site deletes there files that were not read for 60 days. Copy it to the current
# folder with
# `provision data pull runs/JOBID --site nyu-torch`.
# Questions about the site: hpc@nyu.edu
# The site cancels a job that uses its GPUs less than 50 % of the time: begin with `--gpus 1`, and see what
# `--watch-gpus` records.

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

# The container provides CUDA and TensorFlow.
image="/scratch/$USER/images/horovod-0.28.1.sif"
[ -f "$image" ] || stop "there is no $image; pull it first: provision job image --site nyu-torch --arch a100 --image docker://horovod/horovod:0.28.1"
image=$(readlink -f "$image") # the real name contains the digest
echo "image: $image"
unset APPTAINER_CLEANENV APPTAINER_CONTAINALL APPTAINER_COMPAT SINGULARITY_CLEANENV SINGULARITY_CONTAINALL SINGULARITY_COMPAT # they hide the launcher's variables: every rank is rank 0 of 1
bind="$submit_folder,$(dirname "$script"),$PROVISION_OUTPUT,/scratch/$USER"

# Variables that TensorFlow and its libraries read.
export PYTHONNOUSERSITE=1 # packages in ~/.local must not replace those of the container
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}" # without what TensorFlow prints in each rank about the CPU
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems do not have these locks
# What `provision data fetch` downloaded. Every Keras finds it in ~/.keras; KERAS_HOME is not set, because Keras 2 ignores it.
tfds="/scratch/$USER/tensorflow_datasets"
[ -d "$tfds" ] || tfds=~/tensorflow_datasets # where TensorFlow Datasets looks by itself
export TFDS_DATA_DIR="${TFDS_DATA_DIR:-$tfds}"
export TFHUB_CACHE_DIR="${TFHUB_CACHE_DIR:-/scratch/$USER/tfhub}"
export OMP_NUM_THREADS=8
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=8

# Horovod in the image must use the same MPI as srun. Otherwise every rank is rank 0 of 1, and trains alone.
apptainer exec --nv --bind "$bind" "$image" python - <<'PYTHON' || exit 2
import ctypes
import importlib
import sys

reasons = set()
for framework in ("tensorflow", "torch"):
    try:
        hvd = importlib.import_module("horovod." + framework)
        break
    except ImportError as error:
        reasons.add(str(error))
else:
    sys.exit(f"error: the container has no Horovod for TensorFlow or PyTorch ({'; '.join(sorted(reasons))}); use another image, or a mirrored or ddp job")
if not hvd.mpi_built():
    sys.exit("error: Horovod in the container was built without MPI; use an image whose Horovod has MPI")
with open("/proc/self/maps") as maps:
    libraries = sorted({line.split()[-1] for line in maps if "/libmpi" in line})
answer = ctypes.create_string_buffer(8192)
for library in libraries:
    if hasattr(ctypes.CDLL(library), "MPI_Get_library_version"):
        ctypes.CDLL(library).MPI_Get_library_version(answer, ctypes.byref(ctypes.c_int()))
        break
version = answer.value.decode(errors="replace").split("\n")[0].strip()
family = "openmpi" if "Open MPI" in version else "mpich"
if not version:
    sys.exit("error: Horovod in the container loads no MPI library, although it was built with MPI")
if family != "openmpi":
    sys.exit(
        f"error: Horovod in the container was built with {family} ({version}), "
        "but srun starts ranks of openmpi; use an image with openmpi"
    )
if not hvd.nccl_built():
    print("note: Horovod in the container was built without NCCL: it averages in host memory, which is slow", file=sys.stderr)
print(f"Horovod in the container: {version}")
PYTHON

# In the training script, use hvd.rank() and hvd.local_rank(), not variables of the scheduler.
srun --nodes=1 --ntasks=4 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=8 \
  apptainer exec --nv --bind "$bind" "$image" python -u "$script"

echo "the job ended well"
echo "the site deletes in the folder of the output: files that were not read for 60 days; copy the output before:"
echo "provision data pull runs/$job_id --site nyu-torch"
