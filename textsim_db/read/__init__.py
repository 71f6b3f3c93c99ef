"""read: a stored corpus in; matches, pairs, clusters and statistics out.

Also measures recall by brute force.
Never writes.
"""
