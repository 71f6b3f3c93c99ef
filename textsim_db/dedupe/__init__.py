"""dedupe: the documents of a file or a data frame in, the near-duplicates to remove out.

Also a page that shows what is removed.
A temporary corpus finds the near-duplicates. Documents that match a given corpus are left out before.
Never removes a record that was not compared with the record that is kept in its place.
"""
