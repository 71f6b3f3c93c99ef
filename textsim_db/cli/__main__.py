"""python -m textsim_db.cli: the same as textsim."""

from textsim_db.cli import main

main()
