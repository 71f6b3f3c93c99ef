"""spark: DataFrames in; pairs, clusters, duplicates and passages out, those of a corpus.

Tasks send messages of packed numbers, and only the texts of candidates are sent. write() and read()
move documents between DataFrames and a corpus of PostgreSQL.
Never writes SQL, never sends a row for each bucket, and never attaches sets or signatures to rows.
"""

from textsim_db.lazy_imports import names_of_stub

# Imported when first used: a task imports modules of this package, but not PySpark's DataFrames.
__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
