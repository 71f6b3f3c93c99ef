"""frames: columns of data frames and Arrow tables in, results as Arrow out.

Imports pyarrow only when a table needs it, and pandas, Polars and DuckDB never.
"""
