"""Variables that srun obeys as if they were options (srun(1), INPUT ENVIRONMENT VARIABLES), without their `SLURM_`.

The shell that submits a script, and a job or step in which that shell runs, leave them to the script's job: `--export=NONE`,
the CPUs of an outer step, memory for a node beside memory for a CPU, which srun refuses.
"""

from __future__ import annotations

# Of a step, or of what the person typed: never of the job that a script runs in.
OF_A_STEP = (
    *("EXPORT_ENV", "CPU_BIND", "MEM_BIND", "STEP_GRES", "OVERLAP", "EXACT", "LABELIO", "STDOUTMODE", "TIMELIMIT"),
    # Of a heterogeneous job: srun takes the nodes of its first component for those of the job (Slurm 22.05).
    *("HET_SIZE", "PACK_SIZE", "JOB_NODELIST_HET_GROUP_0", "JOB_NODELIST_PACK_GROUP_0"),
)
# sbatch sets each of them if the job has the option of that name, and leaves an older value where it is if not.
OF_A_JOB = (
    *("MEM_PER_CPU", "MEM_PER_GPU", "MEM_PER_NODE", "CPUS_PER_TASK", "CPUS_PER_GPU", "GRES", "GPU_BIND"),
    *("GPUS", "GPUS_PER_NODE", "GPUS_PER_TASK", "GPUS_PER_SOCKET", "NTASKS_PER_CORE", "NTASKS_PER_SOCKET"),
    *("NTASKS_PER_GPU", "THREADS_PER_CORE", "CORE_SPEC", "HINT", "DISTRIBUTION", "RESERVATION"),
)
# An option whose variable has another name.
SPELT: dict[str, str] = {"mem": "MEM_PER_NODE"}
