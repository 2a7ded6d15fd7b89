"""`python -m bcd.controlplane`: the same as `bcd-controlplane`."""

import sys

from bcd.controlplane.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
