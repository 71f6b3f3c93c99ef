"""compare: documents as rows of integers in, exact similarities out.

Also skips pairs that cannot match (prefix filter), and measures recall by brute force.
Knows no database and no files, and never estimates.
"""
