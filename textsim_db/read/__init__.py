"""read: a stored corpus in; matches, pairs, clusters and statistics out.

Also measures recall by brute force, and checks the integrity of all stored rows.
Never writes.
"""
