"""Opens the store of a corpus in a task, which may run in a process that has run other tasks."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import database_errors, open_engine
from textsim_db.db.store import Store

SPARK_APPLICATION_NAME = "textsim-db spark"


@dataclass(frozen=True, slots=True)
class Target:
    """A corpus that the tasks of one call of write() or read() open."""

    address: str = field(repr=False)
    """The address of the database, with its password, so it is not shown."""
    corpus: str
    """The name of the corpus."""
    call: str = field(default_factory=lambda: secrets.token_hex(8))
    """Tells this call from the other calls."""

    @contextmanager
    def opened(self) -> Generator[Store, None, None]:
        """Lend the store of the corpus, and close its connections afterwards.

        Spark runs many tasks in one process. They share the dictionary's cache.
        """
        engine, dictionary = _of_call(self.address, self.call)
        try:
            with database_errors():
                yield Store(engine, dictionary, stored_corpus.load(engine, self.corpus))
        finally:
            engine.dispose()


# Another call opens another cache: the database of an address may have been created again meanwhile.
@lru_cache(maxsize=1)
def _of_call(address: str, call: str) -> tuple[Engine, Dictionary]:
    engine = open_engine(address, SPARK_APPLICATION_NAME)
    return engine, Dictionary(engine)
