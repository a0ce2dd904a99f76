#!/usr/bin/env bash
#SBATCH --job-name=provision-hugemem-tensorflow-2.15.1
#SBATCH --output=/site/root/jobs/provision-hugemem-tensorflow-2.15.1-%j.out
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:30:00
#SBATCH --cpus-per-task=1
#SBATCH --partition=hugemem
#SBATCH --account=tests
#SBATCH --qos=devel
#SBATCH --mem-per-cpu=16G

# Written by `provision job build --site sigma2-saga --arch hugemem --profile`. Submit it with `sbatch`.
# It builds hugemem/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
export PROVISION_ROOT=/site/root
export http_proxy=http://proxy.saga:3128
export https_proxy=http://proxy.saga:3128
export HTTP_PROXY=http://proxy.saga:3128
export HTTPS_PROXY=http://proxy.saga:3128
export OMP_NUM_THREADS=1
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=1

exec /site/provision/bin/python -I -m provision build --site /site/sites/sigma2-saga.toml --arch hugemem --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-hugemem-tensorflow-2.15.1-"$SLURM_JOB_ID".events.jsonl
