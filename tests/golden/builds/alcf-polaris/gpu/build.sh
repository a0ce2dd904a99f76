#!/usr/bin/env bash
#PBS -N provision-gpu-tensorflow-2.15.1
#PBS -o /site/root/jobs/
#PBS -j oe
#PBS -l select=2:system=polaris
#PBS -l place=scatter:excl
#PBS -l walltime=00:30:00
#PBS -W umask=022
#PBS -q debug
#PBS -A tests
#PBS -l filesystems=home:eagle
#PBS -k doe

# Written by `provision job build --site alcf-polaris --arch gpu --profile`. Submit it with `qsub`.
# It builds gpu/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
cd "$PBS_O_WORKDIR"
export TMPDIR="/tmp"
export PROVISION_ROOT=/site/root
export http_proxy=http://proxy.alcf.anl.gov:3128
export https_proxy=http://proxy.alcf.anl.gov:3128
export HTTP_PROXY=http://proxy.alcf.anl.gov:3128
export HTTPS_PROXY=http://proxy.alcf.anl.gov:3128
export OMP_NUM_THREADS=8
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=8

exec /site/provision/bin/python -I -m provision build --site /site/sites/alcf-polaris.toml --arch gpu --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-gpu-tensorflow-2.15.1-"$PBS_JOBID".events.jsonl
