"""write: documents in, stored rows out, a batch in a transaction.

Bulk loads, rebuilds, and corpora that are there for a while.
Never gives out word ids in the transaction that writes documents.
"""
