#%Module1.0
# Written by provision for tensorflow/2.15.1; for details run `provision show haswell/tensorflow/2.15.1-db15519c04`.
module-whatis "Name: tensorflow"
module-whatis "Version: 2.15.1"
module-whatis "Description: TensorFlow 2.15.1 with Horovod 0.28.1 over MPI"

proc ModulesHelp { } {
    puts stderr "TensorFlow 2.15.1 with Horovod 0.28.1 over MPI"
    puts stderr ""
    puts stderr "framework    tensorflow-cpu 2.15.1"
    puts stderr "horovod      0.28.1+provision.1"
    puts stderr "python       3.11.7"
    puts stderr "mpi          mpich 4.0.2"
    puts stderr "compiler     gcc 12.2.0"
    puts stderr "built for    haswell: haswell (-march=haswell -mtune=haswell)"
    puts stderr "environment  haswell/tensorflow/2.15.1-db15519c04"
    puts stderr "proof        2 ranks on 2 hosts trained mnist to 98.1%, weights identical (2026-11-21)"
    puts stderr ""
    puts stderr "Your own packages: `provision venv create DIR --on tensorflow/2.15.1`"
}

if {[module-info mode load] && ![file exists "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin/python"]} {
    puts stderr "tensorflow/2.15.1 cannot be loaded: /site/root/envs/haswell/tensorflow/2.15.1-db15519c04 is gone\; ask those who maintain this module"
    break
}

conflict "tensorflow"
# Environment Modules has depends-on since 5.1. Before that, unloading a modulefile also unloads what it loaded.
if {[llength [info commands depends-on]]} { depends-on "gcc/12.2.0" } else { module load "gcc/12.2.0" }
if {[llength [info commands depends-on]]} { depends-on "mpich/4.0.2" } else { module load "mpich/4.0.2" }
if {[llength [info commands depends-on]]} { depends-on "python/3.11" } else { module load "python/3.11" }

setenv "VIRTUAL_ENV" "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04"
setenv "PROVISION_ENVIRONMENT" "haswell/tensorflow/2.15.1-db15519c04"
setenv "PROVISION_LAUNCHER" "srun --mpi=pmi2"
setenv "PYTHONNOUSERSITE" "1"
setenv "OMP_NUM_THREADS" "32"
# Your own value wins, and stays when this module is unloaded.
set variable "TF_CPP_MIN_LOG_LEVEL"
if { ![info exists env($variable)] || [info exists env(PROVISION_SETS_$variable)] } {
    setenv $variable "1"
    setenv PROVISION_SETS_$variable 1
}
prepend-path "PATH" "/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin"
