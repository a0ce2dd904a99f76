"""Spack environments as a backend: a generated package repository, a spack.yaml for each arch, and the judge of its lock."""
