"""Writes the documents of a DataFrame into a corpus of PostgreSQL.

survey -> hidden corpus -> tasks store documents and band rows -> index -> the corpus takes its name.
An existing corpus with documents gets them directly.

The survey counts the rows, and refuses two rows of one key. The hidden name follows from the name, the
settings and the documents. So if a call of write() dies, a second call with the same arguments finds
the corpus and goes on. A call with other arguments, a rebuild and `textsim dedupe` drop it. The driver
holds the lock of the hidden name. Tasks write with the transactions of add_many(), and a task that runs
again knows stored documents by their keys.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)
from sqlalchemy import Engine

from textsim_db.base.run_ahead import MAX_WEIGHT
from textsim_db.corpus.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.connections import Cursor
from textsim_db.db.dictionary import Dictionaries
from textsim_db.db.engine import autocommit, database_errors, read_rows
from textsim_db.db.retries import Attempts
from textsim_db.db.statements import HAS_DOCUMENTS
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import (
    ConfigurationError,
    CorpusExists,
    CorpusNotFound,
    InputError,
    suggest_settings,
)
from textsim_db.read.boilerplate_values import without_words
from textsim_db.results import AddReport, Refusal
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import SETTINGS, CorpusConfig, CorpusSettings
from textsim_db.sketch.choose_common_shingles import (
    FEWEST_DOCUMENTS,
    SAMPLE_DOCUMENTS,
    learn_common,
    learns,
)
from textsim_db.spark import read_corpus
from textsim_db.spark.columns import FrameColumns
from textsim_db.spark.read_corpus import Target
from textsim_db.spark.write_task import OUTPUT, WriteTask, task_into_existing, task_into_hidden
from textsim_db.text.stop_words import with_lists
from textsim_db.write.copy_corpus import Copy, CorpusCopier, NewIds
from textsim_db.write.input_batches import in_batches
from textsim_db.write.prepare_batches import prepare
from textsim_db.write.rebuild import TwinCheck, drop_replaced, lock_of_rebuilds, replace_corpus
from textsim_db.write.remove_documents import remove_within
from textsim_db.write.temporary_corpora import check_not_reserved, temporary_name
from textsim_db.write.vacuum_loads import settle

log = logging.getLogger(__name__)

WRITING_TASKS = 32
"""Tasks that write at once. Each needs two connections; a server has 100 by default."""
MAX_WRITING_TASKS = 10_000
SAMPLE_CHARACTERS = 8 * MAX_WEIGHT
"""The characters from which an exact corpus learns at most, as in Corpus.add_many()."""


@suggest_settings(*SETTINGS)
def write(
    df: DataFrame,
    url: str | None,
    corpus: str,
    key: str = "id",
    text: str = "text",
    *,
    scope: str | None = None,
    writers: int = WRITING_TASKS,
    **settings: Any,
) -> AddReport:
    """Write the documents of a DataFrame into a corpus, with the result of Corpus.add_many().

    If the corpus does not exist or is empty, the documents go into a hidden corpus, which takes the
    name when it is complete. Until then nobody sees any of them. If the call fails or is killed, a
    second call with the same arguments goes on where it stopped. An existing corpus with documents
    gets them directly, in transactions of up to 5,000 documents: documents with stored keys are
    replaced.

    Args:
        df: the documents. Spark may compute it several times, so it must have the same rows each time.
        url: the address of the database, for the driver and for all executors. A password may stand in
            the file that PGPASSFILE names on each of them, instead of the address. None takes
            TEXTSIM_DATABASE_URL or the embedded PostgreSQL, which only executors of this machine reach.
        corpus: the name of the corpus.
        key: the column of the keys: strings or whole numbers.
        text: the column of the texts.
        scope: the column of the scopes, if the corpus is scoped. Its values become text.
        writers: the tasks that write at once. Each has two connections to the server.
        settings: the settings of a new corpus, as in Database.create_corpus(). An existing corpus must
            have the same settings, unless none are given.

    Raises:
        ConfigurationError: a column is missing or has another type, two rows have the same key, a
            setting is out of range, or a scope is given and the corpus is not scoped.
        InputError: the DataFrame had other rows when it was computed again.
        CorpusExists: the corpus exists with other settings, or was created meanwhile.
        CorpusBusy: another session writes the same documents, or rebuilds the corpus.
    """
    check_not_reserved(corpus)
    stored_corpus.check_name(corpus)
    check_count(writers, "writers", 1, MAX_WRITING_TASKS)
    columns = FrameColumns(key, text, scope)
    columns.check(df)
    documents = df.select(*columns.documents())
    with connect(url) as database, database_errors():
        existing, config = _target(database.engine, corpus, settings)
        config.check_scope(corpus, scope is not None)
        load = _Load(database.engine, database.url, corpus, documents, survey(documents), writers)
        if existing is None:
            return load.into_hidden(config, None)
        if has_documents(database.engine, existing):
            return load.into_existing(existing)
        with lock_of_rebuilds(Store(database.engine, Dictionaries(database.engine), existing)):
            return load.into_hidden(config, existing)


def _target(
    engine: Engine, name: str, settings: dict[str, Any]
) -> tuple[StoredCorpus | None, CorpusConfig]:
    """Return the corpus of this name if it exists, and the configuration to write with."""
    wanted = with_lists(CorpusSettings(**settings))
    try:
        existing = stored_corpus.load(engine, name)
    except CorpusNotFound:
        existing = None
    if existing is not None and settings:
        wanted.check_same(name, existing.config)
    config = wanted.complete() if existing is None else existing.config
    if config.is_unique:
        raise ConfigurationError(
            f'corpus "{name}" is unique, and write() keeps no near-duplicates out: add the documents '
            "with Corpus.add_many()"
        )
    return existing, config


@contextmanager
def _noting_how_to_go_on(name: str) -> Iterator[None]:
    """Note in an error of Spark what it leaves behind."""
    try:
        yield
    except Exception as error:
        error.add_note(
            f'corpus "{name}" has none of the documents; a second write() with the same arguments goes '
            "on where this one stopped"
        )
        raise


@dataclass(frozen=True, slots=True)
class _Load:
    """The documents of one call of write(), and where they go."""

    engine: Engine
    address: str
    name: str
    documents: DataFrame
    survey: FrameSurvey
    writers: int

    def into_existing(self, corpus: StoredCorpus) -> AddReport:
        """Add or replace documents in a corpus that others may use meanwhile."""
        report = self._run(task_into_existing(Target(self.address, self.name)))
        settle(Store(self.engine, Dictionaries(self.engine), corpus), report.added)
        return report

    def into_hidden(self, config: CorpusConfig, old: StoredCorpus | None) -> AddReport:
        """Fill a hidden corpus, and give it the name; old: the empty corpus that has the name."""
        digits = digits_of(self.name, old, config, self.survey)
        with temporary_name(self.engine, digits) as hidden_name:
            hidden, is_resumed = open_hidden(
                self.engine, hidden_name, lambda: self._learned(config)
            )
            log.info(
                "corpus %s: %s %s documents in hidden corpus %s",
                self.name,
                "going on with" if is_resumed else "writing",
                self.survey.rows,
                hidden.id,
                extra={"corpus": self.name, "documents": self.survey.rows},
            )
            with _noting_how_to_go_on(self.name):
                report = self._run(task_into_hidden(Target(self.address, hidden_name), is_resumed))
            store = Store(self.engine, Dictionaries(self.engine), hidden)
            stored_corpus.build_band_index(self.engine, hidden)
            settle(store, report.added)
            self._check(report, hidden)
            report.without_words = without_words(store)[0]
            if old is None:
                take_name(self.engine, hidden, self.name)
            else:
                replace_empty(store, old)
        return report

    def _learned(self, config: CorpusConfig) -> CorpusConfig:
        """Return the configuration with common shingles, if the corpus learns them."""
        if not learns(config) or self.survey.rows < FEWEST_DOCUMENTS:
            return config
        share = min(
            SAMPLE_DOCUMENTS / self.survey.rows,
            SAMPLE_CHARACTERS / max(self.survey.characters, 1),
        )
        rows = sample(self.documents, share).collect()
        batches = (prepare(batch, config) for batch in in_batches(map(tuple, rows)))
        return learn_common((batch.sketches.tokens for batch in batches), config)

    def _run(self, task: WriteTask) -> AddReport:
        report = AddReport()
        for row in self.documents.coalesce(self.writers).mapInArrow(task, OUTPUT).collect():
            if row["reason"] is not None:
                report.refused.append(Refusal(row["refused"], row["reason"]))
            report.added += row["added"]
            report.replaced += row["replaced"]
            report.unchanged += row["unchanged"]
            report.without_words += row["without_words"]
        report.refused.sort()
        return report

    def _check(self, report: AddReport, hidden: StoredCorpus) -> None:
        """Drop the hidden corpus and raise InputError, if the DataFrame gave other rows later."""
        stored = count_documents(self.engine, hidden)
        if report.received == self.survey.rows and stored == report.added:
            return
        stored_corpus.drop_named(self.engine, hidden.name)
        raise InputError(
            f"the DataFrame had {self.survey.rows} rows when they were counted, and then "
            f"{report.received} rows, of which {stored} documents were stored: it gives other rows or "
            "keys each time it is computed; save it as a table first, and write the table"
        )


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
        keys = ", ".join(f'"{repeated["key"][:40]}"' for repeated in doubled)
        more = ", ..." if row[3] > len(doubled) else ""
        raise ConfigurationError(
            f"{row[3]} keys have several rows: {keys}{more}; a DataFrame has no order, so none of the "
            "rows is the last: keep one row of each key, for example with dropDuplicates"
        )
    return FrameSurvey(row[0] or 0, row[1] or 0, row[2] or 0)


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
    ((count,),) = read_rows(engine, corpus.statement(read_corpus.COUNT_STORED_DOCUMENTS))
    return int(count)


def has_documents(engine: Engine, corpus: StoredCorpus) -> bool:
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
    replace_corpus(replace(store, corpus=old), copier, check)
    drop_replaced(store.engine, old)


class _CopierOfNewer(CorpusCopier):
    """Copies documents to a corpus that may have other documents with their keys."""

    def _write(self, cursor: Cursor, copy: Copy) -> NewIds:
        remove_within(cursor, self.new, [row.key for row in copy.rows])
        return super()._write(cursor, copy)
