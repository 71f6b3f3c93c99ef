"""Writes and removes documents with their band rows, inside one transaction of the caller."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from psycopg import errors as pg

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.db.binary_format import (
    TIMESTAMPTZ,
    Parameter,
    array,
    load_int8_array,
    load_signatures,
)
from textsim_db.db.connections import Cursor
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.results import Match, Outcome
from textsim_db.sketch.ragged import in_parts
from textsim_db.sketch.sketch_texts import buckets_of
from textsim_db.text.utf8 import Utf8
from textsim_db.write import statements
from textsim_db.write.copy_rows import (
    Contents,
    Identities,
    band_rows,
    changed_rows,
    column,
    copy_band_rows,
    copy_document_rows,
    copy_new_rows,
    delete_band_rows,
)
from textsim_db.write.find_twins import TwinInBatch, find_twins, lock_buckets
from textsim_db.write.prepare_batches import (
    ADDED,
    COMPLETED,
    EXTENDED,
    REPLACED,
    TWIN,
    UNCHANGED,
    Batch,
    Outcomes,
    Stored,
    StoredByKey,
    outcomes,
)

NO_SOURCE = -1
"""Stands for the source of a document that comes from no attached table."""
MAX_ID = 2**31 - 1
"""The largest id of a document, because band rows store it as int4."""


def find(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> StoredByKey:
    return _fetch(cursor, corpus.statement(statements.FIND_DOCUMENTS), keys)


def lock(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> StoredByKey:
    return _fetch(cursor, corpus.statement(statements.LOCK_DOCUMENTS), keys)


def lock_free(
    cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]
) -> tuple[StoredByKey, set[str]]:
    """Lock the documents that no other transaction has locked; return them and the other keys.

    A transaction that never waits for a lock cannot be part of a deadlock.
    """
    locked = _fetch(cursor, corpus.statement(statements.LOCK_FREE_DOCUMENTS), keys)
    if len(locked) == len(keys):
        return locked, set()
    stored = cursor.execute(corpus.statement(statements.STORED_KEYS), [list(keys)]).fetchall()
    return locked, {key for (key,) in stored} - locked.keys()


def _fetch(cursor: Cursor, statement: str, keys: Sequence[str]) -> StoredByKey:
    rows = cursor.execute(statement, [list(keys)]).fetchall()
    return {key: Stored(*fields) for key, *fields in rows}


class Written(NamedTuple):
    outcomes: Outcomes
    """The outcome of each document: (documents,)."""
    twins: list[TwinInBatch]
    """The documents that a unique corpus leaves out."""
    near_misses: Sequence[tuple[Outcome, Match]] = ()
    """The matches beside which a single document is stored, and what each makes of it."""


class _Decision(NamedTuple):
    outcomes: Outcomes
    adopted: list[int]
    """The ids of stored documents that only get a new source."""
    stored: StoredByKey
    """The stored documents; the changing documents are locked."""


def write(
    cursor: Cursor,
    store: Store,
    batch: Batch,
    source_id: int | None = None,
    locked: StoredByKey | None = None,
    unique_from: float = 0,
) -> Written:
    """Write a batch, except documents that a unique corpus leaves out.

    source_id: the attached table that the documents come from; None leaves it as it is. locked: the
    stored documents, if the caller has locked them. A document that was added since raises
    UniqueViolation. unique_from: the similarity of twins, if it is above that of the corpus.
    """
    if not batch.keys:
        return Written(np.empty(0, np.int8), [])
    corpus = store.corpus
    batch = _with_expiries(cursor, corpus, batch)
    decision = _decide(cursor, store, batch, source_id, locked)
    outcome, twins = decision.outcomes, _twins(cursor, store, batch, decision)
    left_out = twins
    if twins and unique_from > corpus.config.twins_from:
        left_out = _twins(cursor, store, batch, decision, unique_from)
    left_out = _without_standing(cursor, corpus, batch, outcome, left_out)
    outcome[[twin.place for twin in left_out]] = TWIN
    if left_out:
        cursor.execute(statements.COUNT_TWINS, [corpus.id, len(left_out)])
    _update(cursor, corpus, batch, decision, source_id)
    added = np.flatnonzero(outcome == ADDED)
    if len(added):
        source_ids = np.full(len(added), NO_SOURCE if source_id is None else source_id)
        insert(cursor, corpus, batch, added, next_ids(cursor, corpus, len(added)), source_ids)
    if unique_from > 0:
        forced = {twin.place for twin in twins} - {twin.place for twin in left_out}
        mark_forced(cursor, corpus, [batch.keys[place] for place in sorted(forced)])
    return Written(outcome, left_out)


def _with_expiries(cursor: Cursor, corpus: StoredCorpus, batch: Batch) -> Batch:
    """Return a batch whose documents expire as if they are written now, unless it says when."""
    if corpus.config.keep_for is None or batch.expiries is not None:
        return batch
    row = cursor.execute(corpus.statement(statements.NEW_EXPIRY)).fetchone()
    if row is None:  # a rebuild has replaced the corpus
        raise pg.ObjectNotInPrerequisiteState(f"corpus {corpus.id} does not exist")
    return replace(batch, expiries=[row[0]] * len(batch.keys))


def _decide(
    cursor: Cursor, store: Store, batch: Batch, source_id: int | None, locked: StoredByKey | None
) -> _Decision:
    """Compare a batch with the stored documents, and lock those that change, after the buckets."""
    corpus = store.corpus
    stored = find(cursor, corpus, batch.keys) if locked is None else locked
    outcome, adopted = outcomes(batch, stored, source_id)
    changing = np.flatnonzero(outcome != UNCHANGED)
    if corpus.config.is_unique:
        lock_buckets(cursor, store, batch, changing)
    else:
        changing = changing[outcome[changing] != ADDED]
    if locked is None and len(changing):
        keys = [batch.keys[i] for i in changing.tolist()]
        now = lock(cursor, corpus, keys)
        before = {key: stored[key] for key in keys if key in stored}
        stored = {key: stored[key] for key in stored.keys() - set(keys)} | now
        if _without_signatures(now) != _without_signatures(before):
            outcome, adopted = outcomes(batch, stored, source_id)
    return _Decision(outcome, adopted, stored)


def _without_signatures(documents: StoredByKey) -> dict[str, tuple[object, ...]]:
    return {key: document[:-1] for key, document in documents.items()}


def _twins(
    cursor: Cursor, store: Store, batch: Batch, decision: _Decision, unique_from: float = 0
) -> list[TwinInBatch]:
    """Return the documents of a batch that match other documents of a unique corpus."""
    if not store.corpus.config.is_unique:
        return []
    outcome = decision.outcomes
    new = np.flatnonzero((outcome == ADDED) | (outcome == REPLACED) | (outcome == EXTENDED))
    if store.corpus.config.keep_for is not None:
        # A document that will expire at another time must have no twin: a transaction with a later
        # clock may have seen it expired, and have added a twin.
        completed = np.flatnonzero(outcome == COMPLETED).tolist()
        extended = [
            i for i in completed if decision.stored[batch.keys[i]].expires_at != batch.expiry_of(i)
        ]
        new = np.sort(np.concatenate((new, np.array(extended, np.int64))))
    if not len(new):
        return []
    return find_twins(cursor, store, batch, new, unique_from)


def _without_standing(
    cursor: Cursor, corpus: StoredCorpus, batch: Batch, outcome: Outcomes, twins: list[TwinInBatch]
) -> list[TwinInBatch]:
    """Return the twins without unchanged documents that were forced beside their matches."""
    is_written = (outcome == ADDED) | (outcome == REPLACED)
    unchanged = [twin for twin in twins if not is_written[twin.place]]
    if not unchanged:
        return twins
    keys = [batch.keys[twin.place] for twin in unchanged]
    keys += [match.key for twin in unchanged for match in twin.matches]
    statement = corpus.statement(statements.STANDING_DOCUMENTS)
    is_forced = dict(cursor.execute(statement, [keys]).fetchall())
    for place in np.flatnonzero(is_written).tolist():
        is_forced.pop(batch.keys[place], None)
    standing = {
        twin.place
        for twin in unchanged
        if (own := is_forced.get(batch.keys[twin.place])) is not None
        and (own or all(is_forced.get(match.key) for match in twin.matches))
    }
    return [twin for twin in twins if twin.place not in standing]


def _update(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    decision: _Decision,
    source_id: int | None,
) -> None:
    """Rewrite the stored documents that are replaced, completed, extended or adopted."""
    outcome = decision.outcomes
    changed = np.flatnonzero((outcome == REPLACED) | (outcome == COMPLETED))
    if len(changed):
        if source_id is None and corpus.config.is_unique:
            # The function refuses to replace a document of an attached table.
            replaced = [batch.keys[i] for i in np.flatnonzero(outcome == REPLACED).tolist()]
            cursor.execute(statements.REFUSE_ATTACHED, [corpus.id, replaced])
        documents = [decision.stored[batch.keys[i]] for i in changed.tolist()]
        is_same = outcome[changed] == COMPLETED
        _replace(cursor, corpus, batch, changed, documents, source_id, is_same)
    _extend(cursor, corpus, batch, decision)
    if decision.adopted:
        parameters = [source_id, array(np.array(decision.adopted, np.int32))]
        cursor.execute(corpus.statement(statements.ADOPT_DOCUMENTS), parameters)


def _extend(cursor: Cursor, corpus: StoredCorpus, batch: Batch, decision: _Decision) -> None:
    """Give documents whose words did not change the time when they expire now."""
    ids_by_expiry: dict[bytes | None, list[int]] = {}
    for i in np.flatnonzero(decision.outcomes == EXTENDED).tolist():
        ids = ids_by_expiry.setdefault(batch.expiry_of(i), [])
        ids.append(decision.stored[batch.keys[i]].id)
    for expiry, ids in ids_by_expiry.items():
        parameters = [expiry_parameter(expiry), array(np.array(ids, np.int32))]
        cursor.execute(corpus.statement(statements.EXTEND_DOCUMENTS), parameters)


def next_ids(cursor: Cursor, corpus: StoredCorpus, count: int) -> Int64Array:
    """Take new ids from the sequence: (count,), sorted; raises DatabaseError if too few are left."""
    try:
        row = cursor.execute(corpus.statement(statements.NEXT_IDS), [count]).fetchone()
    except pg.SequenceGeneratorLimitExceeded as error:
        message = (
            f'corpus "{corpus.name}" has given out all {MAX_ID:,} ids of documents; rebuild it, which '
            f"numbers its documents from 1 again: textsim rebuild {shlex.quote(corpus.name)}"
        )
        raise DatabaseError(message) from error
    assert row is not None
    return np.sort(load_int8_array(row[0]))


def remove_locked(cursor: Cursor, corpus: StoredCorpus, documents: Sequence[Stored]) -> int:
    if documents:
        parameter = array(_ids(documents).astype(np.int32))
        cursor.execute(corpus.statement(statements.DELETE_DOCUMENTS), [parameter])
        delete_band_rows(cursor, corpus, _stored_band_rows(corpus, documents))
    return len(documents)


def insert(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    numbers: Int64Array,
    ids: Int64Array,
    source_ids: Int64Array,
) -> None:
    """Insert documents of a batch under new ids, with their band rows and fingerprints.

    numbers, ids, source_ids: (documents,), the places of the documents in the batch, their ids, and the
    attached tables that they come from, or NO_SOURCE.
    """
    sketches, chosen = batch.sketches, numbers.tolist()
    keys, languages, scopes = (
        column(None if values is None else [values[i].encode() for i in chosen], len(chosen))
        for values in (batch.keys, batch.languages, batch.scopes)
    )
    given = batch.expiries
    expiries = column(None if given is None else [given[i] or b"" for i in chosen], len(chosen))
    is_scoped = batch.scopes is not None
    identities = Identities(ids, keys, source_ids, languages, scopes, is_scoped, expiries)
    tokens, none = sketches.tokens, np.empty(0, np.int64)
    words = (np.empty(0, np.int32), none, tokens.utf8)
    if batch.word_ids is not None:
        words = (batch.word_ids, tokens.word_offsets, Utf8(tokens.normal, none))
    contents = Contents(
        sketches.shingle_counts,
        *words,
        *sketches.signatures,
        *(sketches.fingerprints or ()),
    )
    if sketches.guards is not None:
        contents = contents._replace(guards=sketches.guards)
    copy_document_rows(cursor, corpus, identities, contents, numbers)
    copy_new_rows(cursor, corpus, batch, numbers, ids)


def near_misses(
    cursor: Cursor, corpus: StoredCorpus, key: str, unique_from: float
) -> list[tuple[Outcome, Match]]:
    """Return the best matches beside which a unique corpus has stored a document."""
    rows = cursor.execute(corpus.statement(statements.NEAR_MISSES), [key, unique_from]).fetchall()
    return [
        (Outcome(outcome), Match(match, similarity, tuple(differs)))
        for outcome, match, similarity, differs in rows
    ]


def mark_forced(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> None:
    """Mark documents as stored although they match others."""
    if keys:
        cursor.execute(corpus.statement(statements.FORCE_DOCUMENTS), [list(keys)])


def set_cluster_sizes(
    cursor: Cursor,
    corpus: StoredCorpus,
    sizes: Mapping[str, int],
    counted: Sequence[tuple[str, int]],
) -> None:
    """Store of documents, by their keys, for how many records each stands.

    counted: (key of a document, hash of the key of such a record).
    """
    if sizes:
        keys, hashes = [key for key, _ in counted], [hash_ for _, hash_ in counted]
        statement = corpus.statement(statements.SET_CLUSTER_SIZES)
        cursor.execute(statement, [keys, hashes, [*sizes], [*sizes.values()]])


def _replace(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    numbers: Int64Array,
    documents: Sequence[Stored],
    source_id: int | None,
    is_same: BoolArray,
) -> None:
    """Rewrite documents under their ids, and only the band rows that differ."""
    updates = [
        (
            *_words_to_store(batch, i),
            array(batch.sketches.signatures.of(i)),
            batch.sketches.fingerprints and array(batch.sketches.fingerprints.of(i)),
            int(batch.sketches.shingle_counts[i]),
            batch.language_of(i),
            batch.scope_of(i),
            batch.sketches.guard_of(i),
            expiry_parameter(batch.expiry_of(i)),
            source_id,
            same,
            stored.id,
        )
        for i, stored, same in zip(numbers.tolist(), documents, is_same.tolist(), strict=True)
    ]
    cursor.executemany(corpus.statement(statements.UPDATE_DOCUMENT), updates)
    before = _stored_band_rows(corpus, documents)
    after = band_rows(batch.sketches.buckets.take(numbers), _ids(documents))
    gone, new = changed_rows(before, after)
    delete_band_rows(cursor, corpus, gone)
    copy_band_rows(cursor, corpus, new)


def _words_to_store(batch: Batch, i: int) -> tuple[Parameter | None, str | None]:
    """Return the word ids of a document, and its normal form; one of them is None."""
    word_ids = batch.words_of(i)
    return (None, batch.form_of(i)) if word_ids is None else (array(word_ids), None)


def _stored_band_rows(corpus: StoredCorpus, documents: Sequence[Stored]) -> Int64Array:
    stored = [document.signature for document in documents]
    signatures = load_signatures(stored, [document.id for document in documents], corpus.config)
    parts = np.array([d.part for d in documents], np.int64) if corpus.config.scoped else None
    buckets = in_parts(buckets_of(signatures, corpus.config), parts)
    return band_rows(buckets, _ids(documents))


def expiry_parameter(expiry: bytes | None) -> Parameter | None:
    return None if expiry is None else Parameter(expiry, TIMESTAMPTZ)


def _ids(documents: Sequence[Stored]) -> Int64Array:
    return np.array([document.id for document in documents], np.int64)
