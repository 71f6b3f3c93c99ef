"""Run the soak test; see tests.soak.steady_load."""

import sys

from tests.soak.steady_load import main

if __name__ == "__main__":
    sys.exit(main())
