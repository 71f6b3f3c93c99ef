"""The tests. Programs that a test starts import compiled modules, whatever the environment says.

Without compiled modules each of these processes would compile them again, for three seconds.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
