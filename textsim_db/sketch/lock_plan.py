"""The locks of writers of a unique corpus, and the memory that the server needs for them; pure."""

from __future__ import annotations

from math import ceil

from textsim_db.choose_bands import Bands

MOST_LOCKS = 256
"""The default of textsim.max_bucket_locks: a transaction that takes more locks the whole corpus."""
OTHER_WORK = 64
"""The server's default for max_locks_per_transaction, which leaves space for all other work."""
CONNECTIONS = 100
"""The server's default for max_connections."""
_WORDS_OF_SHINGLE = 3


def locks_of_document(banding: Bands | None, threshold: float, words: float) -> int:
    """Return how many buckets a document of this length locks, with shingles of three words.

    In an exact corpus a document of n shingles locks n - ceil(t n) + 1: two that reach t share one.
    """
    if banding is not None:
        return banding.bands
    shingles = max(1, round(words) - _WORDS_OF_SHINGLE + 1)
    return shingles - ceil(threshold * shingles) + 1


def needed_setting(clients: int, locks: int, connections: int) -> int:
    """Return the max_locks_per_transaction for clients that hold this many locks at the same time.

    The server's table has space for max_locks_per_transaction times the number of connections.
    """
    return OTHER_WORK + ceil(clients * min(locks, MOST_LOCKS) / connections)
