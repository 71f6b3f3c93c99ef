"""diff: two texts in, every measure of them and where they differ out.

Also as a page with both side by side.
Knows no corpus and no database.
"""
