"""Finds pairs that share a bucket only because its 32-bit hash collides, without reading words.

If two documents have an equal band, they have the same first value in it. The first values of all
bands are a twentieth of the bytes of a document of 200 words, and unrelated documents rarely have one
in common.
"""

from __future__ import annotations

import numpy as np

from textsim_db.compare.packed_pairs import left_of, right_of, same_anywhere
from textsim_db.db.binary_format import Array, load_int4_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.snapshot import on_each
from textsim_db.text.array_types import BoolArray, Int16Array, Int32Array, Int64Array

FEW_PAIRS = 20_000
"""Up to this number of pairs, reading their words takes no longer than this check."""
VALUES_AT_ONCE = 100_000_000
SIGNATURES_AT_ONCE = 50_000
_HEADER = 28  # of an array of two dimensions
_LENGTH_AND_INT2 = np.dtype([("length", ">i4"), ("value", ">i2")])


def has_equal_band(
    connections: list[Connection], corpus: StoredCorpus, pairs: Int64Array
) -> BoolArray:
    """Return for each packed pair whether a band may be equal; false means that no band is equal."""
    assert corpus.config.banding is not None
    at_once = VALUES_AT_ONCE // (2 * corpus.config.banding.bands)
    parts = [
        _same_first_values(connections, corpus, pairs[start : start + at_once])
        for start in range(0, len(pairs), at_once)
    ]
    return np.concatenate([np.zeros(0, np.bool_), *parts])


def _same_first_values(
    connections: list[Connection], corpus: StoredCorpus, pairs: Int64Array
) -> BoolArray:
    sides = left_of(pairs), right_of(pairs)
    ids = np.unique(np.concatenate(sides)).astype(np.int32)
    values, is_known = _first_values(connections, corpus, ids)
    left, right = (np.searchsorted(ids, side) for side in sides)
    same: BoolArray = same_anywhere(values, left, right) | ~is_known[left] | ~is_known[right]
    return same


def _first_values(
    connections: list[Connection], corpus: StoredCorpus, ids: Int32Array
) -> tuple[Int16Array, BoolArray]:
    """Return the first value of each band of documents, and which of the documents have values.

    int16 of shape (ids, bands), and bool of shape (ids,). A missing or damaged document has no
    values. Its pairs are kept, so that reading the document reports the damage.
    """
    assert corpus.config.banding is not None
    bands, rows = corpus.config.banding
    firsts = ", ".join(f"d.signature[{band * rows + 1}]" for band in range(bands))
    statement = corpus.statement(statements.FIRST_VALUES).replace("d.signature", firsts, 1)
    values = np.zeros((len(ids), bands), np.int16)
    is_known = np.zeros(len(ids), np.bool_)

    def read(connection: Connection, part: Int32Array) -> None:
        parameters = [corpus.config.num_hashes, Array(part)]
        row = connection.execute(statement, parameters, binary=True).fetchone()
        if row is not None and row[0] is not None:
            known_ids = load_int4_array(row[0])
            if len(row[1]) == _HEADER + _LENGTH_AND_INT2.itemsize * bands * len(known_ids):
                elements = np.frombuffer(row[1], _LENGTH_AND_INT2, offset=_HEADER)["value"]
                places = np.searchsorted(ids, known_ids)
                values[places], is_known[places] = elements.reshape(-1, bands), True

    parts = [ids[i : i + SIGNATURES_AT_ONCE] for i in range(0, len(ids), SIGNATURES_AT_ONCE)]
    for _ in on_each(connections, parts, read):
        pass
    return values, is_known
