#!/usr/bin/env bash
#COBALT --jobname provision-knl-tensorflow-2.15.1
#COBALT -O /site/root/jobs/provision-knl-tensorflow-2.15.1-$jobid
#COBALT -n 2
#COBALT -t 00:30:00
#COBALT -q debug-cache-quad
#COBALT -A tests
#COBALT --attrs mcdram=cache:numa=quad:filesystems=home,theta-fs0

# Written by `provision job build --site alcf-theta --arch knl --profile`. Submit it with `qsub`.
# It builds knl/tensorflow/2.15.1 on a node of the arch. The plan is made on that node, because this script was written from the
# site profile alone.

set -euo pipefail
umask 022
export PROVISION_ROOT=/site/root
export OMP_NUM_THREADS=62
export KMP_BLOCKTIME=0
export KMP_AFFINITY=granularity=fine,compact,1,0
export NUM_INTER_THREADS=1
export NUM_INTRA_THREADS=62

exec /site/provision/bin/python -I -m provision build --site /site/sites/alcf-theta.toml --arch knl --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-knl-tensorflow-2.15.1-"$COBALT_JOBID".events.jsonl
