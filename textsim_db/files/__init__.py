"""files: records and texts of files in; documents, and records, out. Knows no corpus or database."""
