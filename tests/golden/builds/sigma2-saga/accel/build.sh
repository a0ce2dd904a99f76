#!/usr/bin/env bash
#SBATCH --job-name=provision-accel-tensorflow-2.15.1
#SBATCH --output=/site/root/jobs/provision-accel-tensorflow-2.15.1-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --cpus-per-task=6
#SBATCH --partition=accel
#SBATCH --account=tests
#SBATCH --gpus-per-task=1
#SBATCH --mem-per-cpu=8G

# Written by `provision job build --site sigma2-saga --arch accel --profile`. Submit it with `sbatch`.
# It builds accel/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
export PROVISION_ROOT=/site/root
export OMP_NUM_THREADS=6
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=6

exec /site/provision/bin/python -I -m provision build --site /site/sites/sigma2-saga.toml --arch accel --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-accel-tensorflow-2.15.1-"$SLURM_JOB_ID".events.jsonl
