"""The integrity of the catalog: all objects are there, and as they would be created today.

Reads the catalog, the record of the installation and the settings of corpora. Reads no documents, so
it takes milliseconds. Any role that may search can do it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, autocommit, database_errors
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.integrity import statements
from textsim_db.results import Problem

log = logging.getLogger(__name__)

INSTALL = "textsim db install"
FROM_BACKUP = "restore the database from a backup"


class Tracking(NamedTuple):
    """How a corpus is tracked."""

    linkage: str
    """How matches make clusters: kept, single or complete."""
    threshold: float
    """The least similarity of a match."""


def check_installation(engine: Engine) -> list[Problem]:
    """Return the objects of the schema that are missing or changed, and rows that belong to nothing."""
    with database_errors(), autocommit(engine) as connection:
        try:
            problems = [*_wrong_objects(connection)]
        except (pg.UndefinedFunction, pg.UndefinedTable) as error:
            detail = error.diag.message_primary or "an object of the schema does not exist"
            return [Problem("schema", "textsim", detail, INSTALL)]
        for problem in problems:
            if problem.subject == "textsim._catalog()":
                return [problem]  # it reads the catalog, so the others say nothing
        if any(problem.kind in ("table", "column", "view") for problem in problems):
            return problems  # the statements below would fail
        return [
            *problems,
            *_unowned_objects(connection),
            *_sequences(connection, statements.SHARED_SEQUENCES),
            *_stuck_entries(connection),
        ]


def _wrong_objects(connection: Connection) -> Iterator[Problem]:
    if connection.execute(statements.IS_RECORDED).fetchone() == (False,):
        yield Problem("table", "textsim.installed", "it has no rows", FROM_BACKUP)
    missing: set[str] = set()
    for kind, name, expected, found in connection.execute(statements.WRONG_OBJECTS):
        if name.rpartition(".")[0] in missing:
            continue  # a part of a table that does not exist
        if found is None:
            detail = "it does not exist"
            missing.add(name)
        elif kind in ("function", "view"):
            detail = "it is not as it was installed"
        else:
            detail = f'it is "{found}"; expected "{expected}"'
        yield Problem(kind, name, detail, _way_back(kind, name, expected, found))


def _way_back(kind: str, name: str, expected: str, found: str | None) -> str:
    """Return the command that mends an object of the schema."""
    table, _, part = name.rpartition(".")
    if kind == "constraint":
        drop = f"ALTER TABLE {table} DROP CONSTRAINT {part}; " if found is not None else ""
        return f"{drop}ALTER TABLE {table} ADD CONSTRAINT {part} {expected}"
    if kind == "column":
        return _column_way_back(table, part, expected, found)
    if kind == "index" and found is not None:
        return f"DROP INDEX {name}; {expected}"
    if kind in ("trigger", "policy") and found is not None:
        return f"DROP {kind.upper()} {part} ON {table}; then: {INSTALL}"
    if kind == "table" and found is not None:
        change = "ENABLE" if "row security" in expected else "DISABLE"
        return (
            f"ALTER TABLE {name} SET LOGGED"
            if "unlogged" in found
            else f"ALTER TABLE {name} {change} ROW LEVEL SECURITY"
        )
    if kind == "sequence" and found is not None:
        return FROM_BACKUP
    return INSTALL


def _column_way_back(table: str, column: str, expected: str, found: str | None) -> str:
    """Return the command that mends a column; nothing mends a column whose values are lost."""
    if found is not None and expected == f"{found} NOT NULL":
        return f"ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL"
    if found is not None and expected.startswith(f"{found} DEFAULT "):
        return f"ALTER TABLE {table} ALTER COLUMN {column} SET{expected.removeprefix(found)}"
    return FROM_BACKUP


def _unowned_objects(connection: Connection) -> Iterator[Problem]:
    for name, owner, id_ in connection.execute(statements.UNOWNED_OBJECTS):
        if owner == "corpus":
            detail = f"textsim.corpus has no row with the id {id_}"
            yield Problem("table", name, detail, f"{FROM_BACKUP}, or: DROP TABLE {name} CASCADE")
        else:
            detail = (
                f"it indexes a table, but textsim.source has no attached table with the id {id_}"
            )
            remedy = f"DROP FUNCTION {name} CASCADE; then attach the table again: textsim attach"
            yield Problem("function", name, detail, remedy)


def _stuck_entries(connection: Connection) -> Iterator[Problem]:
    unknown, held = connection.execute(statements.STUCK_ENTRIES).fetchone() or (0, 0)
    if unknown:
        yield Problem(
            "log",
            "textsim.pending",
            f"{unknown} entries belong to no attached table and to no corpus",
            "DELETE FROM textsim.pending p WHERE p.source_id IS NOT NULL AND NOT EXISTS (SELECT FROM "
            "textsim.source s WHERE s.id = p.source_id) OR p.source_id IS NULL AND NOT EXISTS (SELECT "
            "FROM textsim.corpus c WHERE c.id = p.corpus_id)",
        )
    if held:
        yield Problem(
            "log",
            "textsim.pending",
            f"{held} entries are leased for more than a day, so no worker takes them",
            "UPDATE textsim.pending SET lease_until = NULL WHERE lease_until > now() + interval '1 day'",
        )


def _sequences(connection: Connection, statement: str) -> Iterator[Problem]:
    for name, used, is_readable, last in connection.execute(statement.encode()):
        if not is_readable:
            log.info("the sequence %s was not checked: this role may not read it", name)
        elif used is not None and last < used:
            detail = f"its last value is {last}, and the largest id in use is {used}"
            yield Problem("sequence", name, detail, f"SELECT setval('{name}', {used})")


def check_objects(engine: Engine, corpus: StoredCorpus) -> list[Problem]:
    """Return what is wrong with the settings, tables, indexes and functions of a corpus."""
    with database_errors(), autocommit(engine) as connection:
        return list(object_problems(connection, corpus))


def object_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    """Yield what is wrong with the settings, tables, indexes and functions of a corpus."""
    settings = list(_settings(connection, corpus))
    yield from settings
    if settings:
        return  # the templates are filled with the settings
    for subject, detail in connection.execute(corpus.statement(statements.OWNER_PROBLEMS)):
        yield Problem("owner", subject, f"it {detail}", detail.rpartition(", ")[2])
    relations = list(_relations(connection, corpus))
    yield from relations
    yield from _columns(connection, corpus)
    yield from _functions(connection, corpus)
    for table, name in connection.execute(corpus.statement(statements.TRACKING_TRIGGERS)):
        detail = "it does not exist or is disabled, so changes are missed"
        yield Problem("trigger", f"textsim.{table}.{name}", detail, _track_again(corpus))
    for table, name, statement in connection.execute(corpus.statement(statements.PASSAGE_TRIGGERS)):
        place, detail = (
            f"textsim.{table}",
            "it does not exist, is disabled or was changed, so passages are missed",
        )
        remedy = f"DROP TRIGGER IF EXISTS {name} ON {place}; {statement}"
        yield Problem("trigger", f"{place}.{name}", detail, remedy)
    if not any(problem.kind in ("table", "sequence") for problem in relations):
        yield from _sequences(connection, corpus.statement(statements.SEQUENCE_OF_CORPUS))
        if tracking(connection, corpus) is not None:
            yield from _sequences(connection, corpus.statement(statements.TRACKING_SEQUENCES))


def tracking(connection: Connection, corpus: StoredCorpus) -> Tracking | None:
    """Return how a corpus is tracked; None if it is not."""
    row = connection.execute(corpus.statement(statements.TRACKED)).fetchone()
    return None if row is None else Tracking(*row)


def _track_again(corpus: StoredCorpus) -> str:
    """Return the commands that compute the matches and clusters of a corpus anew."""
    return f"textsim untrack {quote(corpus.name)}; then: textsim track {quote(corpus.name)}"


def _settings(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    changed = connection.execute(corpus.statement(statements.CHANGED_SETTINGS)).fetchall()
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


def _relations(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for row in connection.execute(corpus.statement(statements.RELATIONS_OF_CORPUS)):
        kind, name, statement, exists, definition, is_valid, is_logged, has_policy = row
        place = f"textsim.{name}"
        if not exists:
            # The rows of a new band table are missing at the next check, and a rebuild adds them.
            remedy = FROM_BACKUP if name.startswith("document") and kind == "table" else statement
            yield Problem(kind, place, "it does not exist", remedy)
        elif kind == "index" and definition != statement:
            detail = f'it is "{definition}"; expected "{statement}"'
            yield Problem(kind, place, detail, f"DROP INDEX {place}; {statement}")
        elif kind == "index" and not is_valid:
            yield Problem(kind, place, "it is not valid", f"REINDEX INDEX {place}")
        elif kind == "table" and not is_logged:
            detail = "it is unlogged: a crash of the server empties it"
            yield Problem(kind, place, detail, f"ALTER TABLE {place} SET LOGGED")
        elif kind == "table" and has_policy:
            detail = "row security hides documents of it"
            yield Problem(kind, place, detail, f"ALTER TABLE {place} DISABLE ROW LEVEL SECURITY")


def _columns(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for table, column, type_, is_required, found_type, found_required in connection.execute(
        corpus.statement(statements.COLUMNS_OF_CORPUS)
    ):
        expected = _column(type_, is_required)
        if found_type is None:
            yield Problem("column", f"{table}.{column}", "it does not exist", FROM_BACKUP)
            continue
        found = _column(found_type, found_required)
        yield Problem(
            "column",
            f"{table}.{column}",
            f'it is "{found}"; expected "{expected}"',
            _column_way_back(table, column, expected, found),
        )
    for table, name, definition in connection.execute(
        corpus.statement(statements.CONSTRAINTS_OF_CORPUS)
    ):
        remedy = f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"
        yield Problem("constraint", f"{table}.{name}", "it does not exist", remedy)


def _column(type_: str, is_required: bool) -> str:
    return f"{type_} NOT NULL" if is_required else type_


def _functions(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for name, exists in connection.execute(corpus.statement(statements.FUNCTIONS_OF_CORPUS)):
        detail = "it is not as its template is now" if exists else "it does not exist"
        remedy = f"SELECT textsim._make_functions({corpus.id})"
        yield Problem("function", f"textsim.{name}", detail, remedy)
    for source_id, table, is_missing in connection.execute(
        corpus.statement(statements.TRIGGER_FUNCTIONS)
    ):
        place = f"textsim._changes_{source_id}()"
        detach = f"textsim detach {quote(corpus.name)} {quote(table)}"
        again = f"{detach}; then attach it again: textsim attach"
        if is_missing:
            yield Problem("function", place, "it does not exist, so changes are missed", again)
        else:
            detail = f"it is not as attach makes it for table {table}"
            yield Problem("function", place, detail, again)
