#!/usr/bin/env bash
#SBATCH --job-name=image-accel         # the job's name in the queue
#SBATCH --output=./image-accel-%j.out  # the output file (%j: the job ID)
#SBATCH --nodes=1                      # number of nodes
#SBATCH --ntasks-per-node=1            # processes (ranks) on each node
#SBATCH --time=01:00:00                # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=4              # CPUs for each process
#SBATCH --partition=accel              # the queue
#SBATCH --account=tests                # the account to charge
#SBATCH --gpus-per-node=1              # GPUs on each node
#SBATCH --mem=6000M                    # memory on each node: 1500M for each CPU

# The image nvcr.io/nvidia/tensorflow:25.02-tf2-py3 as a file, for jobs at Sigma2 Olivia (Grace-Hopper).
# Written by `provision job image --site sigma2-olivia --arch accel --account tests`.
# Run it on a login node: `bash FILE`. Or submit it, because compute nodes reach registries too: `sbatch FILE`.

set -euo pipefail
umask 022
submit_folder=${SLURM_SUBMIT_DIR:-$PWD}

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
export http_proxy=http://10.63.2.48:3128
export https_proxy=http://10.63.2.48:3128
export HTTP_PROXY=http://10.63.2.48:3128
export HTTPS_PROXY=http://10.63.2.48:3128
command -v apptainer >/dev/null || stop "there is no apptainer on this node"

# Keep and unpack layers next to the images: home folders are too small for them.
images="$submit_folder/images"
export APPTAINER_CACHEDIR="$images/cache" APPTAINER_TMPDIR="$images/tmp"
mkdir -p "$images/cache" "$images/tmp"

# Tags move. Ask the registry which digest the tag means today (an anonymous token is enough).
manifest=https://nvcr.io/v2/nvidia/tensorflow/manifests/25.02-tf2-py3
challenge=$(curl --silent --show-error --head "$manifest" | tr -d '\r' | sed -n 's/^[Ww][Ww][Ww]-[Aa]uthenticate: Bearer //p')
authorization=()
if [ -n "$challenge" ]; then
  challenge_value() { sed -n "s/.*$1=\"\([^\"]*\)\".*/\1/p" <<<"$challenge"; }
  token=$(curl --fail --silent --show-error --get "$(challenge_value realm)" --data-urlencode "service=$(challenge_value service)" \
    --data-urlencode "scope=repository:nvidia/tensorflow:pull" |
    sed -n 's/.*"\(access_\)\{0,1\}token" *: *"\([^"]*\)".*/\2/p')
  authorization=(--header "Authorization: Bearer $token")
fi
digest=$(curl --fail --silent --show-error --head "${authorization[@]}" \
  --header "Accept: application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json" \
  "$manifest" | tr -d '\r' | sed -n 's/^[Dd]ocker-[Cc]ontent-[Dd]igest: //p')
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || stop "the registry did not return the digest of nvcr.io/nvidia/tensorflow:25.02-tf2-py3"

image="$images/tensorflow-25.02-tf2-py3-${digest:7:12}.sif"
if [ -f "$image" ]; then
  echo "already pulled: $image"
else
  beside="$images/.$$-$(basename "$image")" # renamed when the image is complete and checked
  trap 'rm -f "$beside"' EXIT
  apptainer pull --arch arm64 "$beside" "docker://nvcr.io/nvidia/tensorflow@$digest"
  if [ "$(uname -m)" = aarch64 ]; then # otherwise this node cannot run the image
    apptainer exec --nv "$beside" python - <<'PYTHON' ||
import importlib.util
import sys

if importlib.util.find_spec("tensorflow"):
    import tensorflow

    sys.exit(not tensorflow.test.is_built_with_cuda())
import torch

sys.exit(not torch.backends.cuda.is_built())
PYTHON
      stop "docker://nvcr.io/nvidia/tensorflow@$digest has no TensorFlow or PyTorch with GPU support"
  fi
  printf '%s\n' "docker://nvcr.io/nvidia/tensorflow@$digest" '# was :25.02-tf2-py3' "# pulled $(date +%F) on $(hostname)" >"$image.txt"
  mv "$beside" "$image"
fi
ln -sfn "$(basename "$image")" "$images/tensorflow-25.02-tf2-py3.sif" # jobs use this name
echo "image: $image"
