"""sketch: distinct shingles in, signatures and buckets out. Knows no database and no files."""
