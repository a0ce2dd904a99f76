"""`python -m provision` is the command `provision`."""

import sys

from provision.cli import main

if __name__ == "__main__":
    sys.exit(main())
