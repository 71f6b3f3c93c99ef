"""Crash tests: after any kill, committed documents are stored and the work can go on.

    python -m tests.crash --kills 200 --seed 7

The tests kill clients, workers and the server with SIGKILL at random moments of a bulk load, of a
worker's indexing, of writes by SQL and to a unique corpus, of rebuilds and of migrations. The suite runs
twelve kills.
"""
