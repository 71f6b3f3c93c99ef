"""Compares a batch with the stored documents: which are new, changed or unchanged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.db.binary_format import load_int4_array
from textsim_db.write.prepare_batches import Batch

ADDED, REPLACED, UNCHANGED, COMPLETED, TWIN, EXTENDED = range(6)
"""The outcome of writing a document.

COMPLETED: the stored document has the same words, and the words get their ids. TWIN: a unique corpus
leaves the document out. EXTENDED: only the time when the document expires changes.
"""

Outcomes = npt.NDArray[np.int8]


class Stored(NamedTuple):
    id: int
    word_ids: bytes | None
    """None while the document has its normal form instead."""
    normal_form: str | None
    language: str | None
    part: int | None
    source_id: int | None
    """The attached table that the document comes from."""
    expires_at: bytes | None
    """In the format of timestamptz_send; None: never."""
    signature: bytes
    """Read only for documents that are locked."""


StoredByKey = dict[str, Stored]
"""Stored documents by key."""


def outcomes(
    batch: Batch, existing: StoredByKey, source_id: int | None
) -> tuple[Outcomes, list[int]]:
    """Return the outcomes of writing a batch, and the ids of documents that only get a new source."""
    outcome = np.full(len(batch.keys), ADDED, np.int8)
    adopted = []
    own = batch.sketches.parts
    parts = [None] * len(batch.keys) if own is None else own.tolist()
    for i, key in enumerate(batch.keys):
        stored = existing.get(key)
        if stored is None:
            continue
        if stored.part != parts[i]:
            outcome[i] = REPLACED
            continue
        if stored.word_ids is None:
            outcome[i] = COMPLETED if stored.normal_form == batch.form_of(i) else REPLACED
            continue
        is_same = stored.language == batch.language_of(i) and np.array_equal(
            load_int4_array(stored.word_ids), batch.words_of(i)
        )
        outcome[i] = UNCHANGED if is_same else REPLACED
        if is_same and stored.expires_at != batch.expiry_of(i):
            outcome[i] = EXTENDED
        if is_same and source_id is not None and stored.source_id != source_id:
            adopted.append(stored.id)
    return outcome, adopted
