"""Keeping a corpus equal to its attached tables: keys that changed, read again and written.

Everything goes by keys. What is written is always what the table holds while the writers of the
corpus queue, so that the order in which changes are taken, and how often, does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.binary_format import Array
from textsim_db.db.engine import Connection, autocommit, is_trouble, transaction, wait_at_most
from textsim_db.db.retries import PASSING, is_timeout, repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import TextsimError
from textsim_db.results import ChangeReport, Drift, Refusal
from textsim_db.sync import source_rows
from textsim_db.sync.source_rows import StoredSource
from textsim_db.text.languages import identify
from textsim_db.text.streams import MAX_WEIGHT, ahead
from textsim_db.text.tokens import tokens_of
from textsim_db.write import write_batch
from textsim_db.write.bulk_load import QUEUE, with_word_ids
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS, Batch, prepare

PATIENCE = "100ms"
"""How long a batch waits for a lock: for a key that another transaction is just adding.

Far shorter than deadlock_timeout (1 s at its default): where a user's transaction and a batch wait
for each other, it is the batch that gives way, before anybody looks for a deadlock.
"""
QUEUE_PATIENCE = "10s"
"""How long a batch waits behind other writers of its corpus, holding nothing."""
IN_THE_WAY = (*PASSING, pg.LockNotAvailable, pg.ObjectNotInPrerequisiteState)
MAX_TRIES = 3
INLINE_DOCUMENTS = 1000
"""A batch of a table whose own writers wait while its documents are locked."""

_FIRST_OWN_KEYS = """
/* textsim-db: sweep documents of corpus {id} */
SELECT d.key FROM {document} d WHERE d.source_id = %s ORDER BY d.key LIMIT %s
"""
_NEXT_OWN_KEYS = """
/* textsim-db: sweep documents of corpus {id} */
SELECT d.key FROM {document} d WHERE d.source_id = %s AND d.key > %s ORDER BY d.key LIMIT %s
"""
_NAMES = """
SELECT s.id, s.relation::text FROM textsim.source s WHERE s.id = ANY (%s::integer[]) AND s.active
"""
_WAITING_KEYS = """
/* textsim-db: documents of corpus {id} whose words wait for ids */
SELECT d.key FROM {document} d WHERE d.word_ids IS NULL AND d.key > %s ORDER BY d.key LIMIT %s
"""
_COMPARISONS = """
SELECT p.id FROM textsim.pending p WHERE p.source_id = %s AND p.keys IS NULL AND p.error IS NULL
"""
_WAITING_SIZES = """
SELECT d.key, pg_catalog.octet_length(d.normal_form) FROM {document} d
WHERE d.key = ANY (%s::text[]) AND d.word_ids IS NULL
"""
_WAITING = """
SELECT d.key, d.id, d.normal_form FROM {document} d
WHERE d.key = ANY (%s::text[]) AND d.word_ids IS NULL
"""
# Passes over a row that a transaction is changing: its change is in the log as well.
_COMPLETE = """
UPDATE {document} SET word_ids = %b, normal_form = NULL, language = %b
WHERE id = (
    SELECT id FROM {document} WHERE id = %b AND normal_form = %s FOR UPDATE SKIP LOCKED
)
"""
_STILL_WAITING = """
SELECT d.key FROM {document} d WHERE d.key = ANY (%s::text[]) AND d.word_ids IS NULL
"""
_FORGET_EVENTS = "DELETE FROM textsim.pending WHERE id = ANY (%s::bigint[])"
_FORGET_ERRORS = """
DELETE FROM textsim.pending p
WHERE p.corpus_id = %s AND p.error IS NOT NULL AND (p.source_id IS NULL OR p.source_id = %s)
    AND p.keys[1] = ANY (%s::text[])
