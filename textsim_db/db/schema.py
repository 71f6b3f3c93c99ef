"""Installs the schema with Alembic, checks it before use, and prints it for psql."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import psycopg
from psycopg import sql

from textsim_db.db import statements
from textsim_db.db.connections import Connection, adapted
from textsim_db.db.engine import autocommit, database_errors
from textsim_db.errors import SchemaError

if TYPE_CHECKING:
    import sqlalchemy
    from alembic.config import Config
    from sqlalchemy import Engine

# Functions import Alembic themselves, because most commands only compare revisions.

log = logging.getLogger(__name__)

OLDEST_SERVER = 14
_UPDATE = "ALTER EXTENSION textsim UPDATE"
_DROP = "DROP EXTENSION textsim CASCADE"
_CORPUS_TABLES = (
    # The band rows come first, because searches lock both tables in this order.
    *("band", "document", "node", "match", "member"),
    *("cluster", "cluster_alias", "cluster_event", "removed"),
)
SCRIPT_SETTINGS = {"standard_conforming_strings": "on", "search_path": "pg_catalog, pg_temp"}
_MIGRATION_LOCK = (
    7_310_583_202_611_201  # an arbitrary number; the lock lets only one migration run at a time
)


def resource(name: str) -> Path:
    """Return the path of the folder sql or migrations, in the installed package or the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / f"_{name}"
    return installed if installed.is_dir() else package.parent / name


def run_script(connection: sqlalchemy.Connection, script: str) -> None:
    """Run a script of several statements; neither :word nor % is a parameter in it.

    Its names are those of pg_catalog: a role that may create in public could add functions to it.
    """
    before = {
        name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in SCRIPT_SETTINGS
    }
    _set_locally(connection, SCRIPT_SETTINGS)
    labelled = f"/* textsim-db: migration */ {script}"
    connection.exec_driver_sql(labelled, execution_options={"no_parameters": True})
    _set_locally(connection, before)


def _set_locally(connection: sqlalchemy.Connection, settings: dict[str, str]) -> None:
    for each in settings.items():
        connection.exec_driver_sql(statements.SET_LOCALLY, each)


@cache
def revisions() -> tuple[str, ...]:
    """Return the revisions of the schema that this version knows, oldest first."""
    files = (resource("migrations") / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.stem for file in files))


def head() -> str:
    """Return the newest revision that this version knows, which a new schema has."""
    return revisions()[-1]


def current(connection: Connection) -> str | None:
    if not _answer(connection, statements.HAS_REVISION):
        return None
    revision = _answer(connection, statements.REVISION)
    return None if revision is None else str(revision)


class Mismatch(NamedTuple):
    """Why this version cannot work with a schema, and what to do about it."""

    detail: str
    remedy: str


def mismatch(connection: Connection, revision: str) -> Mismatch | None:
    """Return why this version cannot work with a schema of a revision; None if it can.

    An older schema is upgraded first. A newer one names the older revisions whose clients it serves.
    """
    detail = f"the schema is at revision {revision}; this version of textsim-db needs {head()}"
    if revision in revisions():
        if revision == head():
            return None
        return Mismatch(
            detail, f"{_UPDATE} in SQL" if is_extension(connection) else "textsim db install"
        )
    names_clients = _answer(connection, statements.HAS_CLIENTS)
    if names_clients and _answer(connection, statements.SERVES, head()):
        return None
    return Mismatch(
        detail,
        "install a newer version of textsim-db, or remove the schema with all its corpora: "
        + (f"{_DROP} in SQL" if is_extension(connection) else "textsim db uninstall"),
    )


def check_installed(engine: Engine) -> None:
    """Raise SchemaError unless this version can work with the schema of the database."""
    database, revision, _, wrong = _installed(engine)
    if revision is None:
        raise SchemaError(
            f'database "{database}" has no schema textsim; to install it, run: textsim db install '
            "--database-url ... (or textsim_db.install(...) in Python)"
        )
    if wrong is not None:
        raise _refused(database, wrong)


def _refused(database: str, wrong: Mismatch) -> SchemaError:
    return SchemaError(f'in database "{database}" {wrong.detail}; what to do: {wrong.remedy}')


def is_extension(connection: Connection) -> bool:
    return bool(_answer(connection, statements.IS_EXTENSION))


def ensure_installed(engine: Engine) -> None:
    """Install the schema, or upgrade an older one; for the embedded server."""
    _, revision, _, wrong = _installed(engine)
    if revision is None or wrong is not None:
        upgrade(engine)


class _Installed(NamedTuple):
    database: str
    revision: str | None
    is_extension: bool
    wrong: Mismatch | None


def _installed(engine: Engine) -> _Installed:
    with database_errors(), autocommit(engine) as connection:
        database = connection.info.dbname
        try:
            revision = current(connection)
            wrong = None if revision is None else mismatch(connection, revision)
            return _Installed(database, revision, is_extension(connection), wrong)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SchemaError(
                f'role "{connection.info.user}" has no right to use the schema textsim in '
                f'database "{database}"; let the owner of the schema call textsim.grant_reader or '
                "textsim.grant_writer, or after a restore a superuser textsim.set_owner"
            ) from error


def _answer(connection: Connection, statement: LiteralString, *values: str) -> Any:
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


