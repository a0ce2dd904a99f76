"""`provision`: TensorFlow + Horovod environments for HPC sites, proved before anybody can load them."""

__version__ = "0.1.0"
