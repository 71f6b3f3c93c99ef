"""dedupe: a file or a table in, the same without its near-duplicates out.

By a temporary corpus; the table itself is never changed.
Never removes a record that was not compared with the one that stays.
"""
