"""sketch: distinct shingles in, signatures and buckets out.

Also the plan of bands and rows: what they find at which similarity.
Knows no database and no files.
"""
