"""The integrity of a corpus: check() tests every invariant of its stored rows.

The signature must follow from the words, which is computed here. The band rows must follow from the
signature, which the server computes with hash_array_extended(). So neither side checks itself.

Each row of an attached table has its document, and each document its row. The server compares their
keys only; `reconcile --check` also compares the texts. Changes that wait in the log are no
contradiction.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from shlex import quote
from typing import Any, LiteralString, NamedTuple

import numpy as np
import psycopg
from psycopg import errors as pg, sql

from textsim_db.base.run_ahead import ahead, cut
from textsim_db.db.binary_format import array, load_int2_arrays, load_int4_arrays
from textsim_db.db.engine import Connection, autocommit, is_trouble
from textsim_db.db.statements import WORDS_BY_ID
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import integrity_statements
from textsim_db.read.check_catalog import FROM_BACKUP, object_problems, tracked_threshold
from textsim_db.read.check_tracked_clusters import faults, shingle_hashes
from textsim_db.read.list_pairs import Exceptions, twins
from textsim_db.read.snapshot import on_each, snapshot, with_second
from textsim_db.read.stored_documents import DOCUMENTS_AT_ONCE, compose_forms
from textsim_db.results import Problem
from textsim_db.sketch.ragged import Ragged, Signatures
from textsim_db.sketch.sketch_texts import Sketches, sketch_tokens
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import Tokens

log = logging.getLogger(__name__)


MAX_KEPT_WORDS = 500_000
"""The number of words that are kept between documents; a larger number reads fewer words twice."""
BLOCK_BITS = 12
"""One sum compares the band rows of 2^12 ids. If the sums differ, the rows are compared."""

Row = tuple[Any, ...]


def check(store: Store, progress: Callable[[int], None] | None = None) -> list[Problem]:
    """Return every problem of a corpus, in one snapshot.

    Rows are read only if the tables are there and no setting was changed. Attached tables are
    compared in a snapshot of their own, which ends soon: until its end nobody can alter them. The twins
    of a unique corpus are looked for only if nothing else is wrong.
    """
    with snapshot(store.engine) as connection:
        problems = list(object_problems(connection, store.corpus))
        if any(problem.kind in ("table", "setting") for problem in problems):
            return problems
        tracked = tracked_threshold(connection, store.corpus)
        remedies = _remedies(connection, store.corpus)
        checker = _Checker(connection, store.corpus, tracked is not None, remedies)
        problems += [
            *_word_problems(connection, store.corpus),
            *_document_problems(connection, checker, progress),
            *_forgotten(connection, store.corpus, remedies),
            *_row_problems(connection, store, remedies),
            *_forgotten_words(connection, store.corpus),
        ]
        if tracked is not None:
            problems += faults(connection, store, tracked, checker.suspects)
    with snapshot(store.engine) as connection:
        problems += _unusable_sources(connection, store.corpus)
        problems += source_problems(connection, store.corpus)
    if store.corpus.config.is_unique and not problems:
        problems += _twin_problems(store)
    return problems


def tracking_faults(store: Store) -> list[Problem]:
    """Return what is wrong with the matches and clusters of a corpus; nothing if it is not tracked."""
    with snapshot(store.engine) as connection:
        tracked = tracked_threshold(connection, store.corpus)
        if tracked is None:
            return []
        remedies = _remedies(connection, store.corpus)
        checker = _Checker(connection, store.corpus, True, remedies)
        for _ in _document_problems(connection, checker, None):
            pass
        return list(faults(connection, store, tracked, checker.suspects))


def _word_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    statement = corpus.statement(integrity_statements.WRONG_WORD_HASHES)
    for id_, word in connection.execute(statement.encode()):
        detail = f'the stored hash is not the hash of "{word[:40]}"'
        yield Problem("word hash", f"word {id_}", detail, FROM_BACKUP)


def _document_problems(
    connection: Connection, checker: _Checker, progress: Callable[[int], None] | None
) -> Iterator[Problem]:
    """Yield the problems of documents; while documents are checked, the next ones are read."""
    done = 0
    with connection.cursor(checker.corpus.label("check documents"), binary=True) as cursor:
        cursor.itersize = DOCUMENTS_AT_ONCE
        cursor.execute(checker.statement)
        pieces = cut(cursor, DOCUMENTS_AT_ONCE, lambda row: len(row[2] or row[4]))
        with closing(ahead(pieces, checker.check)) as checked:
            for count, problems in checked:
                yield from problems
                done += count
                if progress is not None:
                    progress(done)


class _Checker:
    def __init__(
        self,
        connection: Connection,
        corpus: StoredCorpus,
        is_tracked: bool,
        remedies: _Remedies,
    ) -> None:
        self.corpus = corpus
        self.suspects: list[int] = []
        """The documents whose node in a tracked corpus is missing, or has other shingles."""
        self._sets: dict[int, tuple[bytes, int | None]] = {}
        """By node of several documents: the shingles and the part of the first of them."""
        self._connection = connection
        self._is_tracked = is_tracked
        self._config = corpus.config
        self._mend_words, self._rebuild = remedies
        self._words: dict[int, str] = {}
        self._absent: set[int] = set()

    @property
    def statement(self) -> str:
        if self._is_tracked:
            return self.corpus.statement(integrity_statements.TRACKED_DOCUMENTS_TO_CHECK)
        return self.corpus.statement(integrity_statements.DOCUMENTS_TO_CHECK)

    def check(self, rows: list[Row]) -> tuple[int, list[Problem]]:
        word_ids, offsets = load_int4_arrays([row[2] or b"" for row in rows])
        forms = compose_forms(word_ids, offsets, self._read_words)
        for i, row in enumerate(rows):
            if row[2] is None:
                forms[i] = row[4].encode()
        tokens = tokens_of(forms)
        if self._is_tracked:
            self._compare_nodes(rows, tokens)
        sketches = sketch_tokens(tokens, self._config)
        counts = sketches.shingle_counts.tolist()
        load = load_int4_arrays if self._config.is_exact else load_int2_arrays
        stored = Ragged(*load([row[3] for row in rows]))
        has_signature = _equal(stored, sketches.signatures)
        has_fingerprints = self._have_fingerprints(rows, sketches)
        normal, normal_bounds = tokens.normal.tobytes(), tokens.normal_offsets.tolist()
        word_counts = zip(np.diff(tokens.word_offsets), np.diff(offsets), strict=True)
        problems: list[Problem] = []
        for i, (row, (words, ids)) in enumerate(zip(rows, word_counts, strict=True)):
            problems += self._language_problems(row)
            if self._absent and (
                unknown := self._absent.intersection(word_ids[offsets[i] : offsets[i + 1]])
            ):
                detail = f"word id {min(unknown)} is not in the dictionary"
                problems.append(Problem("unknown word", row[0], detail, self._mend_words))
                continue
            is_normal = normal[normal_bounds[i] : normal_bounds[i + 1]] == forms[i]
            if not is_normal or (row[2] is not None and words != ids):
                detail = "the stored words are not a normal form"
                problems.append(Problem("words", row[0], detail, self._mend_words))
            problems += self._sketch_problems(row, counts[i], has_signature[i])
            if row[7] != sketches.guard_of(i):
                detail = "the stored guard is not that of the words"
                problems.append(Problem("guard", row[0], detail, self._rebuild))
            if not has_fingerprints[i]:
                detail = "the stored fingerprints are not those of the words"
                problems.append(Problem("fingerprints", row[0], detail, self._rebuild))
        return len(rows), problems

    def _compare_nodes(self, rows: list[Row], tokens: Tokens) -> None:
        has_copies = any(row[11] for row in rows)
        hashes = shingle_hashes(tokens, self._config.shingle) if has_copies else [b""] * len(rows)
        for (_, count, *_, id_, part, node, is_shared), hash_ in zip(rows, hashes, strict=True):
            is_wrong = bool(count) == (node is None)
            if is_shared:
                is_wrong |= self._sets.setdefault(node, (hash_, part)) != (hash_, part)
            if is_wrong:
                self.suspects.append(id_)

    def _have_fingerprints(self, rows: list[Row], sketches: Sketches) -> list[bool]:
        """Say which documents have the fingerprints of their words; none without passages."""
        if sketches.fingerprints is None:
            return [row[6] is None for row in rows]
        stored = Ragged(*load_int4_arrays([row[6] or b"" for row in rows]))
        equal = _equal(stored, sketches.fingerprints)
        return [row[6] is not None and each for row, each in zip(rows, equal, strict=True)]

    def _read_words(self, ids: list[int]) -> dict[int, str]:
        """Return the words of ids; self._absent has the ids that are not in the dictionary."""
        missing = [id_ for id_ in ids if id_ not in self._words]
        if len(self._words) + len(missing) > MAX_KEPT_WORDS:
            self._words, missing = {}, ids
        if missing:
            cursor = self._connection.cursor(binary=True)
            parameters = [array(np.array(missing, np.int32))]
            self._words.update(
                cursor.execute(self.corpus.statement(WORDS_BY_ID), parameters).fetchall()
            )
        self._absent = set(missing) - self._words.keys()
        return self._words

    def _language_problems(self, row: Row) -> Iterator[Problem]:
        key, word_ids, language = row[0], row[2], row[5]
        # A document gets its language together with its word ids. In a corpus of characters it has none
        # until a worker comes to it.
        is_known = word_ids is not None or (
            not self._config.has_dictionary and language is not None
        )
        has_language = self._config.language is not None and is_known
        if (language is not None) != has_language:
            expected = "a language" if has_language else "none"
            detail = f"the stored language is {language}, expected {expected}"
            yield Problem("language", key, detail, self._mend_words)

    def _sketch_problems(
        self, row: Row, shingle_count: int, has_signature: bool
    ) -> Iterator[Problem]:
        if row[1] != shingle_count:
            detail = f"the words have {shingle_count} shingles, the stored count is {row[1]}"
            yield Problem("shingle count", row[0], detail, self._rebuild)
        if not has_signature:
            detail = "the stored signature is not that of the words"
            yield Problem("signature", row[0], detail, self._rebuild)


class _Remedies(NamedTuple):
    """The commands that mend stored rows."""

    words: str
    """Writes the words of documents anew, from their texts."""
    rebuild: str
    """Computes signatures and band rows anew, from the stored words."""


def _remedies(connection: Connection, corpus: StoredCorpus) -> _Remedies:
    """Return the commands for a corpus; only one with attached tables can be reconciled."""
    name = quote(corpus.name)
    tables = connection.execute(integrity_statements.TABLES_OF_CORPUS, [corpus.id])
    if tables.fetchone() is None:
        return _Remedies(
            f"add the documents again: textsim index {name}", f"textsim rebuild {name}"
        )
    return _Remedies(
        f"textsim reconcile {name}; then add documents of no table again: textsim index {name}",
        f"textsim reconcile {name}; then: textsim rebuild {name}",
    )


def _equal(stored: Signatures, computed: Signatures) -> list[bool]:
    if all(np.array_equal(*arrays) for arrays in zip(stored, computed, strict=True)):
        return [True] * len(stored.sizes)
    documents = range(len(stored.sizes))
    return [np.array_equal(stored.of(i), computed.of(i)) for i in documents]


def _forgotten(
    connection: Connection, corpus: StoredCorpus, remedies: _Remedies
) -> Iterator[Problem]:
    for (key,) in connection.execute(
        corpus.statement(integrity_statements.FORGOTTEN_DOCUMENTS), [corpus.id]
    ):
        what = "words have no ids" if corpus.config.has_dictionary else "language is unknown"
        detail = f"the {what}, and no entry of textsim.pending asks for a worker"
        yield Problem("words", key, detail, remedies.words)


def _forgotten_words(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for (note,) in connection.execute(integrity_statements.FORGOTTEN_WORDS, [corpus.id]):
        yield Problem("forgotten words", corpus.name, note, "textsim worker --once")


def _unusable_sources(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for table, problem in connection.execute(integrity_statements.SOURCE_PROBLEMS, [corpus.id]):
        yield Problem("attached table", table, problem, _reconcile(corpus))


def _twin_problems(store: Store) -> Iterator[Problem]:
    pairs = list(twins(store))
    if not pairs:
        return
    with autocommit(store.engine) as connection:  # others may have forced documents meanwhile
        exceptions = Exceptions.read(connection, store.corpus)
    for a, b, similarity in pairs:
        if not exceptions.include(a, b):
            detail = f'it matches document "{a[:100]}" with similarity {similarity:.3f}'
            remedy = "remove one of the two documents or rows, or judge the two different"
            yield Problem("twin", b, detail, remedy)


def _row_problems(connection: Connection, store: Store, remedies: _Remedies) -> Iterator[Problem]:
    """Yield the band rows and fingerprints that are missing, and the surplus ones."""
    config = store.corpus.config
    buckets = (
        integrity_statements.BUCKETS_OF_VALUES
        if config.is_exact
        else integrity_statements.BUCKETS_OF_BANDS
    )
    if config.scoped:
        buckets = integrity_statements.BUCKETS_IN_PARTS
    rows = [integrity_statements.band_rows(buckets)]
    if config.passages is not None:
        rows.append(integrity_statements.PASSAGE_ROWS)
    for each in rows:
        yield from _wrong_rows(connection, store, each, remedies.rebuild)


def _wrong_rows(
    connection: Connection, store: Store, rows: integrity_statements.RowsToCheck, rebuild: str
) -> Iterator[Problem]:
    """Yield the rows of a table that do not follow from the documents."""
    config = store.corpus.config
    shape: dict[str, Any] = {"rows": config.rows, "bands": config.bands, "bits": BLOCK_BITS}
    parameters = shape | {"seed": secrets.randbits(63)}

    def sums(connection: Connection, statement: LiteralString) -> set[Row]:
        return set(connection.execute(store.corpus.statement(statement), parameters))

    with with_second(store.engine, connection) as connections:
        both = (rows.sums_of_stored, rows.sums_of_documents)
        stored, expected = on_each(connections, both, sums)
    blocks = sorted({block for block, *_ in stored ^ expected})
    if not blocks:
        return
    statement = store.corpus.statement(rows.wrong)
    for document_id, key, value, count in connection.execute(statement, shape | {"blocks": blocks}):
        place = f"{rows.column} {value}"
        if key is None:
            detail = f"a {rows.noun} of no stored document: {place}"
            yield Problem("orphan", f"document {document_id}", detail, rebuild)
        elif count > 0:
            yield Problem(f"missing {rows.noun}", key, place, rebuild)
        else:
            yield Problem(f"extra {rows.noun}", key, f"{place}, {-count} too many", rebuild)


def source_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    """Yield the documents of unknown tables, rows without a document and documents without a row."""
    for id_, count, key in connection.execute(
        corpus.statement(integrity_statements.UNKNOWN_SOURCES)
    ):
        detail = f"{count} documents name it, such as {key!r}, but textsim.source does not have it"
        remedy = (
            f"UPDATE textsim.document_{corpus.id} SET source_id = NULL WHERE source_id = {id_}; then "
            "attach the table again if it still exists: textsim attach"
        )
        yield Problem("unknown table", f"source {id_}", detail, remedy)
    for source in connection.execute(
        corpus.statement(integrity_statements.COMPARABLE_SOURCES)
    ).fetchall():
        id_, table, *names, fault = source
        if fault is not None:
            log.warning("table %s was not compared with its documents: %s", table, fault)
            continue
        try:
            with connection.transaction():
                problems = list(_differences(connection, corpus, id_, table, names))
        except psycopg.Error as error:
            if is_trouble(error) or isinstance(error, pg.QueryCanceled):
                raise
            detail = f"it cannot be compared with its documents: {error.diag.message_primary}"
            problems = [Problem("attached table", table, detail, _reconcile(corpus))]
        yield from problems


def _reconcile(corpus: StoredCorpus) -> str:
    return f"once that is mended: textsim reconcile {quote(corpus.name)}"


def _differences(
    connection: Connection, corpus: StoredCorpus, id_: int, table: str, names: list[Any]
) -> Iterator[Problem]:
    """Yield the rows of a table without a document, and the documents without a row."""
    for key in _keys(connection, corpus, integrity_statements.DOCUMENTS_WITHOUT_ROW, id_, names):
        # Not reconcile, which cannot look up a key that is not of the key column's type.
        remove = sql.SQL(integrity_statements.REMOVE_DOCUMENT).format(
            source=sql.Literal(id_), key=sql.Literal(key), id=sql.Literal(corpus.id)
        )
        detail = f"table {table} has no row of this key"
        yield Problem("surplus document", key, detail, remove.as_string(None))
    for key in _keys(connection, corpus, integrity_statements.ROWS_WITHOUT_DOCUMENT, id_, names):
        yield Problem(
            "missing document",
            key,
            f"table {table} has a row of this key",
            f"textsim reconcile {quote(corpus.name)}",
        )


def _keys(
    connection: Connection,
    corpus: StoredCorpus,
    statement: LiteralString,
    source_id: int,
    names: list[Any],
) -> Iterator[str]:
    schema, table, key, has_document = names
    filled = sql.SQL(statement).format(
        id=sql.Literal(corpus.id),
        document=sql.Identifier("textsim", f"document_{corpus.id}"),
        relation=sql.Identifier(schema, table),
        key=sql.SQL(key),
        has_document=sql.SQL(has_document),
        alive=sql.SQL(corpus.alive),
        source=sql.Literal(source_id),
    )
    for (key,) in connection.execute(filled):
        yield key
