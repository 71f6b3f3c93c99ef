"""dedupe: files, frames and lists in; their pairs, clusters and duplicates out, without a server.

A run may compare its records with those of corpora, which it asks as a user would: so it lies above
`corpus`. Never writes SQL.
"""
