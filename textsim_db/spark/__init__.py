"""spark: DataFrames in; pairs, clusters, duplicates or a corpus of PostgreSQL out.

Tasks send messages of packed numbers, and only the texts of candidates are sent.
Never sends a row for each bucket, never attaches sets or signatures to rows, and never holds the
documents of a DataFrame on the driver.
"""

from textsim_db.spark.write_corpus import write

__all__ = ["write"]
