"""Scopes: parts of a corpus, such as tenants, whose documents never meet; pure.

A band row and a lock hold a bucket that is mixed with the hash of its scope. So an index that knows no
scopes leads to the documents of one scope, and to a few others by chance. A reader that finds
documents by their buckets compares the scopes, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from textsim_db.sketch.ragged import Buckets, Ragged
from textsim_db.text.array_types import Int32Array, Int64Array
from textsim_db.text.hashing import hash_texts

Item = TypeVar("Item", bound=Hashable)

Scopes = Sequence[str] | None
"""The scope of each of several documents; None if their corpus is not scoped."""


def in_scopes(buckets: Buckets, scopes: Scopes) -> Buckets:
    """Return the buckets of documents as they are stored and locked."""
    if scopes is None:
        return buckets
    numbers, names = numbered(scopes)
    hashes = np.array(hash_texts(names), np.int64).astype(np.int32)  # the low half
    return Ragged(buckets.values ^ np.repeat(hashes[numbers], buckets.sizes), buckets.offsets)


def apart(buckets: Buckets, scopes: Scopes) -> Buckets:
    """Return numbers instead of buckets, which are equal only for equal buckets of one scope."""
    if scopes is None:
        return buckets
    owners = np.repeat(numbered(scopes)[0], buckets.sizes)
    keys = owners << 32 | buckets.values.astype(np.int64) & 0xFFFFFFFF
    numbers: Int32Array = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return Ragged(numbers, buckets.offsets)


def numbered(items: Sequence[Item]) -> tuple[Int64Array, list[Item]]:
    """Return a number for each item, and the distinct items in the order of their numbers."""
    numbers: dict[Item, int] = {}
    return (
        np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int64),
        list(numbers),
    )
