"""Reads attached tables, but only if nobody has altered the table since its description was read."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, LiteralString, NamedTuple

from psycopg import Error, errors as pg, sql

from textsim_db.db.engine import Connection, transaction, wait_at_most
from textsim_db.db.store import Store
from textsim_db.errors import DocumentNotFound
from textsim_db.measures.word_diff import ShownText
from textsim_db.read import stored_documents
from textsim_db.sync import statements
from textsim_db.sync.step_faults import Subject

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)


_TEXTS_AT_ONCE = 1000
READING_PATIENCE = "2s"
"""How long a worker waits for a table that is being altered, before it indexes other tables."""


class SourceRow(NamedTuple):
    """The contents of a row, from which its document is made."""

    text: str
    scope: str | None
    """None if it is NULL, or the corpus is not scoped."""
    expires_at: bytes | None
    """In the format of timestamptz_send; None: never."""
    fault: str | None
    """Why the row can have no document; None if it can."""


SourceRows = dict[str, SourceRow]
"""Rows by key."""


@dataclass(frozen=True, slots=True)
class StoredSource:
    """An attached table as the connected role sees it."""

    id: int
    corpus_id: int
    relation: int
    """The oid of the table."""
    schema: str | None
    table: str | None
    """The name without its schema; None if the table was dropped."""
    key: LiteralString
    """The expression for the key of a row t."""
    has_key: LiteralString
    """The condition that a row t has the key q.key."""
    key_order: LiteralString
    """The key columns of a row t, in the order of an index."""
    is_after: LiteralString
    """The condition that a row t comes after the key q.key in that order."""
    text_column: str
    scope: LiteralString
    """The expression for the scope of the document of a row t."""
    expiry: LiteralString
    """The expression for the time when the document of a row t expires."""
    has_document: LiteralString
    """The condition that a row t has a text and has not expired."""
    row_fault: LiteralString
    """The expression for the reason why a row t can have no document, or NULL."""
    mode: str
    """queue or inline."""
    name: str
    """The quoted name for SQL."""
    fault: str | None
    """The reason why this role cannot index the table, or None."""
    differs: bool = field(default=False, compare=False)
    """Whether the table may have changed without its triggers."""
    problems: list[str] = field(default_factory=list, compare=False)
    """The reasons why no role can keep the table indexed."""

    @property
    def is_gone(self) -> bool:
        return self.table is None

    @property
    def indexing(self) -> Subject:
        return Subject(self.name, self.corpus_id, f"table {self.name} is not indexed")

    @property
    def following(self) -> Subject:
        if self.is_gone:
            lacks = f"table {self.name} was dropped and cannot be detached"
        else:
            lacks = f"table {self.name} cannot be compared with its documents"
        return Subject(f"comparison of {self.name}", self.corpus_id, lacks)

    def statement(self, text: LiteralString) -> bytes:
        """Return SQL with the names of the table and its columns filled in."""
        names = (str(self.schema), str(self.table), self.text_column)
        schema, table, text_ = (name.replace("%", "%%") for name in names)
        # The server has quoted the names of columns in expressions.
        expressions = (each.name for each in fields(self) if each.type == "LiteralString")
        filled = {name: sql.SQL(getattr(self, name).replace("%", "%%")) for name in expressions}
        composed = sql.SQL(text).format(
            relation=sql.Identifier(schema, table), text=sql.Identifier(text_), **filled
        )
        return composed.as_bytes(None)


def sources(
    engine: Engine, corpus_id: int | None = None, id_: int | None = None
) -> list[StoredSource]:
    """Return the attached tables, also dropped ones: all, those of a corpus, or the one with an id."""
    with transaction(engine) as connection:
        rows = connection.execute(
            statements.SOURCES, {"corpus_id": corpus_id, "id": id_}
        ).fetchall()
    return [StoredSource(*row) for row in rows]


def sources_of(store: Store) -> list[StoredSource]:
    """Return the attached tables of a corpus whose texts this role may read."""
    corpus_id = store.corpus.id
    with transaction(store.engine) as connection:
        faults = dict(connection.execute(statements.READING_FAULTS, [corpus_id]).fetchall())
    return [
        source
        for source in sources(store.engine, corpus_id)
        if faults.get(source.id, "dropped") is None
    ]


def log_unseen_changes(engine: Engine, source: StoredSource) -> None:
    """Log a comparison of the changes that the triggers of a table may have missed."""
    with transaction(engine) as connection:
        connection.execute(statements.LOG_UNSEEN_CHANGES, [source.id])


def release_dropped(engine: Engine, source: StoredSource) -> int:
    """Detach a dropped table, and return how many documents were removed."""
    with transaction(engine) as connection:
        # A table that was a partition of it may be locked.
        wait_at_most(connection, READING_PATIENCE)
        row = connection.execute(statements.RELEASE_DROPPED, [source.id]).fetchone()
    if row is None or row[0] is None:  # somebody else has detached it
        return 0
    log.warning(
        "table %s was dropped: it is detached, and its %s documents are removed",
        source.name,
        row[0],
        extra={"documents": row[0]},
    )
    return int(row[0])


@contextmanager
def reading(engine: Engine, source: StoredSource) -> Iterator[Connection]:
    with transaction(engine) as connection:
        lock_table(connection, source, READING_PATIENCE)
        yield connection


def lock_table(connection: Connection, source: StoredSource, patience: str) -> None:
    """Lock a table against ALTER; raise ObjectNotInPrerequisiteState if it was altered before.

    While the lock is held, the table cannot become a view, and no column can get a type that runs a
    user's function.
    """
    wait_at_most(connection, patience)
    connection.execute(source.statement(statements.LOCK_TABLE), [])
    row = connection.execute(statements.SOURCE, [source.id]).fetchone()
    if row is None or StoredSource(*row) != source:
        raise pg.ObjectNotInPrerequisiteState(f"table {source.name} has just been altered")


def read_rows(connection: Connection, source: StoredSource, keys: Sequence[str]) -> SourceRows:
    """Return the rows with these keys, without rows whose text is NULL or that have expired."""
    rows = connection.execute(source.statement(statements.READ_ROWS), [list(keys)]).fetchall()
    return {key: SourceRow(*contents) for key, *contents in rows}


def read_sizes(connection: Connection, source: StoredSource, keys: Sequence[str]) -> dict[str, int]:
    return dict(
        connection.execute(source.statement(statements.READ_SIZES), [list(keys)]).fetchall()
    )


def read_page(
    connection: Connection, source: StoredSource, after: str | None, most: int
) -> list[tuple[str, int]]:
    """Return the next keys of a table in order, with the lengths of their texts in bytes."""
    if after is None:
        rows = connection.execute(source.statement(statements.FIRST_PAGE), [most])
    else:
        rows = connection.execute(source.statement(statements.NEXT_PAGE), [after, most])
    return rows.fetchall()


def first_rows(
    engine: Engine, source: StoredSource, most: int
) -> Generator[tuple[str, str, str | None], None, None]:
    """Yield the keys, texts and scopes of the first rows of a table, in short transactions."""
    with reading(engine, source) as connection:
        page = read_page(connection, source, None, most)
    for start in range(0, len(page), _TEXTS_AT_ONCE):
        keys = [key for key, _ in page[start : start + _TEXTS_AT_ONCE]]
        with reading(engine, source) as connection:
            rows = read_rows(connection, source, keys)
        yield from ((key, row.text, row.scope) for key, row in rows.items() if row.fault is None)


def absent_keys(connection: Connection, source: StoredSource, keys: Sequence[str]) -> list[str]:
    """Return the keys that have no row with a text that has not expired."""
    rows = connection.execute(source.statement(statements.ABSENT_KEYS), [list(keys)]).fetchall()
    return [key for (key,) in rows]


def shown_texts(store: Store, keys: Sequence[str], part: int | None = None) -> dict[str, ShownText]:
    """Return the texts of the documents that exist, by key: of attached tables, or the normal forms.

    part: only documents of this part; None: those of all.
    """
    rows = stored_documents.rows_of_keys(store, keys)
    rows = [row for row in rows if part is None or row[5] == part]
    originals = original_texts(store, {row[1]: row[-1] for row in rows})
    texts = {key: ShownText(text, True) for key, text in originals.items()}
    rest = [row for row in rows if row[1] not in texts]
    forms = stored_documents.forms_of_rows(store, rest)
    return texts | {row[1]: ShownText(form, False) for row, form in zip(rest, forms, strict=True)}


def original_text(store: Store, key: str) -> str:
    traits = stored_documents.traits(store, [key])
    texts = original_texts(store, {key: each.source_id for key, each in traits.items()})
    if key not in texts:
        raise DocumentNotFound(
            f'no attached table of corpus "{store.corpus.name}" has "{key}", or row security hides rows '
            "of the table from this role; pass the text"
        )
    return texts[key]


def original_texts(store: Store, source_ids: Mapping[str, int | None]) -> dict[str, str]:
    """Return the texts of documents by key; none if a table was altered, or is locked for long.

    source_ids: the attached table of each document, None if a client added it.
    """
    texts: dict[str, str] = {}
    for source in sources_of(store) if any(source_ids.values()) else ():
        own = [key for key, source_id in source_ids.items() if source_id == source.id]
        with suppress(Error):
            with reading(store.engine, source) as connection:
                rows = read_rows(connection, source, own)
            texts |= {key: row.text for key, row in rows.items()}
    return texts
