"""spark: DataFrames of PySpark in, DataFrames or a corpus of PostgreSQL out.

Never holds the documents of a DataFrame on the driver.
"""

from textsim_db.spark.read_corpus import read
from textsim_db.spark.write_corpus import write

__all__ = ["read", "write"]
