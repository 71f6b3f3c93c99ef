"""db: addresses and statements in, connections and rows out.

Engines, the embedded server, the schema, retries, corpora as stored, and the dictionary.
Never computes a similarity, and never decides what is indexed.
"""
