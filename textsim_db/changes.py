"""Keeping a corpus equal to its attached tables: keys that changed, read again and written.

Everything goes by keys. What is written is always what the table holds while the writers of the
corpus queue, so that the order in which changes are taken, and how often, does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, LiteralString

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine

from textsim_db import writing
from textsim_db.batches import BATCH_DOCUMENTS, Batch, prepare
from textsim_db.db.binary import Array
from textsim_db.db.corpora import StoredCorpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import Connection, autocommit, is_lost, transaction
from textsim_db.errors import TextsimError
from textsim_db.indexing import PASSING, QUEUE, with_word_ids
from textsim_db.pipeline import MAX_WEIGHT, ahead
from textsim_db.results import ChangeReport, Difference, Refusal
from textsim_db.text import tokens_of

PATIENCE = "300ms"
"""How long a batch waits for a row that another transaction holds.

Shorter than deadlock_timeout (1 s at its default): where a user's transaction and a batch wait for
each other, it is the batch that gives way.
"""
READING_PATIENCE = "2s"
"""How long reading waits for a table that is being altered, before other tables have their turn."""
IN_THE_WAY = (*PASSING, pg.LockNotAvailable, pg.ObjectNotInPrerequisiteState)
MAX_TRIES = 3
INLINE_DOCUMENTS = 1000
"""A batch of a table whose own writers wait while its documents are locked."""

# Whatever runs here, runs with the rights of the worker's role: only functions of pg_catalog and
# textsim, by name (as unnest() of several arrays is anyway), and only operators and casts of types
# that are not the users' own.
_SOURCES = """
SELECT s.id, s.corpus_id, s.relation::oid, n.nspname, r.relname, s.key_column, s.text_column,
    s.mode,
    CASE WHEN r.oid IS NOT NULL THEN pg_catalog.format('%%I.%%I', n.nspname, r.relname) END,
    pg_catalog.format_type(textsim._base_type(k.atttypid), NULL),
    textsim._unfit(s.relation), textsim._unfit_column(s.relation, s.key_column, true),
    textsim._unfit_column(s.relation, s.text_column, false),
    r.oid IS NOT NULL AND pg_catalog.row_security_active(r.oid),
    pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        AND pg_catalog.has_table_privilege(r.oid, 'SELECT')
FROM textsim.source s
LEFT JOIN pg_catalog.pg_class r ON r.oid = s.relation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_catalog.pg_attribute k
    ON k.attrelid = r.oid AND k.attname = s.key_column AND NOT k.attisdropped
WHERE s.active AND (%s::integer IS NULL OR s.id = %s::integer)
ORDER BY s.id
"""
_HOLD = "LOCK TABLE ONLY {relation} IN ACCESS SHARE MODE"
_READ = """
SELECT t.{key}::{type}::text, t.{text}::text FROM {relation} t
WHERE t.{key}::{type} = ANY (%s::text[]::{type}[]) AND t.{text} IS NOT NULL
"""
_SIZES = """
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{key}::{type} = ANY (%s::text[]::{type}[]) AND t.{text} IS NOT NULL
"""
_FIRST_PAGE = """
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{text} IS NOT NULL ORDER BY t.{key}::{type} LIMIT %s
"""
_NEXT_PAGE = """
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{text} IS NOT NULL AND t.{key}::{type} > %s::text::{type}
ORDER BY t.{key}::{type} LIMIT %s
"""
_ABSENT = """
SELECT q.key FROM pg_catalog.unnest(%s::text[]) q (key)
WHERE NOT EXISTS (
    SELECT FROM {relation} t WHERE t.{key}::{type} = q.key::{type} AND t.{text} IS NOT NULL
)
"""
_ESTIMATED_ROWS = "SELECT greatest(sum(c.reltuples), 0)::bigint FROM pg_class c WHERE c.oid = %s"
_FIRST_OWN_KEYS = """
SELECT d.key FROM {document} d WHERE d.source_id = %s ORDER BY d.key LIMIT %s
"""
_NEXT_OWN_KEYS = """
SELECT d.key FROM {document} d WHERE d.source_id = %s AND d.key > %s ORDER BY d.key LIMIT %s
"""
_NAMES = "SELECT s.id, s.relation::text FROM textsim.source s WHERE s.id = ANY (%s::integer[])"
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
UPDATE {document} SET word_ids = %b, normal_form = NULL
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
WHERE p.corpus_id = %s AND p.error IS NOT NULL AND p.source_id IS NOT DISTINCT FROM %s
    AND p.keys[1] = ANY (%s::text[])
"""
_SET_ASIDE = """
INSERT INTO textsim.pending (corpus_id, source_id, keys, tries, error) VALUES (%s, %s, %s, %s, %s)
"""
_POSTPONE = """
INSERT INTO textsim.pending (corpus_id, source_id, keys, tries, lease_until)
VALUES (%s, %s, %s, %s, pg_catalog.now() + pg_catalog.make_interval(secs => %s))
"""


