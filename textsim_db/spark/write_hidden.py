"""The hidden corpus that write() fills, and how it gets its name.

Its hidden name follows from the name, the settings and the documents. So if a call of write() dies, a
second call with the same arguments finds the corpus and goes on. A call with other arguments, a
rebuild and `textsim dedupe` drop it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit, read_rows
from textsim_db.db.retries import Attempts
from textsim_db.db.statements import HAS_DOCUMENTS
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import CorpusExists, CorpusNotFound
from textsim_db.settings import CorpusConfig
from textsim_db.spark import statements
from textsim_db.spark.write_survey import FrameSurvey
from textsim_db.write.copy_corpus import Copy, CorpusCopier, Cursor, NewIds
from textsim_db.write.rebuild import drop_replaced, replace_corpus
from textsim_db.write.rebuild_without_twins import TwinCheck
from textsim_db.write.remove_documents import remove_within


def digits_of(
    name: str, old: StoredCorpus | None, config: CorpusConfig, survey: FrameSurvey
) -> str:
    """Return the 16 hexadecimal digits of the hidden name, which all arguments determine.

    old: the empty corpus that the hidden corpus will replace, or None.
    """
    arguments = (name, old and old.id, config, survey)
    return hashlib.sha256(repr(arguments).encode()).hexdigest()[:16]


def open_hidden(
    engine: Engine, name: str, config_of_new: Callable[[], CorpusConfig]
) -> tuple[StoredCorpus, bool]:
    """Open the hidden corpus of this name or create it; return it, and whether it was there.

    config_of_new is called only if the corpus is created, because an exact corpus learns first. A new
    corpus has no band index until it is complete.
    """
    try:
        return stored_corpus.load(engine, name), True
    except CorpusNotFound:
        hidden = stored_corpus.create(engine, name, config_of_new())
    stored_corpus.drop_band_index(engine, hidden)
    return hidden, False


def count_documents(engine: Engine, corpus: StoredCorpus) -> int:
    """Return the number of documents in a corpus."""
    ((count,),) = read_rows(engine, corpus.statement(statements.COUNT_STORED_DOCUMENTS))
    return int(count)


def has_documents(engine: Engine, corpus: StoredCorpus) -> bool:
    """Return whether a corpus has documents."""
    return read_rows(engine, corpus.statement(HAS_DOCUMENTS)) == [(True,)]


def take_name(engine: Engine, hidden: StoredCorpus, name: str) -> None:
    """Give a hidden corpus a name that no corpus has; raises CorpusExists if another one has it."""
    for attempt in Attempts():
        with attempt, autocommit(engine) as connection:
            parameters = {"name": name, "id": hidden.id}
            row = connection.execute(statements.TAKE_NAME, parameters).fetchone()
    if row is None:
        raise CorpusExists(
            f'corpus "{name}" was created while the documents were written; drop it or choose another '
            "name, and write again"
        )


def replace_empty(store: Store, old: StoredCorpus) -> None:
    """Let the hidden corpus of the store replace the corpus that was empty when the load began.

    The attached tables and views of the old corpus move to the hidden one, and so do documents that it
    got meanwhile. They are newer than the DataFrame, so they replace documents with the same key.
    """
    copier = _CopierOfNewer(old, store)
    check = TwinCheck(old, store, copier)
    check.compare_all()
    replace_corpus(Store(store.engine, store.dictionary, old), copier, check)
    drop_replaced(store.engine, old)


class _CopierOfNewer(CorpusCopier):
    """Copies documents to a corpus that may have other documents with their keys."""

    def _write(self, cursor: Cursor, copy: Copy) -> NewIds:
        remove_within(cursor, self.new, [row.key for row in copy.rows])
        return super()._write(cursor, copy)
