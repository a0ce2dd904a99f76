-- Written by provision for tensorflow/2.15.1; for details run `provision show haswell/tensorflow/2.15.1-db15519c04`.
whatis("Name: tensorflow")
whatis("Version: 2.15.1")
whatis("Description: TensorFlow 2.15.1 with Horovod 0.28.1 over MPI")

help("TensorFlow 2.15.1 with Horovod 0.28.1 over MPI\n\nframework    tensorflow-cpu 2.15.1\nhorovod      0.28.1+provision.1\npython       3.11.7\nmpi          mpich 4.0.2\ncompiler     gcc 12.2.0\nbuilt for    haswell: haswell (-march=haswell -mtune=haswell)\nenvironment  haswell/tensorflow/2.15.1-db15519c04\nproof        2 ranks on 2 hosts trained mnist to 98.1%, weights identical (2026-11-21)\n\nYour own packages: `provision venv create DIR --on tensorflow/2.15.1`")

if (mode() == "load" and not isFile("/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin/python")) then
  LmodError("tensorflow/2.15.1 cannot be loaded: /site/root/envs/haswell/tensorflow/2.15.1-db15519c04 is gone; ask those who maintain this module")
end

-- `module spider keras` and `module avail` show these. Lmod has this function since 8.2.
if (extensions) then
  extensions("horovod/0.28.1, numpy/1.26.4")
end

-- If another version of this module is loaded, Lmod replaces it with this one.
conflict("tensorflow")
depends_on("gcc/12.2.0")
depends_on("mpich/4.0.2")
depends_on("python/3.11")

setenv("VIRTUAL_ENV", "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04")
setenv("PROVISION_ENVIRONMENT", "haswell/tensorflow/2.15.1-db15519c04")
setenv("PROVISION_LAUNCHER", "srun --mpi=pmi2")
setenv("PYTHONNOUSERSITE", "1")
setenv("OMP_NUM_THREADS", "32")
-- Your own value wins, and stays when this module is unloaded.
if (not os.getenv("TF_CPP_MIN_LOG_LEVEL") or os.getenv("PROVISION_SETS_TF_CPP_MIN_LOG_LEVEL")) then
  setenv("TF_CPP_MIN_LOG_LEVEL", "1")
  setenv("PROVISION_SETS_TF_CPP_MIN_LOG_LEVEL", "1")
end
prepend_path("PATH", "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin")