@dataclass(frozen=True, slots=True)
class Source:
    """An attached table as the connected role sees it.

    name: that of the table, as SQL takes it. fault: why this role cannot index it, or None.
    """

    id: int
    corpus_id: int
    relation: int
    schema: str | None
    table: str | None
    key_column: str
    text_column: str
    mode: str
    name: str
    key_type: str | None
    fault: str | None

    def statement(self, text: LiteralString) -> bytes:
        """Return SQL with the names of the table and its columns filled in."""
        names = (str(self.schema), str(self.table), self.key_column, self.text_column)
        schema, table, key, text_ = (name.replace("%", "%%") for name in names)
        return (
            sql.SQL(text)
            .format(
                relation=sql.Identifier(schema, table),
                key=sql.Identifier(key),
                text=sql.Identifier(text_),
                type=sql.SQL(str(self.key_type).replace("%", "%%")),
            )
            .as_bytes(None)
        )


@dataclass(frozen=True, slots=True)
class Piece:
    """Keys to be made right in one transaction.

    source: the table that they changed in; None where the words of stored documents need ids.
    events: rows of the log that are done with once this piece is, tries: how often they were taken.
    skip: to be passed over without a transaction where nothing differs.
    """

    corpus: StoredCorpus
    source: Source | None
    keys: list[str]
    events: tuple[int, ...] = ()
    tries: int = 1
    skip: bool = False


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
    refused: list[Refusal]


def sources(engine: Engine) -> list[Source]:
    """Return all attached tables."""
    with autocommit(engine) as connection:
        rows = connection.execute(_SOURCES, [None, None]).fetchall()
    return [_source(*row) for row in rows]


@contextmanager
def _reading(engine: Engine, source: Source) -> Iterator[Connection]:
    with transaction(engine) as connection:
        _hold(connection, source, READING_PATIENCE)
        yield connection


def _hold(connection: Connection, source: Source, patience: str) -> None:
    """Lock a table against being altered, and see that it still is what it was.

    From then on it cannot become a view, or its columns be of a type that runs a user's function.
    """
    connection.execute(f"SET LOCAL lock_timeout = '{patience}'")
    connection.execute(source.statement(_HOLD), [])
    row = connection.execute(_SOURCES, [source.id, source.id]).fetchone()
    if row is None or _source(*row) != source:
        raise pg.ObjectNotInPrerequisiteState(f"table {source.name} has just been altered")


def _source(
    id_: int,
    corpus_id: int,
    relation: int,
    schema: str | None,
    table: str | None,
    key: str,
    text: str,
    mode: str,
    name: str | None,
    key_type: str | None,
    unfit: str | None,
    unfit_key: str | None,
    unfit_text: str | None,
    blinded: bool,
    readable: bool | None,
) -> Source:
    fault = None
    if name is None:
        fault = "the table is gone: detach it by its oid"
        name = f"with the oid {relation}"
    elif unfit:
        fault = unfit
    elif unfit_key or unfit_text:
        column = key if unfit_key else text
        fault = f'its column "{column}" {unfit_key or unfit_text}'
    elif blinded:
        fault = (
            "row security hides rows of it from this role, which would take them for deleted; let a "
            "worker run as a role with BYPASSRLS, or as the owner"
        )
    elif not readable:
        fault = "this role may not read it (GRANT SELECT)"
    return Source(id_, corpus_id, relation, schema, table, key, text, mode, name, key_type, fault)


