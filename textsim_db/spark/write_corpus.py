"""Writes the documents of a DataFrame into a corpus of PostgreSQL.

survey -> hidden corpus -> tasks store documents and band rows -> index -> the corpus takes its name.
An existing corpus with documents gets them directly.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from sqlalchemy import Engine

from textsim_db.corpus.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import database_errors
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, CorpusNotFound, InputError, suggestion
from textsim_db.read.boilerplate_values import SAMPLE_DOCUMENTS
from textsim_db.results import AddReport, Refusal
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import SETTINGS, CorpusConfig, CorpusSettings
from textsim_db.sketch.choose_common_shingles import FEWEST_DOCUMENTS, learn_common, learns
from textsim_db.spark.columns import FrameColumns
from textsim_db.spark.read_corpus import Target
from textsim_db.spark.write_hidden import (
    FrameSurvey,
    count_documents,
    digits_of,
    has_documents,
    open_hidden,
    replace_empty,
    sample,
    survey,
    take_name,
)
from textsim_db.spark.write_task import OUTPUT, WriteTask, task_into_existing, task_into_hidden
from textsim_db.text.run_ahead import MAX_WEIGHT
from textsim_db.text.stop_words import with_lists
from textsim_db.write.document_inputs import in_batches
from textsim_db.write.prepare_batches import prepare
from textsim_db.write.rebuild import lock_of_rebuilds
from textsim_db.write.temporary_corpora import check_not_reserved, temporary_name
from textsim_db.write.vacuum_loads import settle

log = logging.getLogger(__name__)

WRITING_TASKS = 32
"""Tasks that write at once. Each needs two connections; a server has 100 by default."""
MAX_WRITING_TASKS = 10_000
SAMPLE_CHARACTERS = 8 * MAX_WEIGHT
"""The characters from which an exact corpus learns at most, as in Corpus.add_many()."""


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
        with lock_of_rebuilds(Store(database.engine, Dictionary(database.engine), existing)):
            return load.into_hidden(config, existing)


def _target(
    engine: Engine, name: str, settings: dict[str, Any]
) -> tuple[StoredCorpus | None, CorpusConfig]:
    """Return the corpus of this name if it exists, and the configuration to write with."""
    wanted = with_lists(_checked(settings))
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


def _checked(settings: dict[str, Any]) -> CorpusSettings:
    for name in settings:
        if name not in SETTINGS:
            raise ConfigurationError(
                f'"{name}" is not a setting of a corpus; expected one of {", ".join(SETTINGS)}'
                + suggestion(name, SETTINGS)
            )
    return CorpusSettings(**settings)


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
        settle(Store(self.engine, Dictionary(self.engine), corpus), report.added)
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
            store = Store(self.engine, Dictionary(self.engine), hidden)
            stored_corpus.build_band_index(self.engine, hidden)
            settle(store, report.added)
            self._check(report, hidden)
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
        """Run a task on each partition, and return the sum of their reports."""
        report = AddReport()
        for row in self.documents.coalesce(self.writers).mapInArrow(task, OUTPUT).collect():
            if row["reason"] is not None:
                report.refused.append(Refusal(row["refused"], row["reason"]))
            report.added += row["added"]
            report.replaced += row["replaced"]
            report.unchanged += row["unchanged"]
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
