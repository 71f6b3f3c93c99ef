"""python -m tests.fuzz; see run."""

from tests.fuzz.run import main

main()
