"""sketch: distinct shingles in, signatures and buckets out.

Also plans bands and rows: the probability of a match at each similarity.
Knows no database and no files.
"""
