"""files: JSON lines, CSV, TSV, Parquet and text files in; documents, and records of these formats, out.

Refuses damaged and hostile input with its place, in bounded memory.
Knows no corpus and no database.
"""
