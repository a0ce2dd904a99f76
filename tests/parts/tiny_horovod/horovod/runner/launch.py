"""What `horovodrun --check-build` prints."""


def check_build(verbose):
    """Print what is built in."""
    print("[X] MPI")
