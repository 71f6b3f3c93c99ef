"""The schema in a database: installed by Alembic, checked before use, printed for psql."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import sqlalchemy
from psycopg import sql
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, adapted, autocommit, database_errors
from textsim_db.errors import SchemaError
from textsim_db.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from alembic.config import Config

    from textsim_db.text import hashing
else:
    np = lazy("numpy")
    hashing = lazy("textsim_db.text.hashing")

# Alembic itself is imported where it is used: most connections only compare revisions.

log = logging.getLogger(__name__)

OLDEST_SERVER = 14
_LOCK = 7_310_583_202_611_201  # any number, the same everywhere: one installation at a time
_VIEW_OVER_SCHEMA = """
SELECT CASE v.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, v.oid::regclass::text
FROM pg_depend d
JOIN pg_rewrite r ON r.oid = d.objid
JOIN pg_class v ON v.oid = r.ev_class
LEFT JOIN pg_class t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
WHERE d.classid = 'pg_rewrite'::regclass
    AND 'textsim'::regnamespace IN (t.relnamespace, f.pronamespace)
    AND v.relnamespace <> 'textsim'::regnamespace
ORDER BY 2 LIMIT 1
"""


def resource(name: str) -> Path:
    """Return the folder sql or migrations: in the installed package, or in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / f"_{name}"
    return installed if installed.is_dir() else package.parent / name


def run_files(pattern: str) -> None:
    """Run files of sql/ on the connection of the current revision, byte for byte."""
    import alembic.op

    for file in sorted(resource("sql").glob(pattern)):
        script = f"/* textsim-db: migration {file.name} */ {file.read_text(encoding='utf-8')}"
        options = {"no_parameters": True}
        alembic.op.get_bind().exec_driver_sql(script, execution_options=options)


@cache
def first_revision() -> str:
    """Return the revision that runs the files of sql/schema/, named by their checksum.

    Until the first release the schema changes in place: a database that was made by other files is
    at another revision.
    """
    digest = hashlib.sha256()
    for file in sorted((resource("sql") / "schema").glob("*.sql")):
        digest.update(file.read_bytes())
    return f"0001_{digest.hexdigest()[:12]}"


@cache
def head() -> str:
    """Return the newest revision that this version of textsim-db has."""
    if not (resource("sql") / "upgrade").is_dir():
        return first_revision()
    return max(file.stem for file in (resource("migrations") / "versions").glob("[0-9]*.py"))


