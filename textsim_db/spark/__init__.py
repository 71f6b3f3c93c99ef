"""spark: DataFrames in; pairs, clusters and duplicates out, the same as a corpus finds.

Tasks send messages of packed numbers, and only the texts of candidates are sent.
Never sends a row for each bucket, and never attaches sets or signatures to rows.
"""
