"""compare: documents as rows of integers in, exact similarities out.

Also which pairs need no comparison: the prefix filter, and brute force to judge it.
Knows no database and no files, and never estimates.
"""
