"""files: JSON lines, CSV, Parquet and text files in; documents, and copies of records, out.

Refuses damaged and hostile input with its place, in bounded memory.
Knows no corpus and no database.
"""
