"""Compiling Horovod: the flags, the files its build needs, and the key of everything that decides a wheel's ABI."""
