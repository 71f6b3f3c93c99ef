"""files: JSON lines, CSV, Parquet and text files in, documents out; records are copied as they are.

Damaged and hostile input is refused by name, in bounded memory.
Knows no corpus and no database.
"""