def pieces(
    engine: Engine,
    corpus: StoredCorpus,
    source: Source | None,
    keys: Sequence[str],
    events: Sequence[int],
    tries: int,
) -> Iterator[Piece]:
    """Cut keys into pieces whose texts fit in memory; the last one does away with the events."""
    distinct = sorted(set(keys))
    if source is None:
        with autocommit(engine) as connection:
            rows = connection.execute(corpus.statement(_WAITING_SIZES), [distinct]).fetchall()
    else:
        with _reading(engine, source) as connection:
            rows = connection.execute(source.statement(_SIZES), [distinct]).fetchall()
    cuts = list(_fitting(distinct, dict(rows), _most(source)))
    for number, some in enumerate(cuts, start=1):
        done = tuple(events) if number == len(cuts) else ()
        yield Piece(corpus, source, some, done, tries)


def _most(source: Source | None) -> int:
    inline = source is not None and source.mode == "inline"
    return INLINE_DOCUMENTS if inline else BATCH_DOCUMENTS


def _fitting(keys: Sequence[str], sizes: dict[str, int | None], most: int) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for key in keys:
        some.append(key)
        size += sizes.get(key) or 0
        if len(some) >= most or size >= MAX_WEIGHT:
            yield some
            some, size = [], 0
    if some or not keys:
        yield some


def sweep(engine: Engine, corpus: StoredCorpus, source: Source) -> Iterator[Piece]:
    """Yield all keys of a table, and then those of its documents that it has no more.

    Page by page in short transactions: what changes meanwhile is in the log.
    """
    first, following = source.statement(_FIRST_PAGE), source.statement(_NEXT_PAGE)
    for page in _pages(engine, source, first, following, []):
        for keys in _fitting([row[0] for row in page], dict(page), _most(source)):
            yield Piece(corpus, source, keys, skip=True)
    first = corpus.statement(_FIRST_OWN_KEYS).encode()
    following = corpus.statement(_NEXT_OWN_KEYS).encode()
    for page in _pages(engine, source, first, following, [source.id]):
        with _reading(engine, source) as connection:
            stored = [row[0] for row in page]
            gone = connection.execute(source.statement(_ABSENT), [stored]).fetchall()
        if gone:
            yield Piece(corpus, source, [row[0] for row in gone])


def _pages(
    engine: Engine, source: Source, first: bytes, following: bytes, parameters: list[Any]
) -> Iterator[list[tuple[Any, ...]]]:
    statement, start = first, list(parameters)
    while True:
        with _reading(engine, source) as connection:
            page = connection.execute(statement, [*start, BATCH_DOCUMENTS]).fetchall()
        if not page:
            return
        yield page
        statement, start = following, [*parameters, page[-1][0]]


def estimated_rows(engine: Engine, source: Source) -> int:
    """Return how many rows the server believes a table to have; for progress only."""
    with autocommit(engine) as connection:
        row = connection.execute(_ESTIMATED_ROWS, [source.relation]).fetchone()
    return int(row[0]) if row and row[0] else 0


def resolve(engine: Engine, dictionary: Dictionary, piece: Piece) -> Changed | Completed | None:
    """Read and compute what is to be written for a piece, outside of any transaction.

    None where nothing is, for a piece that may be passed over then.
    """
    if piece.source is None:
        with autocommit(engine) as connection:
            statement = piece.corpus.statement(_WAITING)
            rows = connection.execute(statement, [piece.keys]).fetchall()
        return _completed(rows, dictionary)
    texts, stored = _read_both(engine, piece.corpus, piece.source, piece.keys, piece.skip)
    batch = _batch(texts, piece.corpus, dictionary)
    if piece.skip and len(batch.keys) == len(piece.keys):
        outcome, adopted = writing.outcomes(batch, stored, piece.source.id)
        if not adopted and np.all(outcome == writing.UNCHANGED):
            return None
    return Changed(texts, batch)


