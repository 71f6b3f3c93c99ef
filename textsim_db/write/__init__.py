"""write: documents in, stored rows out, each batch in one transaction.

Also bulk loads, rebuilds and temporary corpora. Knows no measures.
Never adds words to the dictionary in the transaction that writes documents.
"""
