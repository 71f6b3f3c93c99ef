"""Corpora that are there only for as long as a process needs them, or that it has not finished."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit
from textsim_db.errors import ConfigurationError, TextsimError

PREFIX = "textsim temporary "
# " old" is what a rebuild adds to the name of the corpus that it has replaced.
_NAME = re.compile(re.escape(PREFIX) + "[0-9a-f]{16}( old)?")
PATIENCE = "1s"
"""How long to wait for those who still read what is left, before the next one is to drop it."""
# In a transaction, and not in a session: behind a pooler each statement may have another session,
# and whoever gets this one next would hold the lock as well. It sees no row and changes none, so
# that VACUUM does not mind it.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY /* textsim-db: hold a temporary corpus */"
_PATIENCE = """
SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
_LOCK = "SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(%s, 0))"


def is_temporary(name: str) -> bool:
    """Say whether a corpus has such a name."""
    return _NAME.fullmatch(name) is not None


def check_not_reserved(name: object) -> None:
    """Raise ConfigurationError for a name that begins as those of temporary corpora do."""
    if isinstance(name, str) and name.startswith(PREFIX):
        raise ConfigurationError(
            f"the name of the corpus is {name[:40]!r}; names that begin with {PREFIX!r} are reserved "
            "for rebuilds"
        )


@contextmanager
def temporary_name(engine: Engine) -> Iterator[str]:
    """Lend a name for a corpus; what is left under it when this process dies is dropped by the next.

    It is held by an advisory lock on a connection of its own. What processes that died have left is
    dropped first.
    """
    _drop_abandoned(engine)
    with locked(engine, PREFIX + secrets.token_hex(8)) as name:
        assert name is not None
        yield name


def _drop_abandoned(engine: Engine) -> None:
    for name in stored_corpus.names(engine):
        if is_temporary(name):
            with locked(engine, name) as ours, suppress(TextsimError):
                if ours is not None:
                    stored_corpus.drop_named(engine, name, PATIENCE)


@contextmanager
def locked(engine: Engine, name: str) -> Iterator[str | None]:
    """Hold the advisory lock of a name on a connection of its own; yield None if it is taken."""
    with autocommit(engine) as connection:
        connection.execute(_BEGIN)
        connection.execute(_PATIENCE)
        row = connection.execute(_LOCK, [name]).fetchone()
        try:
            yield name if row == (True,) else None
        finally:
            with suppress(psycopg.Error):  # a connection that is lost holds no lock
                connection.rollback()