def write(
    engine: Engine, dictionary: Dictionary, piece: Piece, made: Changed | Completed | None
) -> ChangeReport:
    """Write a piece, again where another transaction was in its way, and at last key by key."""
    if made is None:
        return ChangeReport(unchanged=len(piece.keys))
    for attempt in range(MAX_TRIES):
        try:
            return _write(engine, dictionary, piece, made)
        except IN_THE_WAY:
            time.sleep(0.02 * 2**attempt)
        except psycopg.Error as error:
            if is_lost(error):
                raise
            break
    return one_by_one(engine, dictionary, piece)


def one_by_one(engine: Engine, dictionary: Dictionary, piece: Piece) -> ChangeReport:
    """Make each key of a piece right in a transaction of its own.

    Nothing is held then while it waits for something else. A key that cannot be done now comes
    again later, and is set aside after a few tries.
    """
    report = ChangeReport()
    in_the_way = 0
    for number, key in enumerate(piece.keys):
        single = Piece(piece.corpus, piece.source, [key], tries=piece.tries)
        try:
            made = resolve(engine, dictionary, single)
            report.include(_write(engine, dictionary, single, made))
            in_the_way = 0
        except (psycopg.Error, TextsimError) as error:
            if isinstance(error, psycopg.Error) and is_lost(error):
                raise
            if isinstance(error, IN_THE_WAY):
                in_the_way += 1
                if in_the_way == MAX_TRIES:  # it is not about single keys
                    _postpone(engine, piece, piece.keys[number:])
                    break
                _postpone(engine, piece, [key])
            elif piece.tries < MAX_TRIES:
                _postpone(engine, piece, [key])
            else:
                refused = Refusal(key, " ".join(str(error).split()) or type(error).__name__)
                report.refused.append(refused)
                with transaction(engine) as connection:
                    _finish(connection, single, [refused])
    if piece.events:
        with transaction(engine) as connection:
            connection.execute(_FORGET_EVENTS, [list(piece.events)])
    return report


