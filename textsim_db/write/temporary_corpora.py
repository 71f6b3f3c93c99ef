"""Temporary corpora: a process holds a lock on the name; if it dies, another drops the corpus."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit
from textsim_db.errors import ConfigurationError, TextsimError
from textsim_db.write import statements

if TYPE_CHECKING:
    from sqlalchemy import Engine

PREFIX = "textsim temporary "
# A rebuild adds " old" to the name of the corpus that it has replaced.
_NAME = re.compile(re.escape(PREFIX) + "[0-9a-f]{16}( old)?")
ABANDONED_PATIENCE = "1s"
"""How long to wait for readers of an abandoned corpus; after that, a later process drops it."""


def is_temporary(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_not_reserved(name: object) -> None:
    if isinstance(name, str) and name.startswith(PREFIX):
        raise ConfigurationError(
            f"the name of the corpus is {name[:40]!r}, but names that begin with {PREFIX!r} are "
            "reserved for rebuilds; choose another name"
        )


@contextmanager
def temporary_name(engine: Engine) -> Iterator[str]:
    """Lend a name for a temporary corpus, held by an advisory lock on a connection of its own.

    Then drops the temporary corpora of processes that have died.
    """
    with locked(engine, PREFIX + secrets.token_hex(8)) as name:
        assert name is not None  # nobody else knows it
        for other in stored_corpus.names(engine):
            if is_temporary(other):
                with suppress(TextsimError):
                    drop_abandoned(engine, other)
        yield name


def drop_abandoned(engine: Engine, name: str) -> None:
    """Drop a temporary or replaced corpus, unless the process that made it goes on."""
    with locked(engine, name.removesuffix(" old")) as ours:
        if ours is not None:
            stored_corpus.drop_named(engine, name, ABANDONED_PATIENCE)


@contextmanager
def locked(engine: Engine, name: str) -> Iterator[str | None]:
    """Hold the advisory lock of a name on a connection of its own; yield None if it is held."""
    with autocommit(engine) as connection:
        connection.execute(statements.BEGIN_TO_HOLD)
        row = connection.execute(statements.TRY_TO_LOCK_NAME, [name]).fetchone()
        # A statement with parameters, or a prepared one, keeps its snapshot until the next statement. So
        # the last one has no parameters and is not prepared.
        connection.execute(statements.HOLD_WITHOUT_LIMIT, prepare=False)
        try:
            yield name if row == (True,) else None
        finally:
            with suppress(psycopg.Error):  # a connection that is lost holds no lock
                connection.rollback()
