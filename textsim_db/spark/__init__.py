"""spark: DataFrames in; pairs, clusters and duplicates out, the same as a corpus finds.

Tasks send messages of packed numbers, and only the texts of candidates are sent. write() and read()
move documents between DataFrames and a corpus of PostgreSQL.
Never sends a row for each bucket, and never attaches sets or signatures to rows.
"""

from textsim_db.spark.read_corpus import read
from textsim_db.spark.write_corpus import write

__all__ = ["read", "write"]
