"""The real parts that the tests stand on: a Slurm cluster, module systems, a site's modules. Nothing here is a fake.

Each part is found or started on the machine that runs the tests (`.ci/install` brings what PyPI cannot), and says what
is missing where it cannot be had, so that a test can skip and print the reason.
"""
