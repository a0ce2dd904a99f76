"""A program that the tool starts gets no secret that it does not need, and everything else."""

from __future__ import annotations

import pytest

from provision.model.child_environ import child_environ

OF_SERVICES = {
    **dict.fromkeys(
        ("HF_TOKEN", "GITHUB_TOKEN", "CI_JOB_TOKEN", "WANDB_API_KEY", "OPENAI_API_KEY", "COMET_API_KEY"), "x"
    ),
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET"), "x"),
    **dict.fromkeys(
        ("GOOGLE_APPLICATION_CREDENTIALS", "TWINE_PASSWORD", "UV_PUBLISH_TOKEN", "MYSQL_PWD", "DB_PASS"), "x"
    ),
    "DATABASE": "postgres://gul:k7@db/x",
    "SENTRY_DSN": "https://0a1b@sentry.org/1",
    "SLURM_JWT": "x",
    "SSH_AUTH_SOCK": "/tmp/agent",
}
OF_THE_INDEX = {
    "PIP_INDEX_URL": "https://h/T0k3nT0k3n/simple",
    "UV_INDEX": "site=https://h/simple",
    "UV_INDEX_SITE_USERNAME": "gul",
    "UV_INDEX_SITE_PASSWORD": "k7",
    "https_proxy": "gul:k7@h:1",
    "HTTP_PROXY": "http://gul:k7@h:1",
}
# Sources: `license_vars` of Spack's compilers; job variables of Slurm, TORQUE and Cobalt; what ALPS, PALS and Slurm set for the
# fabric; the variables of Lmod, Environment Modules and XALT.
OF_THE_SITE = {
    **dict.fromkeys(
        ("LM_LICENSE_FILE", "INTEL_LICENSE_FILE", "PGROUPD_LICENSE_FILE", "MLM_LICENSE_FILE"), "27000@lic:1@b"
    ),
    **dict.fromkeys(("CRAYLMD_LICENSE_FILE", "ALLINEA_LICENSE_FILE", "ARM_LICENSE_DIR", "NAG_KUSARI_FILE"), "/opt/lic"),
    **dict.fromkeys(
        ("NVHPC_ROOT", "NVHPC_CUDA_HOME", "ONEAPI_ROOT", "CRAYPE_VERSION", "CRAY_MPICH_DIR", "PE_ENV"), "/x"
    ),
    **dict.fromkeys(("SLURM_JOB_ID", "SLURM_CONF", "PBS_JOBCOOKIE", "PBS_NODEFILE", "COBALT_JOBID", "PALS_APID"), "1"),
    **dict.fromkeys(("PMI_GNI_COOKIE", "PMI_FD", "PMIX_SECURITY_MODE", "UCX_IB_PKEY", "NCCL_IB_PKEY"), "0x8001"),
    **dict.fromkeys(("SLINGSHOT_VNIS", "FI_CXI_DEFAULT_VNI", "OMPI_MCA_pml", "I_MPI_HYDRA_BOOTSTRAP"), "1"),
    **dict.fromkeys(("XALT_EXECUTABLE_TRACKING", "LMOD_CMD", "MODULEPATH", "__LMOD_REF_COUNT_PATH", "_LMFILES_"), "x"),
    **dict.fromkeys(("PATH", "HOME", "USER", "TMPDIR", "LANG", "KRB5CCNAME", "X509_USER_PROXY", "NETRC"), "/x"),
    **dict.fromkeys(("WANDB_MODE", "AWS_EC2_METADATA_DISABLED", "TOKENIZERS_PARALLELISM", "TF_XLA_FLAGS"), "x"),
    **dict.fromkeys(
        ("PROVISION_LOCK", "PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE", "UV_NO_CONFIG", "no_proxy"), "/x"
    ),
    **dict.fromkeys(("http_proxy", "ALL_PROXY"), "http://proxy.example.org:3128"),
    "BASH_FUNC_module%%": "() {  eval `/usr/bin/modulecmd bash $*`\n}",
    "PROJECT": "https://example.org/~gul/@scope/x",
}
EVERYTHING = {**OF_SERVICES, **OF_THE_INDEX, **OF_THE_SITE}


@pytest.mark.parametrize("program", ["/opt/gcc/bin/g++", "/site/envs/x/bin/python", "nvcc", "squeue-of-ours"])
def test_a_program_gets_no_secret_but_everything_of_the_site(program: str) -> None:
    assert child_environ(program, EVERYTHING) == OF_THE_SITE


def test_an_installer_also_gets_the_settings_of_the_index() -> None:
    assert child_environ("uv", EVERYTHING, "index") == {**OF_THE_SITE, **OF_THE_INDEX}


def test_what_acts_for_the_user_gets_everything() -> None:
    assert child_environ("git", EVERYTHING, "everything") == EVERYTHING


@pytest.mark.parametrize(
    ("program", "gets"),
    [
        ("/usr/bin/sbatch", {"SLURM_JWT"}),
        ("squeue", {"SLURM_JWT"}),
        ("srun", {"SLURM_JWT", "SSH_AUTH_SOCK"}),
        ("/opt/openmpi/bin/mpirun", {"SLURM_JWT", "SSH_AUTH_SOCK"}),
        ("aprun", {"SSH_AUTH_SOCK"}),
        ("qsub", set()),
    ],
)
def test_schedulers_and_launchers_get_what_they_authenticate_with(program: str, gets: set[str]) -> None:
    assert child_environ(program, OF_SERVICES).keys() == gets