"""
_SET_ASIDE = """
INSERT INTO textsim.pending (corpus_id, source_id, keys, tries, error) VALUES (%s, %s, %s, %s, %s)
"""
_POSTPONE = """
INSERT INTO textsim.pending (corpus_id, source_id, keys, tries, lease_until)
VALUES (%s, %s, %s, %s, pg_catalog.now() + pg_catalog.make_interval(secs => %s))
"""


STALE = (pg.ObjectNotInPrerequisiteState, pg.UndefinedTable)
"""The table was altered, or the corpus rebuilt, since their descriptions were read."""
TIMED_OUT = (pg.QueryCanceled, pg.TransactionTimeout, pg.IdleInTransactionSessionTimeout)


@dataclass(frozen=True, slots=True)
class Piece:
    """Keys to be made right in one transaction.

    source: the table that they changed in; None where the words of stored documents need ids.
    events: rows of the log that are done with once this piece is, tries: how often they were taken.
    skip: to be passed over without a transaction where nothing differs.
    """

    store: Store
    source: StoredSource | None
    keys: list[str]
    events: tuple[int, ...] = ()
    tries: int = 1
    skip: bool = False

    @property
    def corpus(self) -> StoredCorpus:
        """The corpus that the keys belong to."""
        return self.store.corpus


@dataclass(frozen=True, slots=True)
class Changed:
    """The texts that a table held for some keys, and what is to be written for them."""

    texts: dict[str, str]
    batch: Batch


@dataclass(frozen=True, slots=True)
class Completed:
    """Documents whose words have ids now."""

    keys: list[str]
    ids: list[int]
    forms: list[str]
    word_ids: list[npt.NDArray[np.int32]]
    languages: list[str | None]
    refused: list[Refusal]


Resolved = Changed | Completed | psycopg.Error | TextsimError | None


def pieces(
    store: Store,
    source: StoredSource | None,
    keys: Sequence[str],
    events: Sequence[int],
    tries: int,
) -> Iterator[Piece]:
    """Cut keys into pieces whose texts fit in memory; the last one does away with the events."""
    distinct = sorted(set(keys))
    if source is None:
        with autocommit(store.engine) as connection:
            rows = connection.execute(store.corpus.statement(_WAITING_SIZES), [distinct]).fetchall()
        sizes: dict[str, int] = dict(rows)
    else:
        with source_rows.reading(store.engine, source) as connection:
            sizes = source_rows.sizes(connection, source, distinct)
    cuts = list(_fitting(distinct, sizes, _most(source)))
    for number, some in enumerate(cuts, start=1):
        done = tuple(events) if number == len(cuts) else ()
        yield Piece(store, source, some, done, tries)


def _most(source: StoredSource | None) -> int:
    inline = source is not None and source.mode == "inline"
    return INLINE_DOCUMENTS if inline else BATCH_DOCUMENTS


def _fitting(keys: Sequence[str], sizes: dict[str, int], most: int) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for key in keys:
        some.append(key)
        size += sizes.get(key, 0)
        if len(some) >= most or size >= MAX_WEIGHT:
            yield some
            some, size = [], 0
    if some or not keys:
        yield some


def sweep(store: Store, source: StoredSource) -> Iterator[Piece]:
    """Yield all keys of a table, and then those of its documents that it has no more.

    Page by page in short transactions: what changes meanwhile is in the log.
    """
    last: str | None = None
    while True:
        page = repeated(partial(_page, store.engine, source, last))
        if not page:
            break
        for keys in _fitting([key for key, _ in page], dict(page), _most(source)):
            yield Piece(store, source, keys, skip=True)
        last = page[-1][0]
    statement = store.corpus.statement(_FIRST_OWN_KEYS)
    start: list[Any] = [source.id]
    while True:
        keys, gone = repeated(partial(_own_page, store.engine, source, statement, start))
        if not keys:
            break
        if gone:
            yield Piece(store, source, gone)
        statement, start = store.corpus.statement(_NEXT_OWN_KEYS), [source.id, keys[-1]]


def _page(engine: Engine, source: StoredSource, last: str | None, _: int) -> list[tuple[str, int]]:
    with source_rows.reading(engine, source) as connection:
        return source_rows.page(connection, source, last, BATCH_DOCUMENTS)


def _own_page(
    engine: Engine, source: StoredSource, statement: str, start: list[Any], _: int
) -> tuple[list[str], list[str]]:
    """Return the next documents of a source, and those that its table has no more."""
    with source_rows.reading(engine, source) as connection:
        rows = connection.execute(statement.encode(), [*start, BATCH_DOCUMENTS]).fetchall()
        keys = [key for (key,) in rows]
        return keys, source_rows.absent(connection, source, keys)


def resolve(piece: Piece) -> Resolved:
    """Read and compute what is to be written for a piece, outside of any transaction.

    None where nothing is, for a piece that may be passed over then; the error where that failed, for
    write() to deal with.
    """
    try:
        return _resolve(piece)
    except (psycopg.Error, TextsimError) as error:
        return error


def _resolve(piece: Piece) -> Changed | Completed | None:
    if piece.source is None:
        with autocommit(piece.store.engine) as connection:
            statement = piece.corpus.statement(_WAITING)
            rows = connection.execute(statement, [piece.keys]).fetchall()
        return _completed(rows, piece.store)
    texts, stored = _read_both(piece.store, piece.source, piece.keys, piece.skip)
    batch = _batch(texts, piece.store)
    if piece.skip and len(batch.keys) == len(piece.keys):
        outcome, adopted = write_batch.outcomes(batch, stored, piece.source.id)
        if not adopted and np.all(outcome == write_batch.UNCHANGED):
            return None
    return Changed(texts, batch)


def write(piece: Piece, made: Resolved) -> ChangeReport:
    """Write a piece, again where another transaction was in its way, and at last in smaller ones.

    Raises what smaller ones would not mend: a lost connection, a table that was altered, a statement
    that somebody cancelled.
    """
    if isinstance(made, Exception):
        return _write_smaller(piece, made)
    if made is None:
        return ChangeReport(unchanged=len(piece.keys))
    for attempt in range(MAX_TRIES):
        try:
            return _write(piece, made)
        except IN_THE_WAY:
            time.sleep(0.02 * 2**attempt)
        except psycopg.Error as error:
            return _write_smaller(piece, error)
    return _one_by_one(piece)


def _write_smaller(piece: Piece, failure: Exception) -> ChangeReport:
    """Make a piece right that failed: in halves where it took too long, or else key by key."""
    if _is_about_more(piece.store.engine, failure):
        raise failure
    if len(piece.keys) < 2 or not isinstance(failure, TIMED_OUT):
        return _one_by_one(piece)
    report = ChangeReport()
    middle = len(piece.keys) // 2
    for keys, events in ((piece.keys[:middle], ()), (piece.keys[middle:], piece.events)):
        half = replace(piece, keys=keys, events=events)
        report.include(write(half, resolve(half)))
    return report


def _is_about_more(engine: Engine, error: Exception) -> bool:
    """Say whether an error is about more than the keys of a piece."""
    if isinstance(error, pg.QueryCanceled):
        return not is_timeout(engine, error)
    return isinstance(error, STALE) or (isinstance(error, psycopg.Error) and is_trouble(error))


def _one_by_one(piece: Piece) -> ChangeReport:
    """Make each key of a piece right in a transaction of its own.

    Nothing is held then while it waits for something else. A key that cannot be done now comes
    again later, and is set aside after a few tries.
    """
    report = ChangeReport()
    in_the_way = 0
    for number, key in enumerate(piece.keys):
        single = Piece(piece.store, piece.source, [key], tries=piece.tries)
        try:
            made = _resolve(single)
            report.include(_write(single, made))
            in_the_way = 0
        except (psycopg.Error, TextsimError) as error:
            if _is_about_more(piece.store.engine, error):
                raise
            if isinstance(error, IN_THE_WAY):
                in_the_way += 1
                if in_the_way == MAX_TRIES:  # it is not about single keys
                    _postpone(piece, piece.keys[number:], 0)
                    break
                _postpone(piece, [key], 0)
            elif piece.tries < MAX_TRIES:
                _postpone(piece, [key], piece.tries)
            else:
                refused = Refusal(key, " ".join(str(error).split()) or type(error).__name__)
                report.refused.append(refused)
                with transaction(piece.store.engine) as connection:
                    _finish(connection, single, [refused])
    if piece.events:
        with transaction(piece.store.engine) as connection:
            connection.execute(_FORGET_EVENTS, [list(piece.events)])
    return report


def reconcile(
    store: Store,
    source: StoredSource,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Make a corpus equal to an attached table, whatever its triggers have missed."""
    source_rows.compare_changed(store.engine, source)
    with autocommit(store.engine) as connection:
        comparisons = [id_ for (id_,) in connection.execute(_COMPARISONS, [source.id])]
    report = _write_all(sweep(store, source), progress)
    # This was the comparison that they ask for.
    with transaction(store.engine) as connection:
        connection.execute(_FORGET_EVENTS, [comparisons])
    return report


