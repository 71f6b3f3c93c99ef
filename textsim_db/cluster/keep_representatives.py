"""Which documents to keep, so that each other one is verified against a kept one; pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.compare.jaccard import enter, shared_with, similarity_of, slots_for
from textsim_db.text.compiler import kernel

Numbers = npt.NDArray[np.int64]


@kernel
def keep(
    tokens: npt.NDArray[np.int32],
    offsets: Numbers,
    shingle_counts: Numbers,
    n: int,
    buckets: Numbers,
    settled: int,
    threshold: float,
) -> tuple[Numbers, npt.NDArray[np.float64]]:
    """Go through documents in order; keep each that is not similar to one kept before.

    tokens, offsets, shingle_counts and n are those of jaccard_pairs; buckets: (documents, bands),
    where documents have to meet; the first settled documents are kept already. Returns who is kept
    in the place of each, itself or the most similar one, and the similarity; both of shape
    (documents,). Every document with shingles has its place in buckets.
    """
    documents, bands = buckets.shape
    size = 16
    while size < 2 * documents * bands:
        size *= 2
    mask = size - 1
    heads = np.full(size, -1, np.int64)  # entries: document * bands + band
    following = np.full(documents * bands, -1, np.int64)
    slots = slots_for(offsets)
    table = np.full(slots, -1, np.int64)
    seen = np.full(slots, -1, np.int64)
    hashes = np.empty(slots, np.uint64)
    other_hashes = np.empty(slots, np.uint64)
    met = np.full(documents, -1, np.int64)
    kept_by = np.arange(documents)
    similarity = np.ones(documents)
    base, mark = 0, 0
    for x in range(documents):
        best = 0.0
        entered = x < settled
        if not entered:
            for band in range(bands):
                entry = heads[(buckets[x, band] + band) & mask]
                while entry >= 0:
                    y = entry // bands
                    same = entry % bands == band and buckets[y, band] == buckets[x, band]
                    entry = following[entry]
                    if not same or met[y] == x:
                        continue
                    met[y] = x
                    fewer = min(shingle_counts[x], shingle_counts[y])
                    if fewer < threshold * max(shingle_counts[x], shingle_counts[y]) - 1e-9:
                        continue
                    if not entered:
                        base += 1 << 32
                        enter(tokens, offsets[x], offsets[x + 1], n, table, base, hashes)
                        entered = True
                    mark += 1
                    shared = shared_with(
                        tokens,
                        offsets[x],
                        offsets[x + 1],
                        offsets[y],
                        offsets[y + 1],
                        n,
                        table,
                        base,
                        hashes,
                        seen,
                        mark,
                        other_hashes,
                    )
                    value = 0.0
                    if shared:
                        value = similarity_of(shared, shingle_counts[x], shingle_counts[y])
                    # Of equals, the one that comes first.
                    if value >= threshold and (value > best or (value == best and y < kept_by[x])):
                        best = value
                        kept_by[x] = y
                        similarity[x] = value
        if kept_by[x] == x:
            for band in range(bands):
                slot = (buckets[x, band] + band) & mask
                following[x * bands + band] = heads[slot]
                heads[slot] = x * bands + band
    return kept_by, similarity
