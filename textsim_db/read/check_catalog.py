"""The integrity of the catalog: all tables are there, and as they would be created today."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from psycopg import errors as pg

from textsim_db.db.engine import Connection, autocommit, database_errors
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import integrity_statements
from textsim_db.results import Problem

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)


INSTALL = "textsim db install"
FROM_BACKUP = "restore the database from a backup"


def check_installation(engine: Engine) -> list[Problem]:
    """Return the tables and parts of tables that are missing or changed, and rows of no corpus."""
    with database_errors(), autocommit(engine) as connection:
        try:
            problems = _problems(connection, integrity_statements.WRONG_OBJECTS)
        except (pg.UndefinedFunction, pg.UndefinedTable) as error:
            detail = error.diag.message_primary or "an object of the schema does not exist"
            return [Problem("schema", "textsim", detail, INSTALL)]
        if any(problem.kind in ("table", "column") for problem in problems):
            return problems  # the statements below would fail
        return [
            *problems,
            *_unowned_objects(connection),
            *_sequences(connection, integrity_statements.SHARED_SEQUENCES),
        ]


def _problems(connection: Connection, statement: str) -> list[Problem]:
    return [Problem(*row) for row in connection.execute(statement.encode())]


def _unowned_objects(connection: Connection) -> Iterator[Problem]:
    for name, owner, id_ in connection.execute(integrity_statements.UNOWNED_OBJECTS):
        if owner == "corpus":
            detail = f"textsim.corpus has no row with the id {id_}"
            yield Problem("table", name, detail, f"{FROM_BACKUP}, or: DROP TABLE {name} CASCADE")
        else:
            detail = (
                f"it indexes a table, but textsim.source has no attached table with the id {id_}"
            )
            remedy = f"DROP FUNCTION {name} CASCADE; then attach the table again: textsim attach"
            yield Problem("function", name, detail, remedy)


def _sequences(connection: Connection, statement: str) -> Iterator[Problem]:
    for name, used, is_readable, last in connection.execute(statement.encode()):
        if not is_readable:
            log.info("the sequence %s was not checked: this role may not read it", name)
        elif used is not None and last < used:
            detail = f"its last value is {last}, and the largest id in use is {used}"
            yield Problem("sequence", name, detail, f"SELECT setval('{name}', {used})")


def check_objects(engine: Engine, corpus: StoredCorpus) -> list[Problem]:
    with database_errors(), autocommit(engine) as connection:
        return list(object_problems(connection, corpus))


def object_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    """Yield what is wrong with the settings, tables, indexes and triggers of a corpus."""
    settings = list(_settings(connection, corpus))
    yield from settings
    if settings:
        return  # the templates are filled with the settings
    objects = _problems(connection, corpus.statement(integrity_statements.WRONG_OBJECTS_OF_CORPUS))
    yield from objects
    if not any(problem.kind in ("table", "sequence") for problem in objects):
        yield from _sequences(
            connection, corpus.statement(integrity_statements.SEQUENCES_OF_CORPUS)
        )
        if tracked_threshold(connection, corpus) is not None:
            yield from _sequences(
                connection, corpus.statement(integrity_statements.TRACKING_SEQUENCES)
            )


def tracked_threshold(connection: Connection, corpus: StoredCorpus) -> float | None:
    """Return the least similarity of a match of a tracked corpus; None if it is not tracked."""
    row = connection.execute(corpus.statement(integrity_statements.TRACKED)).fetchone()
    return None if row is None else float(row[0])


def _settings(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    changed = connection.execute(corpus.statement(integrity_statements.CHANGED_SETTINGS)).fetchall()
    if any(not is_recorded for is_recorded, *_ in changed):
        yield Problem(
            "setting",
            "created_with",
            f'the row of corpus "{corpus.name}" does not tell with which settings it was created',
            "UPDATE textsim.corpus c SET created_with = textsim._settings(c) "
            f"WHERE id = {corpus.id}; then: textsim check",
        )
        return
    names = ", ".join(name for _, name, *_ in changed)
    remedy = (
        f"UPDATE textsim.corpus c SET ({names}) = (SELECT {names} FROM "
        f"jsonb_populate_record(NULL::textsim.corpus, c.created_with)) WHERE id = {corpus.id}"
    )
    for _, name, value, before in changed:
        detail = f"it is {value}, but the corpus was created with {before}"
        yield Problem("setting", name, detail, remedy)