def complete(store: Store) -> ChangeReport:
    """Give word ids to all documents of a corpus that wait for them, logged or not."""
    return _write_all(_waiting_pieces(store), None)


def _waiting_pieces(store: Store) -> Iterator[Piece]:
    last = ""
    while True:
        with autocommit(store.engine) as connection:
            statement = store.corpus.statement(_WAITING_KEYS)
            rows = connection.execute(statement, [last, BATCH_DOCUMENTS]).fetchall()
        if not rows:
            return
        yield from pieces(store, None, [key for (key,) in rows], (), 1)
        last = rows[-1][0]


def _write_all(
    all_pieces: Iterator[Piece],
    progress: Callable[[int], None] | None,
) -> ChangeReport:
    report = ChangeReport()
    done = 0
    with closing(ahead(all_pieces, lambda p: (p, resolve(p)))) as resolved:
        for piece, made in resolved:
            report.include(repeated(partial(_write_anew, piece, made)))
            done += len(piece.keys)
            if progress is not None:
                progress(done)
    return report


def _write_anew(piece: Piece, made: Resolved, attempt: int) -> ChangeReport:
    found = resolve(piece) if attempt else made
    return write(piece, found)


def surplus(store: Store, source: StoredSource) -> Iterator[Drift]:
    """Yield the documents of a table that was dropped."""
    statement = store.corpus.statement(_FIRST_OWN_KEYS)
    start: list[Any] = [source.id]
    while True:
        with autocommit(store.engine) as connection:
            rows = connection.execute(statement, [*start, BATCH_DOCUMENTS]).fetchall()
        if not rows:
            return
        yield from (Drift(key, "surplus") for (key,) in rows)
        statement, start = store.corpus.statement(_NEXT_OWN_KEYS), [source.id, rows[-1][0]]


