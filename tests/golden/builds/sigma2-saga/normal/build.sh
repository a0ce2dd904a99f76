#!/usr/bin/env bash
#SBATCH --job-name=provision-normal-tensorflow-2.15.1
#SBATCH --output=/site/root/jobs/provision-normal-tensorflow-2.15.1-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:30:00
#SBATCH --cpus-per-task=1
#SBATCH --partition=normal
#SBATCH --account=tests
#SBATCH --qos=devel
#SBATCH --mem-per-cpu=4G

# Written by `provision job build --site sigma2-saga --arch normal --profile`. Submit it with `sbatch`.
# It builds normal/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_GPU,MEM_PER_NODE,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_NODE,GPUS_PER_TASK} \
  SLURM_{GPUS_PER_SOCKET,NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}
export PROVISION_ROOT=/site/root
export http_proxy=http://proxy.saga:3128
export https_proxy=http://proxy.saga:3128
export HTTP_PROXY=http://proxy.saga:3128
export HTTPS_PROXY=http://proxy.saga:3128
export OMP_NUM_THREADS=1
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=1

exec /site/provision/bin/python -I -m provision build --site /site/sites/sigma2-saga.toml --arch normal --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-normal-tensorflow-2.15.1-"$SLURM_JOB_ID".events.jsonl