def upgrade(engine: Engine) -> str:
    """Install the schema, upgrade it or mend its objects; return its revision.

    A newer schema that serves this version stays as it is.
    """
    import alembic.command

    database, revision, as_extension, wrong = _installed(engine)
    is_newer = revision is not None and revision not in revisions()
    if wrong is not None and (as_extension or is_newer):
        raise _refused(database, wrong)
    if is_newer:
        return str(revision)
    with _changing(engine) as (connection, config):
        # Another process may have installed it meanwhile.
        has_revision = connection.exec_driver_sql(statements.HAS_REVISION).scalar_one()
        if has_revision and connection.exec_driver_sql(statements.REVISION).scalar() == head():
            run_script(connection, files())
        else:
            alembic.command.upgrade(config, "head")
        # A superuser may have run it.
        connection.exec_driver_sql(statements.KEEP_OWNER)
    log.info("the schema textsim is at revision %s", head(), extra={"revision": head()})
    return head()


def downgrade(engine: Engine) -> None:
    """Remove the schema with all its data."""
    database, _, as_extension, _ = _installed(engine)
    if as_extension:
        raise SchemaError(
            f'the schema textsim in database "{database}" is an extension, and nothing was changed; in '
            f"SQL, as the owner of the extension, run: {_DROP}"
        )
    _remove(engine)


def _remove(engine: Engine) -> None:
    with database_errors(), autocommit(engine) as connection:
        if not _answer(connection, statements.HAS_SCHEMA):
            return
        if _answer(connection, statements.HAS_CORPORA):
            for (corpus_id,) in connection.execute(statements.CORPUS_IDS).fetchall():
                # One transaction for each corpus: the server cannot lock hundreds of corpora at once.
                with connection.transaction():
                    _remove_corpus(connection, corpus_id)
    with _changing(engine) as (changing, _):
        run_script(changing, file("remove.sql"))
        changing.exec_driver_sql("DROP TABLE IF EXISTS textsim.alembic_version")
        changing.exec_driver_sql("DROP SCHEMA textsim")


def _remove_corpus(connection: Connection, corpus_id: int) -> None:
    for (source_id,) in connection.execute(statements.SOURCE_IDS, [corpus_id]).fetchall():
        function = sql.Identifier("textsim", f"_changes_{source_id}")
        connection.execute(sql.SQL(statements.DROP_TRIGGER_FUNCTION).format(function))
    connection.execute(statements.FORGET_SOURCES, [corpus_id])
    connection.execute(statements.FORGET_CORPUS, [corpus_id])
    relations = [sql.Identifier("textsim", f"{name}_{corpus_id}") for name in _CORPUS_TABLES]
    connection.execute(sql.SQL(statements.DROP_RELATIONS).format(sql.SQL(", ").join(relations)))


def file(name: str) -> str:
    """Return the text of a file of sql/."""
    return (resource("sql") / name).read_text(encoding="utf-8")


def files() -> str:
    """Return the files of the newest schema, which can run again over what is there."""
    names = sorted(path.name for path in (resource("sql") / "schema").glob("*.sql"))
    return "\n".join(file(f"schema/{name}") for name in names)


def script(has_transaction: bool = True) -> str:
    """Return the schema as a script, which creates it or mends one of the same revision.

    Without a transaction of its own, it runs in one of the caller's.
    """
    texts = [file("begin.sql"), files(), file("version.sql"), file("end.sql")]
    if has_transaction:
        texts = ["BEGIN;", *texts, "COMMIT;\n"]
    return "\n".join(texts).replace(":revision", head())


def check_server(connection: sqlalchemy.Connection) -> None:
    """Raise SchemaError if the server is too old, or not UTF8."""
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
    if version // 10000 < OLDEST_SERVER:
        raise SchemaError(
            f"the server is PostgreSQL {version // 10000}; expected {OLDEST_SERVER} or newer"
        )
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise SchemaError(
            f"the database's encoding is {encoding}; expected UTF8 "
            "(CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0)"
        )


def prepare(connection: sqlalchemy.Connection) -> None:
    """Wait for other migrations of the database, and make the schema in which Alembic has its table."""
    check_server(connection)
    connection.exec_driver_sql(statements.LOCK_MIGRATIONS, (_MIGRATION_LOCK,))
    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS textsim")


@contextmanager
def _changing(engine: Engine) -> Iterator[tuple[sqlalchemy.Connection, Config]]:
    import alembic.util

    # READ COMMITTED, even with another default: a migration that waited for a lock must see the changes
    # that were committed meanwhile.
    with (
        database_errors(),
        _inside_another_migration(),
        engine.execution_options(isolation_level="READ COMMITTED").connect() as connection,
        adapted(connection.connection, autocommit=False),
        connection.begin(),
    ):
        prepare(connection)
        config = _config()
        config.attributes["connection"] = connection
        try:
            yield connection, config
        except alembic.util.CommandError as error:
            raise SchemaError(f"the schema cannot be changed: {error}") from error


@contextmanager
def _inside_another_migration() -> Iterator[None]:
    """Let a revision of an application's own Alembic call install().

    Alembic keeps the running migration in the modules alembic.context and alembic.op, and removes it
    at the end. So the outer migration is put back.
    """
    import alembic.context
    import alembic.op

    outer = [vars(module).get("_proxy") for module in (alembic.context, alembic.op)]
    try:
        yield
    finally:
        for proxy in outer:
            if proxy is not None:
                proxy._install_proxy()


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(resource("migrations")).replace("%", "%%"))
    return config