def drift(piece: Piece) -> list[Drift]:
    """Return by which of a sweep's keys a corpus differs from its table; writes no document."""
    assert piece.source is not None
    texts, stored = _read_both(piece.store, piece.source, piece.keys)
    batch = _batch(texts, piece.store)
    outcome, _ = write_batch.outcomes(batch, stored, piece.source.id)
    found = [
        Drift(key, "missing" if what == write_batch.ADDED else "different")
        for key, what in zip(batch.keys, outcome.tolist(), strict=True)
        if what in (write_batch.ADDED, write_batch.REPLACED)
    ]
    if not piece.skip:
        found += [Drift(key, "surplus") for key in piece.keys if key not in texts]
    return found


def _read_both(
    store: Store, source: StoredSource, keys: list[str], both: bool = True
) -> tuple[dict[str, str], write_batch.Existing]:
    """Return what the table has of some keys, and what the corpus has."""
    with source_rows.reading(store.engine, source) as connection:
        texts = source_rows.read(connection, source, keys)
        cursor = connection.cursor(binary=True)
        return texts, write_batch.find(cursor, store.corpus, keys) if both else {}


def _batch(texts: dict[str, str], store: Store) -> Batch:
    return with_word_ids(prepare(list(texts.items()), store.corpus.config), store)


def _completed(rows: list[tuple[str, int, str]], store: Store) -> Completed:
    tokens = tokens_of([form.encode() for _, _, form in rows])
    word_ids = store.dictionary.ensure(tokens)
    languages = [None] * len(rows) if store.corpus.config.language is None else identify(tokens)
    made = Completed([], [], [], [], [], [])
    for (key, id_, form), (start, end), language in zip(
        rows, pairwise(tokens.word_offsets.tolist()), languages, strict=True
    ):
        ids = word_ids[start:end]
        if not ids.all():
            word = tokens.words(start + np.flatnonzero(ids == 0)[:1])[0]
            made.refused.append(
                Refusal(key, f'the word "{word[:40]}" has the same 64-bit hash as another one')
            )
            continue
        made.keys.append(key)
        made.ids.append(id_)
        made.forms.append(form)
        made.word_ids.append(ids)
        made.languages.append(language)
    return made


def _write(piece: Piece, made: Changed | Completed | None) -> ChangeReport:
    if made is None:
        return ChangeReport(unchanged=len(piece.keys))
    with transaction(piece.store.engine) as connection:
        if isinstance(made, Completed):
            report = _complete(connection, piece, made)
        else:
            report = _apply(connection, piece, made)
        _finish(connection, piece, report.refused)
    return report


