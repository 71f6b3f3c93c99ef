"""cluster: verified pairs in, clusters and kept documents out.

Linkage, large buckets, and the choice of the document that a cluster keeps.
Knows no database, and never links documents that were not verified.
"""
