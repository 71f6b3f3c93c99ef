"""The object that a user holds: one corpus of a database."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Any, Concatenate, LiteralString, ParamSpec, Protocol, TypeVar

from psycopg import errors as pg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit, database_errors
from textsim_db.db.store import Store
from textsim_db.errors import (
    ConfigurationError,
    CorpusChanged,
    CorpusNotFound,
    DocumentError,
    DocumentNotFound,
    MeasureError,
    suggest_arguments,
)
from textsim_db.lazy_imports import lazy
from textsim_db.read import statements
from textsim_db.results import (
    Activity,
    AddReport,
    Candidate,
    ChangeReport,
    Cluster,
    Drift,
    Duplicate,
    Failure,
    Match,
    Pair,
    Problem,
    RecallReport,
    Statistics,
    Status,
)
from textsim_db.settings import (
    AUTO,
    CorpusConfig,
    check_callable,
    check_count,
    check_linkage,
    check_several,
    check_threshold,
)
from textsim_db.sketch import band_options
from textsim_db.sync import pending_log, sources
from textsim_db.sync.table_names import ColumnName, TableName, names_of
from textsim_db.write.document_inputs import Documents, Key, stream_documents

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from textsim_db.compare import verify
    from textsim_db.compare.verify import Criterion
    from textsim_db.diff import explanation
    from textsim_db.diff.explanation import Explanation
    from textsim_db.measures import by_name
    from textsim_db.read import (
        clusters,
        corpus_statistics,
        integrity,
        measure_recall,
        pairs,
        search,
    )
    from textsim_db.sketch import sketches
    from textsim_db.sketch.band_options import Option
    from textsim_db.sync import attach, drift
    from textsim_db.text import languages
    from textsim_db.write import bulk_load, prepared_batch, rebuild
else:
    verify = lazy("textsim_db.compare.verify", globals())
    explanation = lazy("textsim_db.diff.explanation", globals())
    by_name = lazy("textsim_db.measures.by_name", globals())
    clusters = lazy("textsim_db.read.clusters", globals())
    corpus_statistics = lazy("textsim_db.read.corpus_statistics", globals())
    integrity = lazy("textsim_db.read.integrity", globals())
    measure_recall = lazy("textsim_db.read.measure_recall", globals())
    pairs = lazy("textsim_db.read.pairs", globals())
    search = lazy("textsim_db.read.search", globals())
    sketches = lazy("textsim_db.sketch.sketches", globals())
    attach = lazy("textsim_db.sync.attach", globals())
    drift = lazy("textsim_db.sync.drift", globals())
    languages = lazy("textsim_db.text.languages", globals())
    bulk_load = lazy("textsim_db.write.bulk_load", globals())
    prepared_batch = lazy("textsim_db.write.prepared_batch", globals())
    rebuild = lazy("textsim_db.write.rebuild", globals())


INDEX_PATIENCE = "100ms"
"""How long a search that finds no index waits for those who write, before it does without."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class ManagedCorpus(Protocol):
    """What can be done with a corpus without computing a signature."""

    @property
    def name(self) -> str: ...  # noqa: D102 - those of Corpus
    @property
    def config(self) -> CorpusConfig: ...  # noqa: D102
    def __len__(self) -> int: ...
    def status(self) -> Status: ...  # noqa: D102
    def activity(self) -> Activity: ...  # noqa: D102
    def failures(self, last: int | None = None) -> list[Failure]: ...  # noqa: D102
    def retry_failures(self) -> int: ...  # noqa: D102
    def detach(self, table: str) -> None: ...  # noqa: D102


