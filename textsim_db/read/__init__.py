"""read: a stored corpus in; matches, pairs, clusters and what is in the corpus out.

Searches, recall by brute force, statistics, and the check of all stored rows.
Never writes.
"""
