# Written by provision for tensorflow/2.15.1: does what the modulefile does, without a module system.
# `eval` or source it in bash, dash, zsh or ksh; `provision_deactivate` undoes everything.
if command -v provision_deactivate >/dev/null 2>&1; then provision_deactivate; fi
if [ -n "${VIRTUAL_ENV+set}" ]; then _provision_old_VIRTUAL_ENV="$VIRTUAL_ENV"; else unset _provision_old_VIRTUAL_ENV; fi
if [ -n "${PROVISION_ENVIRONMENT+set}" ]; then _provision_old_PROVISION_ENVIRONMENT="$PROVISION_ENVIRONMENT"; else unset _provision_old_PROVISION_ENVIRONMENT; fi
if [ -n "${PROVISION_LAUNCHER+set}" ]; then _provision_old_PROVISION_LAUNCHER="$PROVISION_LAUNCHER"; else unset _provision_old_PROVISION_LAUNCHER; fi
if [ -n "${PYTHONNOUSERSITE+set}" ]; then _provision_old_PYTHONNOUSERSITE="$PYTHONNOUSERSITE"; else unset _provision_old_PYTHONNOUSERSITE; fi
if [ -n "${OMP_NUM_THREADS+set}" ]; then _provision_old_OMP_NUM_THREADS="$OMP_NUM_THREADS"; else unset _provision_old_OMP_NUM_THREADS; fi
if [ -n "${TF_CPP_MIN_LOG_LEVEL+set}" ]; then _provision_old_TF_CPP_MIN_LOG_LEVEL="$TF_CPP_MIN_LOG_LEVEL"; else unset _provision_old_TF_CPP_MIN_LOG_LEVEL; fi
export VIRTUAL_ENV=/site/root/envs/haswell/tensorflow/2.15.1-db15519c04
export PROVISION_ENVIRONMENT=haswell/tensorflow/2.15.1-db15519c04
export PROVISION_LAUNCHER='srun --mpi=pmi2'
export PYTHONNOUSERSITE=1
export OMP_NUM_THREADS=32
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL-1}" # your own value wins
export PATH=/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin"${PATH:+:$PATH}"
provision_deactivate() {
  if [ -n "${_provision_old_VIRTUAL_ENV+set}" ]; then export VIRTUAL_ENV="$_provision_old_VIRTUAL_ENV"; else unset VIRTUAL_ENV; fi
  unset _provision_old_VIRTUAL_ENV
  if [ -n "${_provision_old_PROVISION_ENVIRONMENT+set}" ]; then export PROVISION_ENVIRONMENT="$_provision_old_PROVISION_ENVIRONMENT"; else unset PROVISION_ENVIRONMENT; fi
  unset _provision_old_PROVISION_ENVIRONMENT
  if [ -n "${_provision_old_PROVISION_LAUNCHER+set}" ]; then export PROVISION_LAUNCHER="$_provision_old_PROVISION_LAUNCHER"; else unset PROVISION_LAUNCHER; fi
  unset _provision_old_PROVISION_LAUNCHER
  if [ -n "${_provision_old_PYTHONNOUSERSITE+set}" ]; then export PYTHONNOUSERSITE="$_provision_old_PYTHONNOUSERSITE"; else unset PYTHONNOUSERSITE; fi
  unset _provision_old_PYTHONNOUSERSITE
  if [ -n "${_provision_old_OMP_NUM_THREADS+set}" ]; then export OMP_NUM_THREADS="$_provision_old_OMP_NUM_THREADS"; else unset OMP_NUM_THREADS; fi
  unset _provision_old_OMP_NUM_THREADS
  if [ -n "${_provision_old_TF_CPP_MIN_LOG_LEVEL+set}" ]; then export TF_CPP_MIN_LOG_LEVEL="$_provision_old_TF_CPP_MIN_LOG_LEVEL"; else unset TF_CPP_MIN_LOG_LEVEL; fi
  unset _provision_old_TF_CPP_MIN_LOG_LEVEL
  # Removes only our own entry; entries that were added later stay.
  _provision_entry=/site/root/envs/haswell/tensorflow/2.15.1-db15519c04/bin
  _provision_list=":$PATH:"
  case "$_provision_list" in *":$_provision_entry:"*)
    _provision_list="${_provision_list%%":$_provision_entry:"*}:${_provision_list#*":$_provision_entry:"}" ;;
  esac
  _provision_list="${_provision_list#:}"
  PATH="${_provision_list%:}"
  if [ -z "$PATH" ]; then unset PATH; fi
  unset _provision_entry _provision_list
  unset -f provision_deactivate
}
