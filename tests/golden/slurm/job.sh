#!/usr/bin/env bash
#SBATCH --job-name=provision-haswell-tensorflow-2.15.1-db15519c04
#SBATCH --output=/site/root/jobs/provision-haswell-tensorflow-2.15.1-db15519c04-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:30:00
#SBATCH --partition=haswell
#SBATCH --constraint=haswell
#SBATCH --account=staff

# Written by `provision job build --site cluster --arch haswell`. Submit it with `sbatch`.
# It builds haswell/tensorflow/2.15.1-db15519c04 on a node of the arch, according to the plan at the end of this
# script. If the node does not match the plan, the build stops and prints the differences.

set -euo pipefail
umask 022
# What the shell that submitted this script, or its job, may have left, and the launcher would obey.
unset SLURM_{EXPORT_ENV,CPU_BIND,MEM_BIND,STEP_GRES,OVERLAP,EXACT,LABELIO,STDOUTMODE,TIMELIMIT,HET_SIZE,PACK_SIZE,JOB_NODELIST_HET_GROUP_0,JOB_NODELIST_PACK_GROUP_0} \
  SLURM_{MEM_PER_CPU,MEM_PER_GPU,MEM_PER_NODE,CPUS_PER_TASK,CPUS_PER_GPU,GRES,GPU_BIND,GPUS,GPUS_PER_NODE} \
  SLURM_{GPUS_PER_TASK,GPUS_PER_SOCKET,NTASKS_PER_CORE,NTASKS_PER_SOCKET,NTASKS_PER_GPU,THREADS_PER_CORE,CORE_SPEC,HINT,DISTRIBUTION,RESERVATION}
export PROVISION_ROOT=/site/root
export EXAMPLE_SITE='/site/it'"'"'s'

exec /site/provision/bin/python -I -m provision build --site /site/sites/cluster.toml --arch haswell --stack tensorflow-2.15.1 --no-wait \
  --events /site/root/jobs/provision-haswell-tensorflow-2.15.1-db15519c04-"$SLURM_JOB_ID".events.jsonl --plan - <<'PROVISION_PLAN'
{
 "environment": "haswell/tensorflow/2.15.1-db15519c04",
 "held": {
  "recipe": "1",
  "arch": "haswell",
  "target": "haswell (-march=haswell -mtune=haswell)",
  "modules": "gcc/12.2.0 mpich/4.0.2 python/3.11",
  "python": "3.11.7 /site/python/bin/python3.11",
  "compiler": "gcc 12.2.0 /site/gcc/bin/g++",
  "mpi": "mpich 4.0.2; g++ -I/site/mpich/include -L/site/mpich/lib -lmpi",
  "stack": "tensorflow-2.15.1",
  "framework": "tensorflow-cpu 2.15.1",
  "horovod": "0.28.1 sha256:055a93c632729a369e78d864f111656fb845ecc9fed4991b7d0f3efaabacec7c",
  "patches": "0001-all.patch:f3420aeb55ca",
  "lock": "bb3b8799b3fb89a06b71305563700c7f35613aa4430db26778ac1a9ddbded320",
  "mpi lock": "",
  "module": "tensorflow/2.15.1",
  "module environment": "PYTHONNOUSERSITE=1 OMP_NUM_THREADS=32",
  "prefix": "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04",
  "proof": "horovod_keras: 2 nodes, 1 ranks each, srun --mpi=pmi2"
 }
}
PROVISION_PLAN
