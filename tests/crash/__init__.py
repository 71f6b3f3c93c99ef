"""Crash tests: whatever is killed, and whenever, what was committed is there and work goes on.

    python -m tests.crash --kills 200 --seed 7

Clients, workers and the server are killed with SIGKILL at random moments of a bulk load, of a
worker's indexing, of writes by SQL, of rebuilds and of migrations. The suite runs ten kills.
"""
