"""The command python -m tests.fuzz; see tests.fuzz.run."""

from tests.fuzz.run import main

main()