def _apply(connection: Connection, piece: Piece, made: Changed) -> ChangeReport:
    """Write what the table holds now; what was computed before holds where that is the same."""
    corpus, source = piece.corpus, piece.source
    assert source is not None
    wait_at_most(connection, QUEUE_PATIENCE)
    connection.execute(QUEUE, [corpus.id])
    source_rows.hold(connection, source, PATIENCE)
    # First the documents, then the table: who writes both, as inline triggers do, cannot come in
    # between, and what it adds meanwhile is a unique violation here.
    cursor = connection.cursor(binary=True)
    existing, busy = write_batch.lock_free(cursor, corpus, piece.keys)
    if busy:
        connection.execute(_POSTPONE, [corpus.id, source.id, sorted(busy), 0, 1])
    keys = [key for key in piece.keys if key not in busy]
    texts = source_rows.read(connection, source, keys)
    batch = made.batch if texts == made.texts else _batch(texts, piece.store)
    refused = []
    others = _others(connection, existing, source)
    if others:
        existing = {key: stored for key, stored in existing.items() if key not in others}
        refused = [
            Refusal(key, f"the corpus has this key from the table {others[key]}")
            for key in batch.keys
            if key in others
        ]
        kept = {key: text for key, text in texts.items() if key not in others}
        batch = _batch(kept, piece.store)
    outcome = write_batch.write(cursor, corpus, batch, source.id, existing)
    added = [
        key for key, what in zip(batch.keys, outcome, strict=True) if what == write_batch.ADDED
    ]
    if source.mode == "inline" and added:
        _check_unchanged(connection, source, texts, added)
    gone = [existing[key] for key in existing.keys() - set(batch.keys)]
    return ChangeReport(
        added=int(np.count_nonzero(outcome == write_batch.ADDED)),
        replaced=int(np.count_nonzero(outcome == write_batch.REPLACED)),
        unchanged=int(np.count_nonzero(outcome == write_batch.UNCHANGED)),
        completed=int(np.count_nonzero(outcome == write_batch.COMPLETED)),
        removed=write_batch.remove_locked(cursor, corpus, gone),
        refused=[*batch.refused, *refused],
    )


def _check_unchanged(
    connection: Connection, source: StoredSource, texts: dict[str, str], added: list[str]
) -> None:
    """Raise SerializationFailure if a row changed before its document was added.

    A row that was indexed inline and removed again in between has left no log. A later writer of the
    row waits for the document, or logs that there is none.
    """
    now = source_rows.read(connection, source, added)
    if now != {key: texts[key] for key in added}:
        raise pg.SerializationFailure("rows changed before their documents were added")


def _others(
    connection: Connection, existing: write_batch.Existing, source: StoredSource
) -> dict[str, str]:
    """Return the keys that another attached table has given, with the name of the table."""
    numbers = {stored.source_id for stored in existing.values()} - {None, source.id}
    if not numbers:
        return {}
    names: dict[int | None, str] = dict(connection.execute(_NAMES, [list(numbers)]).fetchall())
    return {
        key: names[stored.source_id]
        for key, stored in existing.items()
        if stored.source_id in names
    }


def _complete(connection: Connection, piece: Piece, made: Completed) -> ChangeReport:
    wait_at_most(connection, QUEUE_PATIENCE)
    cursor = connection.cursor(binary=True)
    cursor.executemany(
        piece.corpus.statement(_COMPLETE),
        [
            (Array(ids), language, id_, form)
            for ids, language, id_, form in zip(
                made.word_ids, made.languages, made.ids, made.forms, strict=True
            )
        ],
    )
    refused = {refusal.key for refusal in made.refused}
    left = connection.execute(piece.corpus.statement(_STILL_WAITING), [piece.keys]).fetchall()
    again = [key for (key,) in left if key not in refused]
    if again:
        connection.execute(_POSTPONE, [piece.corpus.id, None, again, 0, 1])
    return ChangeReport(completed=len(made.keys) - len(again), refused=made.refused)


def _finish(connection: Connection, piece: Piece, refused: list[Refusal]) -> None:
    """Do away with what was logged about the keys, and set aside what cannot be indexed."""
    source_id = None if piece.source is None else piece.source.id
    connection.execute(_FORGET_ERRORS, [piece.corpus.id, source_id, piece.keys])
    if piece.events:
        connection.execute(_FORGET_EVENTS, [list(piece.events)])
    for key, reason in refused:
        connection.execute(_SET_ASIDE, [piece.corpus.id, source_id, [key], piece.tries, reason])


def _postpone(piece: Piece, keys: list[str], tries: int) -> None:
    source_id = None if piece.source is None else piece.source.id
    with transaction(piece.store.engine) as connection:
        connection.execute(_POSTPONE, [piece.corpus.id, source_id, keys, tries, 2**tries])
