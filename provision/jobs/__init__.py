"""A wish, to the values of a job script: builds, users' jobs, container images and overlays. Pure."""
