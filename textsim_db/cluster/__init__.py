"""cluster: candidate pairs and rows of documents in; verified pairs, clusters and kept documents out.

`join` and `linkages` serve corpora in PostgreSQL and tasks of Spark, which implement `join.Host`.
Knows no database, and never links documents that were not verified.
"""
