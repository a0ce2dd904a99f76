#!/usr/bin/env bash
#SBATCH --job-name=provision-cpu-tensorflow-2.15.1
#SBATCH --output=/site/root/jobs/provision-cpu-tensorflow-2.15.1-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:20:00
#SBATCH --cpus-per-task=16
#SBATCH --account=tests
#SBATCH --mem=128G

# Written by `provision job build --site nyu-greene --arch cpu --profile`. Submit it with `sbatch`.
# It builds cpu/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
export PROVISION_ROOT=/site/root
export OMP_NUM_THREADS=16
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=16

exec /site/provision/bin/python -I -m provision build --site /site/sites/nyu-greene.toml --arch cpu --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-cpu-tensorflow-2.15.1-"$SLURM_JOB_ID".events.jsonl
