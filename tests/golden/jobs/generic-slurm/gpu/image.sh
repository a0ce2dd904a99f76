#!/usr/bin/env bash
# The image tensorflow/tensorflow:2.15.0-gpu as a file for the jobs of any Slurm cluster (template).
# Written by `provision job image --site generic-slurm --arch gpu --account tests`.
# Run it on a login node: `bash FILE`. Or submit it, compute nodes reach registries too: `sbatch FILE`.
#SBATCH --job-name=image-gpu         # the job's name in the queue
#SBATCH --output=./image-gpu-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=1                    # number of nodes
#SBATCH --ntasks-per-node=1          # processes (ranks) on each node
#SBATCH --time=01:00:00              # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=4            # CPUs for each process
#SBATCH --partition=normal           # the queue
#SBATCH --constraint=zen3            # the kind of node
#SBATCH --account=tests              # the account to charge

set -euo pipefail
umask 022

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
if [ -n "${SLURM_JOB_ID:-}" ]; then # compute nodes reach the network by the proxy alone
  export http_proxy=http://proxy.example:3128
  export https_proxy=http://proxy.example:3128
  export HTTP_PROXY=http://proxy.example:3128
  export HTTPS_PROXY=http://proxy.example:3128
fi
command -v apptainer >/dev/null || stop "there is no apptainer on this node"

# Layers are kept and unpacked beside the images: home folders are too small for them.
images="/scratch/$USER/images"
export APPTAINER_CACHEDIR="$images/cache" APPTAINER_TMPDIR="$images/tmp"
mkdir -p "$images/cache" "$images/tmp"

# A tag moves on. Which image it names today says the registry, to whoever has a token; it gives one to anybody.
manifest=https://registry-1.docker.io/v2/tensorflow/tensorflow/manifests/2.15.0-gpu
challenge=$(curl --silent --show-error --head "$manifest" | tr -d '\r' | sed -n 's/^[Ww][Ww][Ww]-[Aa]uthenticate: Bearer //p')
authorization=()
if [ -n "$challenge" ]; then
  said() { sed -n "s/.*$1=\"\([^\"]*\)\".*/\1/p" <<<"$challenge"; }
  token=$(curl --fail --silent --show-error --get "$(said realm)" --data-urlencode "service=$(said service)" \
    --data-urlencode "scope=repository:tensorflow/tensorflow:pull" |
    sed -n 's/.*"\(access_\)\{0,1\}token" *: *"\([^"]*\)".*/\2/p')
  authorization=(--header "Authorization: Bearer $token")
fi
digest=$(curl --fail --silent --show-error --head "${authorization[@]}" \
  --header "Accept: application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json" \
  "$manifest" | tr -d '\r' | sed -n 's/^[Dd]ocker-[Cc]ontent-[Dd]igest: //p')
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || stop "the registry does not say which image tensorflow/tensorflow:2.15.0-gpu is"

image="$images/tensorflow-2.15.0-gpu-${digest:7:12}.sif"
if [ -f "$image" ]; then
  echo "here already: $image"
else
  beside="$images/.$$-$(basename "$image")" # what is whole and good gets its name last
  trap 'rm -f "$beside"' EXIT
  apptainer pull --arch amd64 "$beside" "docker://tensorflow/tensorflow@$digest"
  if [ "$(uname -m)" = x86_64 ]; then # else this node cannot run it
    apptainer exec "$beside" python -c 'import sys, tensorflow as tf; sys.exit(not tf.test.is_built_with_cuda())' ||
      stop "TensorFlow in docker://tensorflow/tensorflow@$digest does not use GPUs, or there is none"
  fi
  printf '%s\n' "docker://tensorflow/tensorflow@$digest" '# was :2.15.0-gpu' "# pulled $(date +%F) on $(hostname)" >"$image.txt"
  mv "$beside" "$image"
fi
ln -sfn "$(basename "$image")" "$images/tensorflow-2.15.0-gpu.sif" # the name that jobs use
echo "image: $image"
