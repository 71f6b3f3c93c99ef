"""The hidden corpus that write() fills from a surveyed DataFrame, and how it gets its name.

The survey counts the rows, and refuses two rows of one key. The hidden name follows from the name, the
settings and the documents. So if a call of write() dies, a second call with the same arguments finds
the corpus and goes on. A call with other arguments, a rebuild and `textsim dedupe` drop it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit, read_rows
from textsim_db.db.retries import Attempts
from textsim_db.db.statements import HAS_DOCUMENTS
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, CorpusExists, CorpusNotFound
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.spark import read_corpus
from textsim_db.write.copy_corpus import Copy, CorpusCopier, Cursor, NewIds
from textsim_db.write.rebuild import drop_replaced, replace_corpus
from textsim_db.write.rebuild_without_twins import TwinCheck
from textsim_db.write.remove_documents import remove_within

SHOWN_DOUBLED = 5


class FrameSurvey(NamedTuple):
    """The size of a DataFrame, and a hash of its contents."""

    rows: int
    characters: int
    """The length of all texts."""
    contents: int
    """A hash of all keys, texts and scopes, which does not depend on their order and partitions."""


def survey(documents: DataFrame) -> FrameSurvey:
    """Survey rows (key, text, scope) in one job that shuffles no texts.

    Raises ConfigurationError with some keys, if two rows have the same key: a DataFrame has no order, so
    neither of them is the last.
    """
    by_key = documents.groupBy("key").agg(
        F.count("*").alias("rows"),
        F.sum(F.length("text")).alias("characters"),
        F.bit_xor(F.xxhash64("text", "scope")).alias("contents"),
    )
    is_doubled = (F.col("rows") > 1) & F.col("key").isNotNull()
    row = by_key.agg(
        F.sum("rows"),
        F.sum("characters"),
        F.bit_xor(F.xxhash64("key", "contents")),
        F.count_if(is_doubled),
    ).first()
    assert row is not None
    if row[3]:
        doubled = by_key.filter(is_doubled).orderBy("key").limit(SHOWN_DOUBLED).collect()
        raise ConfigurationError(_several_rows([repeated["key"] for repeated in doubled], row[3]))
    return FrameSurvey(row[0] or 0, row[1] or 0, row[2] or 0)


def _several_rows(keys: list[str], count: int) -> str:
    shown = ", ".join(f'"{key[:40]}"' for key in keys) + (", ..." if count > len(keys) else "")
    return (
        f"{count} keys have several rows: {shown}; a DataFrame has no order, so none of the rows is the "
        "last: keep one row of each key, for example with dropDuplicates"
    )


def sample(documents: DataFrame, share: float) -> DataFrame:
    """Return a share of the documents, chosen by the hashes of their keys: the same in each run."""
    if share >= 1:
        return documents
    return documents.filter(F.xxhash64("key") < F.lit(int(share * 2**64) - 2**63))


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
    ((count,),) = read_rows(engine, corpus.statement(read_corpus.COUNT_STORED_DOCUMENTS))
    return int(count)


def has_documents(engine: Engine, corpus: StoredCorpus) -> bool:
    """Return whether a corpus has documents."""
    return read_rows(engine, corpus.statement(HAS_DOCUMENTS)) == [(True,)]


def take_name(engine: Engine, hidden: StoredCorpus, name: str) -> None:
    """Give a hidden corpus a name that no corpus has; raises CorpusExists if another one has it."""
    for attempt in Attempts():
        with attempt, autocommit(engine) as connection:
            parameters = {"name": name, "id": hidden.id}
            row = connection.execute(read_corpus.TAKE_NAME, parameters).fetchone()
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