class Corpus:
    """A named collection of documents with one configuration; made by Database, not directly."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_index = False

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Corpus({self.name!r}, shingle={str(config.shingle)!r}, threshold={config.threshold}, "
            f"bands={config.bands}, rows={config.rows})"
        )

    @property
    def name(self) -> str:
        """The name that the corpus was created with."""
        return self._store.corpus.name

    @property
    def config(self) -> CorpusConfig:
        """Everything that the signatures of this corpus depend on."""
        return self._store.corpus.config

    def add_many(
        self,
        documents: Documents,
        progress: Callable[[AddReport], None] | None = None,
        *,
        key: str | None = None,
        text: str | None = None,
    ) -> AddReport:
        """Add documents, replacing those whose key is there already.

        documents is an iterable of (key, text) or a mapping of key to text. With key and text, the
        names of two columns, it is a data frame of pandas or Polars, any table with the Arrow
        PyCapsule interface (which needs PyArrow), or an iterable of records such as dicts. A key is
        a str, or an integer or a UUID, which are stored as their text.

        The documents are read in batches, and each batch is one transaction. A document whose words
        are unchanged is not written. A document that cannot be stored (NUL characters, lone
        surrogates, a key over 1,000 bytes, a text over 128 MiB, another type) is refused with its
        reason while the others go in. If several documents have the same key, the last one wins.
        progress is called after each batch with the report so far.

        A batch that meets a deadlock or a lost connection is written again, for some 10 seconds; so
        what others wrote under its keys in between may be replaced. One that takes longer than a
        time-out of the server is written in halves, down to single documents, which the error then
        names. Raises ConfigurationError for documents of another kind, such as a list of texts, and
        DatabaseError; batches before it are stored, and running the call again does
        only what is missing. Where the iterable itself fails, what it gave before that is stored.
        """
        check_callable(progress, "progress")
        stream = stream_documents(documents, key, text)
        with self._errors():
            return bulk_load.add_many(self._store, stream, progress)

    def add(self, key: Key, text: str) -> AddReport:
        """Add or replace one document; raises DocumentError where add_many would refuse it."""
        report = self.add_many([(key, text)])
        if report.refused:
            raise DocumentError(f'document "{report.refused[0].key}": {report.refused[0].reason}')
        return report

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove documents by key and return how many there were; unknown keys are skipped.

        Raises ConfigurationError for a single key, and DatabaseError; lost connections and time-outs
        are treated as in add_many.
        """
        check_several(keys, "remove() takes several keys, such as [key]")
        with self._errors():
            return bulk_load.remove(self._store, keys)

    def query(
        self,
        text: str,
        threshold: float | None = None,
        limit: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
    ) -> list[Match]:
        """Return the documents similar to a text, best first.

        similarity is the exact Jaccard similarity of the shingle sets. threshold is the corpus's
        own unless given; a lower one is allowed, but recall falls with it: a document of
        similarity s is found with probability 1 - (1 - s^rows)^bands. limit None means all.

        measure names another one of textsim_db.measures.MEASURES for the check and the order of
        the candidates, which are the same; similarity is then its value, of the shingles for
        containment (of the text in the document), overlap and dice, and of the words for the others.
        It needs a threshold, which is a maximum where smaller is closer. language, a code of ISO 639,
        limits the documents to those of a language, which the text is taken to be of as well.
        Raises DocumentError for a text that could not be stored, MeasureError, and
        ConfigurationError.
        """
        criterion, limit = self._criterion(measure, threshold, language), _limit(limit)
        return self._search(search.query, text, criterion)[:limit]

    def query_many(
        self,
        texts: Sequence[str],
        threshold: float | None = None,
        limit: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
    ) -> list[list[Match]]:
        """Return what query() returns for each of several texts, in a round of SQL for some hundreds.

        Raises DocumentError for a text that could not be stored, with its number.
        """
        check_several(texts, "query_many() takes several texts, such as [text]")
        if isinstance(texts, Mapping | Set):
            raise ConfigurationError(
                f"query_many() takes texts in an order, such as [text]; it got a {type(texts).__name__}"
            )
        criterion, limit = self._criterion(measure, threshold, language), _limit(limit)
        results = self._search(search.query_many, texts, criterion)
        return [matches[:limit] for matches in results]

    def neighbours(
        self,
        key: Key,
        threshold: float | None = None,
        limit: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
    ) -> list[Match]:
        """Return the documents similar to an indexed one, itself left out, best first.

        threshold, limit, measure and language are those of query(). Raises DocumentNotFound,
        MeasureError and ConfigurationError.
        """
        stored_key = self._key(key)
        criterion, limit = self._criterion(measure, threshold, language), _limit(limit)
        return self._search(search.neighbours, stored_key, criterion)[:limit]

    def explain(self, a: Key, b: Key) -> Explanation:
        """Compare two indexed documents by every measure and word by word.

        Of documents only the words are stored: they are shown in normal form. Raises
        DocumentNotFound, and MeasureError for millions of words with little in common.
        """
        sides = [self._search(search.side_of, key) for key in (self._key(a), self._key(b))]
        return explanation.explain_sides(*sides)

    def candidates(self, text: str, language: str | None = None) -> list[Candidate]:
        """Return the documents that share a bucket with a text, unverified, most buckets first.

        language is that of query(). Raises DocumentError and ConfigurationError.
        """
        return self._search(search.candidates_of, text, self._language(language))

    def pairs(
        self,
        threshold: float | None = None,
        measure: str = "jaccard",
        language: str | None = None,
    ) -> Generator[Pair, None, None]:
        """Yield the pairs of similar documents, a < b, each once and verified exactly.

        threshold, recall and measure are those of query(); with another measure than jaccard, all
        pairs of a bucket are compared, however many they are. language limits both documents.
        Raises ConfigurationError, and MeasureError for a measure that depends on the order, which
        containment does. The pairs come from one snapshot, whose transaction stays open until the
        iterator is finished or closed.
        """
        criterion = self._criterion(measure, threshold, language)
        if not criterion.measure.is_symmetric:
            raise MeasureError(f"{measure} depends on the order of two documents; try overlap")

        return self._stream(pairs.pairs, criterion)

    def clusters(
        self,
        threshold: float | None = None,
        linkage: str = "single",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
    ) -> Generator[Cluster, None, None]:
        """Yield the clusters of similar documents, two keys or more, the largest first.

        Only verified pairs connect documents. linkage "single": the connected components of the
        pairs, in which chains of small steps may join strangers. "complete": every two members are
        a pair; needs memory for all pairs. "kept": one member is kept, and every other one is a
        pair with it; documents are taken in order of rank(key), the lowest first, or of their keys.
        A cluster's weakest is the similarity of the weakest link that holds it together; where
        more than 256 different documents share a bucket, of links that do, if not the strongest.
        language limits the documents.
        """
        criterion, how = self._criterion("jaccard", threshold, language), check_linkage(linkage)
        check_callable(rank, "rank")

        return self._stream(clusters.clusters, criterion, how, rank)

    def duplicates(
        self,
        threshold: float | None = None,
        linkage: str = "kept",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
    ) -> Generator[Duplicate, None, None]:
        """Yield what to remove so that one document of each cluster is left.

        The one with the lowest rank(key), or else the lowest key, is kept. With linkage "kept"
        every document that is removed has been verified at or above the threshold against the very
        one that is kept in its place; with the others, those of clusters(), its similarity to that
        may be lower. language limits the documents.
        """
        criterion, how = self._criterion("jaccard", threshold, language), check_linkage(linkage)
        check_callable(rank, "rank")

        return self._stream(clusters.duplicates, criterion, how, rank)

    def measure_recall(
        self,
        threshold: float | None = None,
        sample: int = 1000,
        seed: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RecallReport:
        """Compare a random sample of the documents with all, and report what would be missed.

        That is by brute force, on the shingles themselves. progress is called with the documents
        done, and their number. Raises ConfigurationError.
        """
        checked = self._threshold(threshold)
        check_callable(progress, "progress")
        check_count(sample, "sample", 1, 2**31)
        if seed is not None:
            check_count(seed, "seed", 0, 2**63 - 1)
        return self._search(measure_recall.measure_recall, checked, sample, seed, progress)

    def plan(
        self,
        threshold: float | None = None,
        recall: float | None = None,
        num_hashes: int | None = None,
        sample: int = 1000,
        seed: int | None = None,
    ) -> list[Option]:
        """Return the possible bandings, with the candidates expected of each in this corpus.

        How similar its documents are is measured on a sample. What is not given is that of the
        corpus. Raises ConfigurationError.
        """
        threshold = self._threshold(threshold)
        recall = self.config.recall if recall is None else recall
        num_hashes = self.config.num_hashes if num_hashes is None else num_hashes
        band_options.choose(threshold, recall, num_hashes)  # what cannot be is told before the work
        report = self.measure_recall(threshold, sample, seed)
        return band_options.options(
            threshold, recall, num_hashes, report.words, measure_recall.distribution(report)
        )

    def statistics(
        self,
        words: int = 20,
        sample: int = 1000,
        seed: int = 1,
        progress: Callable[[int, int], None] | None = None,
        language: str | None = None,
    ) -> Statistics:
        """Count what is in the corpus: documents, words, similarities, buckets, bytes.

        words: so many of the most frequent ones are named. The similarities are those of a sample
        of the documents to all their candidates. All documents are read; progress is called with
        those done, and their number. language limits the documents. Raises ConfigurationError.
        """
        limit = self._language(language)
        check_callable(progress, "progress")
        check_count(words, "words", 0, 2**31)
        check_count(sample, "sample", 0, 2**31)
        check_count(seed, "seed", 0, 2**63 - 1)
        return self._search(
            corpus_statistics.statistics,
            words,
            corpus_statistics.Sample(sample, seed),
            limit,
            progress,
        )

    def idf_weights(self) -> dict[str, float]:
        """Return the inverse document frequency of each word, ln(documents / those that have it).

        They are the weights that textsim_db.measures.weighted_jaccard takes. All documents are read.
        """
        frequencies, documents = self._search(corpus_statistics.document_frequencies)
        return {word: log(documents / count) for word, count in frequencies.items()}

    def signature(self, text: str) -> npt.NDArray[np.int16]:
        """Return the signature that would be stored: int16, (num_hashes,), or (0,) without words.

        Raises DocumentError for a text that could not be stored.
        """
        return sketches.signature(text, self.config)

    def buckets(self, text: str) -> npt.NDArray[np.int32]:
        """Return the buckets that would be stored: int32, (bands,), or (0,) without words.

        Raises DocumentError for a text that could not be stored.
        """
        return sketches.buckets(text, self.config)

    def check(self, progress: Callable[[int], None] | None = None) -> list[Problem]:
        """Check every invariant of the stored rows and return what is wrong.

        progress is called with the number of documents checked so far.
        """
        check_callable(progress, "progress")
        return self._read(integrity.check, progress)

    def attach(
        self,
        table: TableName,
        key: ColumnName,
        text: ColumnName,
        mode: str = "queue",
        progress: Callable[[int], None] | None = None,
    ) -> ChangeReport:
        """Keep a table indexed from now on, and index what it holds.

        table is a name as SQL takes it, a SQLAlchemy table or a mapped class; key and text are
        names of columns, or columns. The key must be unique by itself and of an integer type,
        uuid, text or varchar. With mode "queue" a worker indexes what changes (Database.worker);
        with "inline" the row is found in the very transaction that writes it. progress is called
        with the number of rows done. Raises ConfigurationError for a table that cannot be
        attached, with the reason, and where it is attached but this role cannot index it, such as
        for row security. The rows are indexed after the table is attached: where that is interrupted,
        a worker does the rest.
        """
        check_callable(progress, "progress")
        with self._current():
            names = names_of(table, key, text)
            return attach.attach_and_index(self._store, names, mode, progress)

    def detach(self, table: TableName) -> None:
        """Stop keeping a table indexed; its documents stay. Raises ConfigurationError."""
        with self._current():
            sources.detach(self._store, table)

    def status(self) -> Status:
        """Return how many documents are indexed, pending and set aside."""
        with self._current():
            return sources.status(self._store)

    def activity(self) -> Activity:
        """Return how far behind its tables the corpus is, and how much was ever written to it."""
        return self._read(sources.activity)

    def failures(self, last: int | None = None) -> list[Failure]:
        """Return the documents that were set aside, with the reason for each, or the last of them."""
        checked = _limit(last, "last")
        with self._current():
            return pending_log.failures(self._store, checked)

    def retry_failures(self) -> int:
        """Have workers try again what was set aside, and return how many documents that is."""
        with self._current():
            return pending_log.retry_failures(self._store)

    def reconcile(self, progress: Callable[[int], None] | None = None) -> ChangeReport:
        """Make the corpus equal to its attached tables, by key and text.

        It mends what triggers have missed: replication, disabled triggers, partitions and tables
        that are gone. It also gives word ids to documents that wait for them. progress is called
        with the number of rows compared.
        """
        check_callable(progress, "progress")
        with self._current():
            return drift.reconcile(self._store, progress)

    def drift(self) -> Generator[Drift, None, None]:
        """Yield what reconcile() would mend; changes that are pending are among it."""
        with self._current():
            yield from drift.drift(self._store)

    @suggest_arguments
    def rebuild(
        self,
        shingle: str | None = None,
        threshold: float | None = None,
        recall: float | None = None,
        num_hashes: int | None = None,
        seed: int | None = None,
        bands: int | None = None,
        rows: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        """Build the corpus anew with other settings, those not given as they are, while it is used.

        Searches use the old one until the new one is complete; then it is put in its place in one
        transaction, with the attached tables and the views of textsim.create_view. Writers go on as
        well, except in the moments of the last step. Other Corpus objects of it are brought up to date
        by their next search; a write through one of them raises CorpusChanged once. progress is called
        with the documents done, and their number. Without settings the corpus is built anew as it is,
        which numbers its documents from 1. Returns False if the settings given are what they were.
        Raises ConfigurationError, also for a view that cannot read the new corpus instead, and
        CorpusBusy while another session rebuilds the corpus; if it fails or is interrupted, everything
        is as before.
        """
        check_callable(progress, "progress")
        settings = {
            "shingle": shingle,
            "threshold": threshold,
            "recall": recall,
            "num_hashes": num_hashes,
            "seed": seed,
            "bands": bands,
            "rows": rows,
        }
        with self._current():
            config = self.config.changed(**settings)
            if config == self.config and any(value is not None for value in settings.values()):
                return False
            rebuilt = rebuild.rebuild(self._store, config, progress)
            self._store = replace(self._store, corpus=rebuilt)
        return True

    def drop(self) -> None:
        """Remove the corpus with all its documents; raises CorpusNotFound if it is gone."""
        with self._current():
            stored_corpus.drop(self._store.engine, self._store.corpus)

    def __len__(self) -> int:
        return int(self._read(_value, statements.COUNT_DOCUMENTS))

    def __bool__(self) -> bool:
        # An empty corpus is still a corpus.
        return True

    def __contains__(self, key: object) -> bool:
        stored = prepared_batch.possible_key(key)
        return stored is not None and bool(self._read(_value, statements.HAS_DOCUMENT, stored))

    def _threshold(self, threshold: float | None) -> float:
        return self.config.threshold if threshold is None else check_threshold(threshold)

    def _key(self, key: Key) -> str:
        stored = prepared_batch.possible_key(key)
        if stored is None:
            raise DocumentNotFound(f'corpus "{self.name}" has no document {key!r}')
        return stored

    def _criterion(self, measure: str, threshold: float | None, language: str | None) -> Criterion:
        by = by_name.measure_of(measure)
        limit = self._language(language)
        if by is by_name.JACCARD:
            return verify.Criterion(by, self._threshold(threshold), limit)
        if threshold is None:
            raise MeasureError(f"{by.name} needs a threshold: the corpus's is one of jaccard")
        return verify.Criterion(by, by.check_threshold(threshold), limit)

    def _language(self, language: str | None) -> str | None:
        if language is None:
            return None
        if self.config.language is None:
            raise ConfigurationError(
                f'the languages of the documents of corpus "{self.name}" are not identified; '
                f'a corpus created with language="{AUTO}" does that'
            )
        return languages.check_language(language)

    def _search(
        self,
        read: Callable[Concatenate[Store, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Read from a corpus that has its band index."""

        def search(store: Store) -> Result:
            if not self._has_index:
                self._build_index()
            return read(store, *args, **kwargs)

        return self._read(search)

    def _build_index(self) -> None:
        """Build the band index that an interrupted bulk load has left to be built.

        If a load is under way, it builds the index itself: a search is slow until then, but right.
        """
        with suppress(pg.Error):
            stored_corpus.build_band_index(self._store.engine, self._store.corpus, INDEX_PATIENCE)
            self._has_index = True

    def _read(
        self,
        read: Callable[Concatenate[Store, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Call a function that reads, and again whenever the corpus was rebuilt meanwhile."""
        while True:
            with suppress(CorpusChanged), self._errors():
                return read(self._store, *args, **kwargs)

    def _stream(
        self,
        read: Callable[Concatenate[Store, Parameters], Generator[Result, None, None]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Generator[Result, None, None]:
        """Yield what a function reads; begin again if the corpus was rebuilt before the first item.

        After the first item a transaction of the reader protects the tables: no rebuild drops them.
        """
        while True:
            is_begun = False
            try:
                with self._errors(), closing(read(self._store, *args, **kwargs)) as items:
                    sources.warn_unindexed(self._store)
                    for item in items:
                        is_begun = True
                        yield item
            except CorpusChanged:
                if is_begun:
                    raise
            else:
                return

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with database_errors():
            try:
                yield
            except (pg.UndefinedTable, pg.ObjectNotInPrerequisiteState) as error:
                if self._refresh(error):
                    raise CorpusChanged(
                        f'corpus "{self.name}" was rebuilt with other settings meanwhile; try again'
                    ) from error
                raise

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Work for what the corpus is now, where its old number would find nothing and not fail."""
        with self._errors():
            self._refresh()
            yield

    def _refresh(self, cause: Exception | None = None) -> bool:
        """Read the configuration again where the corpus was rebuilt, and say whether it was."""
        try:
            before = self._store.corpus
            stored = stored_corpus.load(self._store.engine, before.name, before.is_checked)
        except CorpusNotFound:
            raise CorpusNotFound(self.name) from cause
        if stored.origin != self._store.corpus.origin:  # another one by the same name
            raise CorpusNotFound(self.name) from cause
        changed = stored.id != self._store.corpus.id
        self._store = replace(self._store, corpus=stored)
        return changed


def _limit(limit: int | None, what: str = "limit") -> int | None:
    return None if limit is None else check_count(limit, what, 1, 2**63 - 1)


def _value(store: Store, statement: LiteralString, *parameters: str) -> Any:
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(statement), parameters).fetchone()
    assert row is not None
    return row[0]


def load_rooms() -> None:
    """Import the rooms that add and search, which a new corpus enters next.

    An interrupt during an import can end the process in many ways, so nothing is stored before it.
    """
    for room in (bulk_load, clusters, search):
        room.__name__  # noqa: B018 - reading an attribute imports the module
