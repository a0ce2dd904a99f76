"""How Horovod is compiled: the flags, the files that its build needs, and the key of everything that decides a wheel's ABI."""
