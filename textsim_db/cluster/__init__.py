"""cluster: verified pairs in, clusters and the documents that stay out.

Linkage, crowded buckets, and which document of a cluster is kept.
Knows no database, and never links what was not verified.
"""