def current(connection: Connection) -> str | None:
    """Return the revision of the schema in a database, or None where there is none."""
    known = connection.execute("SELECT to_regclass('textsim.alembic_version')").fetchone()
    if known is None or known[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM textsim.alembic_version").fetchone()
    return None if row is None else str(row[0])


def check_installed(engine: Engine) -> None:
    """Raise SchemaError unless the database has the schema of this version."""
    name, found = _installed(engine)
    if found is None:
        raise SchemaError(
            f'database "{name}" has no schema textsim; to install it, run: textsim db install '
            "--database-url ... (or textsim_db.install(...) in Python)"
        )
    if found != head():
        raise SchemaError(
            f'database "{name}" has the schema at revision {found}; this version of textsim-db needs '
            f"{head()}: {_way_out()}"
        )


def _way_out() -> str:
    if head() != first_revision():
        return "run textsim db upgrade, or use the version of textsim-db that matches"
    return (
        "before the first release there is no upgrade; textsim db downgrade base removes the schema "
        "with all corpora, and textsim db install creates it anew"
    )


def ensure_installed(engine: Engine) -> None:
    """Install or upgrade the schema unless it is there; for the embedded server."""
    if _installed(engine)[1] != head():
        upgrade(engine)


def _installed(engine: Engine) -> tuple[str, str | None]:
    with database_errors(), autocommit(engine) as connection:
        name = connection.info.dbname
        try:
            return name, current(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SchemaError(
                f'role "{connection.info.user}" has no right to use the schema textsim in '
                f'database "{name}"'
            ) from error


def upgrade(engine: Engine) -> str:
    """Install the schema or bring it to the newest revision; return that revision.

    Raises SchemaError where the server cannot carry it.
    """
    import alembic.command

    with _changing(engine) as (connection, config):
        check_server(connection)
        alembic.command.upgrade(config, "head")
    log.info("the schema textsim is at revision %s", head(), extra={"revision": head()})
    return head()


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Take the schema back to a revision; "base" removes it and everything stored in it."""
    import alembic.command

    if revision == "base":
        _remove(engine)
        return
    with _changing(engine) as (_, config):
        alembic.command.downgrade(config, revision)


def _remove(engine: Engine) -> None:
    """Remove the schema, whatever its revision."""
    with database_errors(), autocommit(engine) as connection:
        if connection.execute("SELECT to_regnamespace('textsim')").fetchone() == (None,):
            return
        if view := connection.execute(_VIEW_OVER_SCHEMA).fetchone():
            raise SchemaError(
                f"{view[0].lower()} {view[1]} reads the schema textsim; drop the view first: "
                f"DROP {view[0]} {view[1]}"
            )
        if connection.execute("SELECT to_regclass('textsim.corpus')").fetchone() != (None,):
            _remove_corpora(connection)
    with _changing(engine) as (changing, _):
        options = {"no_parameters": True}
        script = (resource("sql") / "remove.sql").read_text(encoding="utf-8")
        changing.exec_driver_sql(script, execution_options=options)
        changing.exec_driver_sql("DROP TABLE IF EXISTS textsim.alembic_version")
        changing.exec_driver_sql("DROP SCHEMA textsim")


def _remove_corpora(connection: Connection) -> None:
    """Remove each corpus in its own transaction: the server cannot lock hundreds at once."""
    corpora = connection.execute("SELECT id FROM textsim.corpus ORDER BY id").fetchall()
    for (corpus,) in corpora:
        with connection.transaction():
            sources = "SELECT id FROM textsim.source WHERE corpus_id = %s"
            for (source,) in connection.execute(sources, [corpus]).fetchall():
                function = sql.Identifier("textsim", f"_changes_{source}")
                connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))
            connection.execute("DELETE FROM textsim.source WHERE corpus_id = %s", [corpus])
            connection.execute("DELETE FROM textsim.corpus WHERE id = %s", [corpus])
            connection.execute("SELECT textsim._drop_partitions(%s)", [corpus])


def script() -> str:
    """Return one SQL script that installs the schema with plain psql, at the newest revision."""
    folder = resource("sql")
    files = [file.read_text(encoding="utf-8") for file in sorted((folder / "schema").glob("*.sql"))]
    version = (folder / "version.sql").read_text(encoding="utf-8").replace(":revision", head())
    first = (
        "-- textsim-db: the whole schema. Run it with: psql -X -v ON_ERROR_STOP=1 -f FILE\nBEGIN;\n"
    )
    return "\n".join([first, *files, version, "COMMIT;\n"])


def check_server(connection: sqlalchemy.Connection) -> None:
    """Raise SchemaError for a server too old, not UTF8, or one that hashes differently."""
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
    words = ["a", "textsim", "naïve", "漢", "twelvebytes!", "a text of more than twenty-four bytes"]
    ours = hashing.hash_texts(words)
    theirs = connection.execute(
        sqlalchemy.text(
            "SELECT array(SELECT hashtextextended(w, 0) FROM unnest(CAST(:words AS text[])) w)"
        ),
        {"words": words},
    ).scalar_one()
    signature = np.array([[7, 2**31 - 2, 0, 123456789]], np.int32)
    buckets = hashing.hash_bands(signature, 2, 2)[0].tolist()
    hashed = connection.exec_driver_sql(
        "SELECT ARRAY[hash_array_extended(ARRAY[7, 2147483646], 0), "
        "hash_array_extended(ARRAY[0, 123456789], 1)]"
    ).scalar_one()
    if ours != theirs or buckets != hashed:
        raise SchemaError(
            "the server's hashtextextended or hash_array_extended is not PostgreSQL's own: "
            f"expected {ours} and {buckets}, found {theirs} and {hashed}"
        )


@contextmanager
def _changing(engine: Engine) -> Iterator[tuple[sqlalchemy.Connection, Config]]:
    import alembic.util

    # READ COMMITTED whatever the default: who has waited has to see what was done meanwhile.
    with (
        database_errors(),
        engine.execution_options(isolation_level="READ COMMITTED").connect() as connection,
        adapted(connection.connection, autocommit=False),
        connection.begin(),
    ):
        connection.exec_driver_sql(
            f"/* textsim-db: wait for a migration */ SELECT pg_advisory_xact_lock({_LOCK})"
        )
        config = _config()
        config.attributes["connection"] = connection
        try:
            yield connection, config
        except alembic.util.CommandError as error:
            raise SchemaError(f"the schema cannot be changed: {error}; {_way_out()}") from error


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(resource("migrations")).replace("%", "%%"))
    return config
