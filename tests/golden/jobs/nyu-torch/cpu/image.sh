#!/usr/bin/env bash
#SBATCH --job-name=image-cpu                   # the job's name in the queue
#SBATCH --output=./image-cpu-%j.out            # the output file (%j: the job ID)
#SBATCH --nodes=1                              # number of nodes
#SBATCH --ntasks-per-node=1                    # processes (ranks) on each node
#SBATCH --time=01:00:00                        # time limit, after which the scheduler ends the job
#SBATCH --cpus-per-task=4                      # CPUs for each process
#SBATCH --account=tests                        # the account to charge
#SBATCH --mem=16G                              # memory on each node: 4G for each CPU
#SBATCH --comment=preemption=yes;requeue=true  # required by the site profile

# The image tensorflow/tensorflow@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa as a file, for jobs at NYU Torch.
# Written by `provision job image --site nyu-torch --arch cpu --image docker://tensorflow/tensorflow@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa --account tests`.
# Run it on a login node: `bash FILE`. Or submit it, because compute nodes reach registries too: `sbatch FILE`.

set -euo pipefail
umask 022

stop() {
  printf 'error: %s\n' "$1" >&2
  exit 2
}
command -v apptainer >/dev/null || stop "there is no apptainer on this node"

# Keep and unpack layers next to the images: home folders are too small for them.
images="/scratch/$USER/images"
export APPTAINER_CACHEDIR="$images/cache" APPTAINER_TMPDIR="$images/tmp"
mkdir -p "$images/cache" "$images/tmp"

digest=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

image="$images/tensorflow-${digest:7:12}.sif"
if [ -f "$image" ]; then
  echo "already pulled: $image"
else
  beside="$images/.$$-$(basename "$image")" # renamed when the image is complete and checked
  trap 'rm -f "$beside"' EXIT
  apptainer pull --arch amd64 "$beside" "docker://tensorflow/tensorflow@$digest"
  printf '%s\n' "docker://tensorflow/tensorflow@$digest" "# pulled $(date +%F) on $(hostname)" >"$image.txt"
  mv "$beside" "$image"
fi
echo "image: $image"
