"""diff: two texts in; their similarity by every measure, and their differences, out.

Also as a page with both side by side.
Knows no corpus and no database.
"""
