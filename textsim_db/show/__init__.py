"""show: values in, escaped HTML out: tables, charts, and lists that show themselves.

Knows no corpus and no database. Its HTML runs no script, loads nothing, and is readable on light and on
dark pages.
"""
