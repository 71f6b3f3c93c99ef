"""Run the soak test; see tests.soak.run."""

import sys

from tests.soak.run import main

if __name__ == "__main__":
    sys.exit(main())
