"""Virtual environments as a backend: virtualenv, a locked install by uv or pip, and Horovod compiled beside it."""
