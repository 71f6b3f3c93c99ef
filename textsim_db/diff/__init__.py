"""diff: two texts in; their similarity by every measure, and their differences, out.

Knows no corpus and no database.
"""