def reconcile(
    engine: Engine,
    dictionary: Dictionary,
    corpus: StoredCorpus,
    source: Source,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Make a corpus equal to an attached table, whatever its triggers have missed."""
    report = ChangeReport()
    done = 0
    with closing(
        ahead(sweep(engine, corpus, source), lambda p: (p, resolve(engine, dictionary, p)))
    ) as resolved:
        for piece, made in resolved:
            report.include(write(engine, dictionary, piece, made))
            done += len(piece.keys)
            if progress is not None:
                progress(done)
    return report


def differences(engine: Engine, dictionary: Dictionary, piece: Piece) -> list[Difference]:
    """Return by which of a sweep's keys a corpus differs from its table; writes no document."""
    assert piece.source is not None
    texts, stored = _read_both(engine, piece.corpus, piece.source, piece.keys)
    batch = _batch(texts, piece.corpus, dictionary)
    outcome, _ = writing.outcomes(batch, stored, piece.source.id)
    found = [
        Difference(key, "missing" if what == writing.ADDED else "different")
        for key, what in zip(batch.keys, outcome.tolist(), strict=True)
        if what in (writing.ADDED, writing.REPLACED)
    ]
    if not piece.skip:
        found += [Difference(key, "surplus") for key in piece.keys if key not in texts]
    return found


def _read_both(
    engine: Engine, corpus: StoredCorpus, source: Source, keys: list[str], both: bool = True
) -> tuple[dict[str, str], writing.Existing]:
    """Return what the table has of some keys, and what the corpus has."""
    with _reading(engine, source) as connection:
        texts = _read(connection, source, keys)
        cursor = connection.cursor(binary=True)
        return texts, writing.find(cursor, corpus, keys) if both else {}


def _read(connection: Connection, source: Source, keys: list[str]) -> dict[str, str]:
    return dict(connection.execute(source.statement(_READ), [keys]).fetchall())


def _batch(texts: dict[str, str], corpus: StoredCorpus, dictionary: Dictionary) -> Batch:
    return with_word_ids(prepare(list(texts.items()), corpus.config), corpus, dictionary)


def _completed(rows: list[tuple[str, int, str]], dictionary: Dictionary) -> Completed:
    tokens = tokens_of([form.encode() for _, _, form in rows])
    word_ids = dictionary.ensure(tokens)
    made = Completed([], [], [], [], [])
    for (key, id_, form), (start, end) in zip(
        rows, pairwise(tokens.word_offsets.tolist()), strict=True
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
    return made


def _write(
    engine: Engine, dictionary: Dictionary, piece: Piece, made: Changed | Completed | None
) -> ChangeReport:
    if made is None:
        return ChangeReport(unchanged=len(piece.keys))
    with transaction(engine) as connection:
        if isinstance(made, Completed):
            report = _complete(connection, piece, made)
        else:
            report = _apply(connection, dictionary, piece, made)
        _finish(connection, piece, report.refused)
    return report


def _apply(
    connection: Connection, dictionary: Dictionary, piece: Piece, made: Changed
) -> ChangeReport:
    """Write what the table holds now; what was computed before holds where that is the same."""
    corpus, source = piece.corpus, piece.source
    assert source is not None
    connection.execute(QUEUE, [corpus.id])
    _hold(connection, source, PATIENCE)
    # First the documents, then the table: who writes both, as inline triggers do, cannot come in
    # between, and what it adds meanwhile is a unique violation here.
    cursor = connection.cursor(binary=True)
    existing = writing.lock(cursor, corpus, piece.keys)
    texts = _read(connection, source, piece.keys)
    batch = made.batch if texts == made.texts else _batch(texts, corpus, dictionary)
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
        batch = _batch(kept, corpus, dictionary)
    outcome = writing.write(cursor, corpus, batch, source.id, existing)
    gone = [existing[key] for key in existing.keys() - set(batch.keys)]
    return ChangeReport(
        added=int(np.count_nonzero(outcome == writing.ADDED)),
        replaced=int(np.count_nonzero(outcome == writing.REPLACED)),
        unchanged=int(np.count_nonzero(outcome == writing.UNCHANGED)),
        completed=int(np.count_nonzero(outcome == writing.COMPLETED)),
        removed=writing.remove_locked(cursor, corpus, gone),
        refused=[*batch.refused, *refused],
    )


def _others(connection: Connection, existing: writing.Existing, source: Source) -> dict[str, str]:
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
    cursor = connection.cursor(binary=True)
    cursor.executemany(
        piece.corpus.statement(_COMPLETE),
        [
            (Array(ids), id_, form)
            for ids, id_, form in zip(made.word_ids, made.ids, made.forms, strict=True)
        ],
    )
    refused = {refusal.key for refusal in made.refused}
    left = connection.execute(piece.corpus.statement(_STILL_WAITING), [piece.keys]).fetchall()
    again = [key for (key,) in left if key not in refused]
    if again:
        connection.execute(_POSTPONE, [piece.corpus.id, None, again, piece.tries, 1])
    return ChangeReport(completed=len(made.keys) - len(again), refused=made.refused)


def _finish(connection: Connection, piece: Piece, refused: list[Refusal]) -> None:
    """Do away with what was logged about the keys, and set aside what cannot be indexed."""
    source_id = None if piece.source is None else piece.source.id
    connection.execute(_FORGET_ERRORS, [piece.corpus.id, source_id, piece.keys])
    if piece.events:
        connection.execute(_FORGET_EVENTS, [list(piece.events)])
    for key, reason in refused:
        connection.execute(_SET_ASIDE, [piece.corpus.id, source_id, [key], piece.tries, reason])


def _postpone(engine: Engine, piece: Piece, keys: list[str]) -> None:
    source_id = None if piece.source is None else piece.source.id
    delay = min(2**piece.tries, 60)
    with transaction(engine) as connection:
        connection.execute(_POSTPONE, [piece.corpus.id, source_id, keys, piece.tries, delay])
