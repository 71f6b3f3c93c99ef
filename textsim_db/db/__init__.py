"""db: addresses and statements in, connections and rows out.

Engines, the embedded server, the schema, retries, stored corpora, and the dictionary.
Never computes a similarity, and never decides which documents are indexed.
"""
