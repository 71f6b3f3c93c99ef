"""Normal forms, composed from word ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from textsim_db.text.array_types import ByteArray, Int32Array, Int64Array
from textsim_db.text.hash_table import SPREAD, enter, find, hash_table, is_taken, number_at
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.utf8 import Utf8, concatenate, copy_span

_SPACE = 0x20


def compose_forms(
    word_ids: Int32Array, offsets: Int64Array, texts_of: Callable[[list[int]], Mapping[int, str]]
) -> list[bytes]:
    """Return the normal form of each document in UTF-8.

    word_ids, offsets: as load_int4_arrays returns them; texts_of: returns the words of distinct ids.
    A word that it does not return is left empty.
    """
    distinct, places = _distinct(word_ids, SPREAD)
    ids = distinct.tolist()
    texts = texts_of(ids)
    words = concatenate([texts.get(id_, "").encode() for id_ in ids])
    data, bounds = _compose(words, places, offsets)
    composed = data.tobytes()
    return [composed[start:end] for start, end in pairwise(bounds.tolist())]


@kernel
def _distinct(word_ids: Int32Array, spread: int) -> tuple[Int32Array, Int64Array]:
    """Return the distinct ids, and for each id its place among them."""
    table = hash_table(np.empty(len(word_ids), np.uint64), len(word_ids), spread)
    distinct = np.empty(len(word_ids), np.int32)
    places = np.empty(len(word_ids), np.int64)
    count = 0
    for i in range(len(word_ids)):
        key = np.uint64(word_ids[i])
        slot = find(table, key)
        if not is_taken(table, slot):
            enter(table, slot, count)
            table.hashes[count], distinct[count] = key, word_ids[i]
            count += 1
        places[i] = number_at(table, slot)
    return distinct[:count], places


@kernel
def _compose(words: Utf8, places: Int64Array, offsets: Int64Array) -> tuple[ByteArray, Int64Array]:
    """Return all forms in one array, and the bounds of each form."""
    out = np.empty(_total_size(words, places), np.uint8)
    bounds = np.zeros(len(offsets), np.int64)
    at = 0
    for document in range(len(offsets) - 1):
        for i in range(offsets[document], offsets[document + 1]):
            if i > offsets[document]:
                out[at] = _SPACE
                at += 1
            start, end = words.offsets[places[i]], words.offsets[places[i] + 1]
            at = copy_span(words.data, start, end, out, at)
        bounds[document + 1] = at
    return out[:at], bounds


@inlined_kernel
def _total_size(words: Utf8, places: Int64Array) -> int:
    size = len(places)
    for place in places:
        size += words.offsets[place + 1] - words.offsets[place]
    return size
