"""Corpus: the object through which a user adds, searches and compares documents."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import log
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    LiteralString,
    ParamSpec,
    Protocol,
    Unpack,
    overload,
)

from textsim_db.db import stored_corpus
from textsim_db.db.current_store import CurrentStore
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.errors import (
    ConfigurationError,
    DatabaseError,
    DocumentError,
    DocumentNotFound,
    DuplicateError,
    MeasureError,
    RecipeError,
    suggest_settings,
)
from textsim_db.frames.arrow_results import ResultColumns, Results
from textsim_db.frames.read_frame import ArrowTable
from textsim_db.lazy_imports import lazy
from textsim_db.progress_bar import shown
from textsim_db.read import statements
from textsim_db.results import (
    Activity,
    AddReport,
    Boilerplate,
    Candidate,
    ChangeReport,
    Cluster,
    ClusterEvent,
    Contamination,
    Contradiction,
    Drift,
    Duplicate,
    Failure,
    InspectedCluster,
    Inspection,
    Judgement,
    Match,
    Member,
    Pair,
    Passage,
    PassageList,
    Problem,
    QueryMatch,
    RecallReport,
    ScopeStatus,
    SharedPassage,
    Statistics,
    Status,
)
from textsim_db.settings import (
    AUTO,
    CHANGEABLE,
    CorpusConfig,
    Existing,
    Settings,
    check_callable,
    check_count,
    check_duration,
    check_flag,
    check_linkage,
    check_several,
    check_threshold,
)
from textsim_db.show.result_list import ResultList
from textsim_db.sketch import cost_of_bands
from textsim_db.sync import pending_log, sources
from textsim_db.sync.table_names import ColumnName, TableName, names_of
from textsim_db.write.document_inputs import Documents, Key, Scope, stream_documents

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from textsim_db.compare import verify
    from textsim_db.compare.verify import Criterion
    from textsim_db.diff import cluster_explanation, explanation
    from textsim_db.diff.cluster_explanation import ExplainedCluster
    from textsim_db.diff.explanation import Explanation
    from textsim_db.frames import query_texts
    from textsim_db.measures import by_name
    from textsim_db.read import (
        boilerplate,
        check_corpus,
        clusters,
        corpus_statistics,
        inspect_clusters,
        judgements,
        measure_recall,
        pairs,
        passages,
        search,
    )
    from textsim_db.sketch import sketch_texts
    from textsim_db.sketch.cost_of_bands import Option
    from textsim_db.sync import attach, reconcile, tracked_clusters
    from textsim_db.text import languages
    from textsim_db.write import (
        alter_settings,
        expire_documents,
        judge_pairs,
        learn_common,
        load_batches,
        rebuild,
        remove_documents,
        storable_keys,
    )
else:
    verify = lazy("textsim_db.compare.verify", globals())
    cluster_explanation = lazy("textsim_db.diff.cluster_explanation", globals())
    explanation = lazy("textsim_db.diff.explanation", globals())
    query_texts = lazy("textsim_db.frames.query_texts", globals())
    by_name = lazy("textsim_db.measures.by_name", globals())
    boilerplate = lazy("textsim_db.read.boilerplate", globals())
    clusters = lazy("textsim_db.read.clusters", globals())
    corpus_statistics = lazy("textsim_db.read.corpus_statistics", globals())
    check_corpus = lazy("textsim_db.read.check_corpus", globals())
    inspect_clusters = lazy("textsim_db.read.inspect_clusters", globals())
    judgements = lazy("textsim_db.read.judgements", globals())
    measure_recall = lazy("textsim_db.read.measure_recall", globals())
    pairs = lazy("textsim_db.read.pairs", globals())
    passages = lazy("textsim_db.read.passages", globals())
    search = lazy("textsim_db.read.search", globals())
    sketch_texts = lazy("textsim_db.sketch.sketch_texts", globals())
    attach = lazy("textsim_db.sync.attach", globals())
    reconcile = lazy("textsim_db.sync.reconcile", globals())
    tracked_clusters = lazy("textsim_db.sync.tracked_clusters", globals())
    languages = lazy("textsim_db.text.languages", globals())
    alter_settings = lazy("textsim_db.write.alter_settings", globals())
    expire_documents = lazy("textsim_db.write.expire_documents", globals())
    judge_pairs = lazy("textsim_db.write.judge_pairs", globals())
    load_batches = lazy("textsim_db.write.load_batches", globals())
    learn_common = lazy("textsim_db.write.learn_common", globals())
    storable_keys = lazy("textsim_db.write.storable_keys", globals())
    rebuild = lazy("textsim_db.write.rebuild", globals())
    remove_documents = lazy("textsim_db.write.remove_documents", globals())


Parameters = ParamSpec("Parameters")


class ManagedCorpus(Protocol):
    """The methods of a corpus that need no signature; Database.manage() returns it."""

    @property
    def name(self) -> str: ...  # noqa: D102 - Corpus documents them
    @property
    def config(self) -> CorpusConfig: ...  # noqa: D102
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def remove(self, keys: Iterable[Key]) -> int: ...  # noqa: D102
    def status(self) -> Status: ...  # noqa: D102
    def activity(self) -> Activity: ...  # noqa: D102
    def failures(self, last: int | None = None) -> list[Failure]: ...  # noqa: D102
    def retry_failures(self) -> int: ...  # noqa: D102
    def detach(self, table: str) -> None: ...  # noqa: D102
    def expire(self, progress: Callable[[int], None] | bool | None = None) -> int: ...  # noqa: D102
    def scopes(self) -> list[ScopeStatus]: ...  # noqa: D102
    def untrack(self) -> None: ...  # noqa: D102
    def judge(  # noqa: D102
        self, a: Key, b: Key, verdict: str, note: str | None = None, *, replaces: str | None = None
    ) -> bool: ...
    def judge_many(  # noqa: D102
        self,
        judgements: Iterable[tuple[Key, Key, str] | tuple[Key, Key, str, str | None]],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int: ...
    def unjudge(self, a: Key, b: Key) -> bool: ...  # noqa: D102
    def judgements(self) -> Results[Judgement]: ...  # noqa: D102
    def contradictions(self) -> Results[Contradiction]: ...  # noqa: D102


class Corpus:
    """A named collection of documents with one configuration.

    Database.create_corpus() and Database.corpus() return it. Threads may share a corpus. Every method
    that reaches the database raises DatabaseError if a statement fails, and DatabaseUnavailable if
    there is no connection.

    Examples:
        The examples of the methods use this corpus:

        >>> import textsim_db
        >>> db = textsim_db.connect()
        >>> corpus = db.create_corpus("news", threshold=0.6)
        >>> report = corpus.add_many({
        ...     "monday": "The city council approved the new budget for schools on Monday evening.",
        ...     "update": "The city council approved the new budget for schools on Monday.",
        ...     "recipe": "Whisk two eggs with sugar and fold in the sifted flour.",
        ... })
        >>> report
        AddReport(added=3, replaced=0, unchanged=0, repeated_keys=0, refused=[], twins=[])
    """

    def __init__(self, store: Store) -> None:
        self._current = CurrentStore(store)

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Corpus({self.name!r}, shingle={str(config.shingle)!r}, threshold={config.threshold}, "
            f"bands={config.bands}, rows={config.rows})"
        )

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self._current.store.corpus.name

    @property
    def config(self) -> CorpusConfig:
        """The settings of the corpus, which determine its signatures and buckets."""
        return self._current.store.corpus.config

    def add_many(
        self,
        documents: Documents,
        progress: Callable[[AddReport], None] | bool | None = None,
        *,
        key: str | None = None,
        text: str | None = None,
        scope: str | None = None,
    ) -> AddReport:
        """Add documents, and replace the stored documents that have the same keys.

        The documents are read in batches, and each batch is one transaction. A document whose words
        did not change is not written. If several documents have the same key, the last one counts.

        A document that cannot be stored is refused: the report has its key and the reason, and the
        other documents are added. Reasons are a NUL character, a lone surrogate, a key of over 1,000
        bytes, a text of over 128 MiB, or a wrong type.

        After a deadlock or a lost connection a batch is written again, for about 10 seconds. If
        another client writes the same keys in between, its documents may be replaced. A batch that
        exceeds a time limit of the server is written in halves, down to single documents. If the call
        fails, the batches before the error stay stored, and a second call adds only what is missing.

        Args:
            documents: an iterable of (key, text), or a mapping of key to text. In a scoped corpus
                an iterable of (key, text, scope). With `key` and `text` also an iterable of records
                such as dicts, a data frame of pandas or Polars, or any table with the Arrow PyCapsule
                interface, such as one of PyArrow or DuckDB, which needs PyArrow. A key is a str, an
                integer or a UUID; integers and UUIDs are stored as their text. A null or a value of a
                wrong type in a frame is refused with its column and row, from 0 on.
            progress: True shows a bar; a function is called after each batch, with the report so far.
            key: the name of the column, or the member of a record, that holds the keys.
            text: the name of the column, or the member of a record, that holds the texts.
            scope: the name of the column, or the member of a record, that holds the scopes. A scope is
                a str of up to 200 bytes, an integer or a UUID; other documents are refused.

        Raises:
            ConfigurationError: the documents are of another kind, such as a list of texts.
            DatabaseError: the database failed; the message names the document if one is the cause.

        Examples:
            >>> corpus.add_many([{"id": 7, "body": "Rain is expected."}], key="id", text="body")
            AddReport(added=1, replaced=0, unchanged=0, repeated_keys=0, refused=[], twins=[])
        """
        stream = stream_documents(documents, key, text, scope)
        with shown(progress, "indexing", "documents") as show:
            learned, stream = self._current.write(learn_common.learn_from_load, stream)
            if learned is not None:
                self._current.store = replace(self._current.store, corpus=learned)
            return self._current.write(load_batches.add_many, stream, show)

    def add(
        self, key: Key, text: str, scope: Scope | None = None, *, force: bool = False
    ) -> AddReport:
        """Add or replace one document; a document of a scoped corpus has a scope.

        For more than a few documents use add_many(), which is much faster.

        Args:
            key: the key of the document.
            text: its text.
            scope: the part of a scoped corpus that it belongs to.
            force: store it although the corpus is unique and other documents match it. It stands in the
                way of later documents as any other does, and check() accepts it.

        Raises:
            DocumentError: the document cannot be stored; add_many() lists the reasons.
            DuplicateError: the corpus is unique and has documents that match this one.

        Examples:
            >>> corpus.add("weather", "Rain is expected in the north.")
            AddReport(added=1, replaced=0, unchanged=0, repeated_keys=0, refused=[], twins=[])
        """
        report, matches = self._current.write(
            load_batches.add, key, text, self._scope(scope), force
        )
        if matches:
            raise DuplicateError(self.name, report.twins[0].key, matches)
        return report

    def add_unique(
        self, key: Key, text: str, scope: Scope | None = None, *, force: bool = False
    ) -> list[Match]:
        """Add or replace one document of a unique corpus, unless other documents match it.

        Returns the documents that match it, best first. If the list is empty, the document was added
        or replaced; otherwise nothing was written. The arguments are those of add().

        Raises:
            DocumentError: the document cannot be stored; add_many() lists the reasons.
            ConfigurationError: the corpus is not unique.

        Examples:
            >>> titles = db.create_corpus("titles", threshold=0.6, recall=1, is_unique=True)
            >>> titles.add_unique("a", "The city council approved the new budget for schools.")
            []
            >>> titles.add_unique("b", "The city council approved the new budget for schools today.")
            [Match(key='a', similarity=0.875, estimate=None)]
        """
        if not self.config.is_unique:
            raise ConfigurationError(
                f'corpus "{self.name}" accepts near-duplicates; to keep them out: '
                f"textsim rebuild {shlex.quote(self.name)} --unique"
            )
        added = self._current.write(load_batches.add, key, text, self._scope(scope), force)
        return ResultList(added[1])

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove documents by key, and return how many were removed; unknown keys are skipped.

        Lost connections and time limits are handled as in add_many().

        Raises:
            ConfigurationError: `keys` is a single key.

        Examples:
            >>> corpus.remove(["recipe", "no such key"])
            1
        """
        check_several(keys, "remove() takes several keys, such as [key]")
        return self._current.write(remove_documents.remove, keys)

    def expire(self, progress: Callable[[int], None] | bool | None = None) -> int:
        """Remove the documents whose time is over, and return how many were removed.

        Searches do not find them in any case, and a worker removes them too. Each transaction removes up
        to a thousand documents. Documents that another transaction is writing are left to a later call.

        Args:
            progress: True shows a bar; a function is called with the number of documents removed so
                far.

        Raises:
            ConfigurationError: the corpus has no `keep_for`.

        Examples:
            >>> chats = db.create_corpus("chats", keep_for="30 days")
            >>> chats.add("a", "See you at eight in front of the station.").added
            1
            >>> chats.expire()
            0
        """
        if self.config.keep_for is None:
            raise ConfigurationError(f'corpus "{self.name}" keeps its documents for ever')
        with shown(progress, "removing", "documents") as show:
            return self._current.write(expire_documents.expire, show)

    def query(
        self,
        text: str,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
        scope: Scope | None = None,
    ) -> list[Match]:
        """Return the documents that are similar to a text, best first.

        The similarity of a match is the exact Jaccard similarity of the shingle sets, unless another
        measure is named.

        Args:
            text: the text to compare; it is not stored.
            threshold: the lowest similarity of a match; by default the threshold of the corpus. A lower
                threshold is allowed, but lowers the recall: a document of similarity s is found
                with probability 1 - (1 - s**rows)**bands, which a logged warning states. An exact
                corpus refuses a lower threshold.
            max_results: the largest number of matches; None returns all, however many there are.
            measure: a name of textsim_db.measures.MEASURES. The candidates stay the same, of Jaccard
                similarity; the measure verifies and orders them, and a logged warning says which
                matches are missed, such as long documents that contain the text. In a corpus with
                passages, the candidates of `containment` share a passage with the text. `containment`
                (of the text in the document), `overlap` and `dice` compare shingles, the other measures
                compare words. Every measure except jaccard needs a threshold; for a distance it is the
                largest distance.
            language: a code of ISO 639. Only documents of this language match, and the text is
                treated as a text of this language.
            scope: only documents of this scope match; a scoped corpus requires it.

        Raises:
            DocumentError: the text could not be stored, for example because of a NUL character.
            MeasureError: the measure is unknown, or needs a threshold.
            ConfigurationError: another argument is out of range.

        Examples:
            >>> for match in corpus.query("The city council approved the new budget for schools"):
            ...     print(match)
            Match(key='update', similarity=0.7777777777777778, estimate=0.8359375)
            Match(key='monday', similarity=0.7, estimate=0.75)
        """
        criterion = self._criterion(measure, threshold, language, self._scope(scope))
        most = _checked_count(max_results, "max_results")
        return ResultList(self._current.search(search.query, text, criterion)[:most])

    @overload
    def query_many(
        self,
        texts: Sequence[str],
        threshold: float | None = None,
        max_results: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
        scope: Scope | Sequence[Scope] | None = None,
    ) -> list[list[Match]]: ...

    @overload
    def query_many(
        self,
        texts: ArrowTable,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
        scope: Scope | Sequence[Scope] | None = None,
        *,
        text: str | None = None,
        key: str | None = None,
    ) -> Results[QueryMatch]: ...

    def query_many(
        self,
        texts: Sequence[str] | ArrowTable,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
        scope: Scope | Sequence[Scope] | None = None,
        *,
        text: str | None = None,
        key: str | None = None,
    ) -> list[list[Match]] | Results[QueryMatch]:
        """Return the matches of each of several texts, much faster than a query() for each text.

        The arguments are those of query(); scope may be a list with the scope of each text. The result
        has one list for each text, in the same order.

        For a frame or a column of texts it is one table, with a row (query, key, similarity) for each
        match: a frame of pandas or Polars, or a table or a column with the Arrow PyCapsule interface.
        This needs PyArrow.

        Args:
            text: the name of the frame's column of texts.
            key: the name of the frame's column whose values are the column `query` of the result. By
                default it has the places of the rows, from 0 on.

        Raises:
            DocumentError: a text could not be stored; the message has its number, from 1, or its
                column and row, from 0 on.
            MeasureError: as query().
            ConfigurationError: as query(); if `texts` is a single text or has no order; or if a column
                is missing or has no strings.

        Examples:
            >>> texts = ["Whisk two eggs with sugar and fold in the flour", "Peel the potatoes"]
            >>> results = corpus.query_many(texts)
            >>> [[match.key for match in matches] for matches in results]
            [['recipe'], []]
        """
        criterion = self._criterion(measure, threshold, language)
        most = _checked_count(max_results, "max_results")
        if query_texts.is_column(texts) or query_texts.is_frame(texts):
            queries = query_texts.query_texts(texts, text, key)
            scopes = self._scopes(scope, len(queries.texts))
            found = self._current.search(search.query_frame, queries, criterion, scopes, most)
            return queries.results(*found)
        check_several(texts, "query_many() takes several texts, such as [text]")
        if isinstance(texts, Mapping | Set):
            raise ConfigurationError(
                f"query_many() takes texts in an order, such as [text]; it got a {type(texts).__name__}"
            )
        if text is not None or key is not None:
            raise ConfigurationError("text= and key= name columns of a frame; a list has none")
        listed: Any = texts
        scopes = self._scopes(scope, len(listed))
        results = self._current.search(search.query_many, listed, criterion, scopes)
        return ResultList(ResultList(matches[:most]) for matches in results)

    def neighbours(
        self,
        key: Key,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: str = "jaccard",
        language: str | None = None,
    ) -> list[Match]:
        """Return the documents that are similar to an indexed document, best first, without itself.

        The other arguments are those of query(). In a scoped corpus the documents of its scope are
        searched.

        Raises:
            DocumentNotFound: no document has this key.
            MeasureError: as query().
            ConfigurationError: as query().

        Examples:
            >>> corpus.neighbours("monday")
            [Match(key='update', similarity=0.9, estimate=0.90625)]
        """
        stored_key = self._key(key)
        criterion = self._criterion(measure, threshold, language)
        most = _checked_count(max_results, "max_results")
        return ResultList(self._current.search(search.neighbours, stored_key, criterion)[:most])

    def nearest(
        self,
        text: str,
        k: int = 10,
        language: str | None = None,
        scope: Scope | None = None,
    ) -> list[Match]:
        """Return the k documents that are most similar to a text, best first, without a threshold.

        The corpus must be exact. It looks the text up by the rarest shingles of each document: the lower
        its threshold, the more of them. Every document from its threshold on is found. Below it,
        documents that share only other shingles with the text are missed. There are fewer than k matches
        if no others are found.

        Args:
            text: the text to compare; it is not stored.
            k: the largest number of matches.
            language: a code of ISO 639, as in query().
            scope: only documents of this scope match; a scoped corpus requires it.

        Raises:
            DocumentError: the text could not be stored, for example because of a NUL character.
            ConfigurationError: the corpus is not exact, or another argument is out of range.

        Examples:
            >>> titles = db.create_corpus("titles", threshold=0.5, recall=1)
            >>> titles.add("a", "The city council approved the new budget for schools.").added
            1
            >>> titles.nearest("The mayor says that the city council will meet.", k=3)
            [Match(key='a', similarity=0.07692307692307693, estimate=None)]
        """
        if not self.config.is_exact:
            raise ConfigurationError(
                f'corpus "{self.name}" is not exact: its bands find no documents far below its '
                "threshold; for the nearest, make one with recall=1 and a threshold of 0.5 or less"
            )
        count = check_count(k, "k", 1, 2**31 - 1)
        limits = self._language(language), self._scope(scope)
        return ResultList(self._current.search(search.nearest, text, count, *limits))

    def explain(self, a: Key, b: Key) -> Explanation:
        """Compare two indexed documents by every measure, and word by word.

        Only the words of a document are stored, so the result shows texts in normal form.

        Raises:
            DocumentNotFound: no document has one of the keys.
            MeasureError: the documents have millions of words and little in common.

        Examples:
            >>> explanation = corpus.explain("monday", "update")
            >>> explanation.measures["jaccard"], explanation.only_a
            (0.9, ['on monday evening'])
        """
        keys = (self._key(a), self._key(b))
        forms = [self._current.read(search.normal_form_of, key) for key in keys]
        return explanation.explain_sides(
            *(explanation.side_of_form(form, self.config) for form in forms)
        )

    def explain_cluster(
        self, cluster: Cluster[str] | Iterable[Key], most: int = 20
    ) -> ExplainedCluster:
        """Compare the documents of a cluster with the kept one, word by word.

        If none is kept, they are compared with the first one. Only the words of a document are stored,
        so the result shows texts in normal form.

        Args:
            cluster: a cluster of clusters(), or the keys of some documents.
            most: the number of documents to compare at most, the first ones.

        Raises:
            DocumentNotFound: no document has one of the keys.
            ConfigurationError: the cluster is empty, or an argument is out of range.
            MeasureError: the documents have millions of words and little in common.

        Examples:
            >>> (cluster,) = corpus.clusters()
            >>> found = corpus.explain_cluster(cluster)
            >>> found.key, [(member.key, member.similarity) for member in found.members]
            ('monday', [('update', 0.9)])
        """
        keys: Any = cluster.keys if isinstance(cluster, Cluster) else cluster
        kept = cluster.kept if isinstance(cluster, Cluster) else None
        check_several(keys, "explain_cluster() takes a cluster, or several keys such as [a, b]")
        check_count(most, "most", 1, 2**31)
        stored = list(dict.fromkeys(self._key(key) for key in keys))
        if not stored:
            raise ConfigurationError("the cluster is empty; expected the keys of documents")
        key = kept or stored[0]
        compared = [key, *[each for each in stored if each != key][:most]]
        forms = {each: self.normal_form(each) for each in compared}
        left_out = len(stored) - len(compared)
        return cluster_explanation.explain_cluster(forms, key, left_out, self.config)

    def normal_form(self, key: Key) -> str:
        """Return the words of an indexed document, with one space between them.

        Raises:
            DocumentNotFound: no document has this key.

        Examples:
            >>> corpus.normal_form("recipe")
            'whisk two eggs with sugar and fold in the sifted flour'
        """
        return self._current.read(search.normal_form_of, self._key(key))

    def candidates(
        self, text: str, language: str | None = None, scope: Scope | None = None
    ) -> list[Candidate]:
        """Return the documents that share a bucket with a text, without verifying them.

        In an exact corpus they share as many buckets as the sizes of both texts require. The documents
        that share most buckets come first. language and scope are those of query().

        Raises:
            DocumentError: the text could not be stored.
            ConfigurationError: the language is unknown, or the corpus does not identify languages.

        Examples:
            >>> text = "The city council approved the new budget for schools"
            >>> [candidate.key for candidate in corpus.candidates(text)]
            ['update', 'monday']
        """
        limits = self._language(language), self._scope(scope)
        return ResultList(self._current.search(search.candidates_of, text, *limits))

    def passages(
        self,
        text: str,
        min_words: int | None = None,
        max_results: int | None = None,
        scope: Scope | None = None,
        max_documents: int | None = None,
    ) -> PassageList:
        """Return the runs of words that a text shares with documents, the longest first.

        Every run of at least `passages` words, a setting of the corpus, is found. Words are those of the
        normal form, without the stop words of the corpus, so punctuation, case and the ends of lines do
        not matter.

        Args:
            text: the text to compare; it is not stored.
            min_words: the words of the shortest passage; by default `passages`, and not fewer.
            max_results: the largest number of passages; None returns all.
            scope: only documents of this scope are compared; a scoped corpus requires it.
            max_documents: do not read the documents of a run that more documents have, such as a header.
                The attribute `common` of the result lists these runs. A passage that is partly in such a
                run may be missed. None reads all documents.

        Raises:
            DocumentError: the text could not be stored, for example because of a NUL character.
            ConfigurationError: the corpus has no passages, or an argument is out of range.

        Examples:
            >>> reports = db.create_corpus("reports", passages=6)
            >>> reports.add("a", "On Monday the city council approved the new budget for schools.").added
            1
            >>> reports.passages("They say the city council approved the new budget at last.")
            [Passage(key='a', words=7, in_text=2, in_document=2)]
        """
        least = self._least_words(min_words)
        most = _checked_count(max_results, "max_results")
        limit = _checked_count(max_documents, "max_documents")
        found = self._current.search(passages.passages, text, least, limit, self._scope(scope))
        return PassageList(found[:most], found.common)

    def passages_of(
        self, key: Key, min_words: int | None = None, max_results: int | None = None
    ) -> list[Passage]:
        """Return the runs of words that a document shares with others, the longest first.

        The arguments and the order are those of passages(). Only documents of its scope are compared.

        Raises:
            DocumentNotFound: no document has this key.
            ConfigurationError: the corpus has no passages, or an argument is out of range.

        Examples:
            >>> notes = db.create_corpus("notes", passages=6)
            >>> notes.add("a", "On Monday the city council approved the new budget for schools.").added
            1
            >>> notes.add("b", "At last the city council approved the new budget.").added
            1
            >>> notes.passages_of("b")
            [Passage(key='a', words=7, in_text=2, in_document=2)]
        """
        least = self._least_words(min_words)
        most = _checked_count(max_results, "max_results")
        return ResultList(self._current.search(passages.passages_of, self._key(key), least)[:most])

    def shared_passages(self, min_words: int | None = None) -> Generator[SharedPassage, None, None]:
        """Yield the runs of words that documents of the corpus share, for all pairs, in one snapshot.

        In a scoped corpus, both documents have the same scope. A header that many documents have makes a
        passage of every two of them.

        Args:
            min_words: the words of the shortest passage; by default `passages`, and not fewer.

        Raises:
            ConfigurationError: the corpus has no passages, or min_words is out of range.

        Examples:
            >>> leases = db.create_corpus("leases", passages=6)
            >>> leases.add("a", "On Monday the city council approved the new budget for schools.").added
            1
            >>> leases.add("b", "At last the city council approved the new budget.").added
            1
            >>> list(leases.shared_passages())
            [SharedPassage(a='a', b='b', words=7, in_a=2, in_b=2)]
        """
        least = self._least_words(min_words)
        yield from self._current.loaded().stream(passages.shared_passages, least)

    def contamination(
        self,
        records: Iterable[tuple[Key, str]],
        min_words: int | None = None,
        scope: Scope | None = None,
    ) -> Generator[Contamination, None, None]:
        """Yield what each record of a test set shares with the documents, in the order of the records.

        Args:
            records: pairs of key and text, which are read as they are needed.
            min_words: the words of the shortest passage; by default `passages`, and not fewer.
            scope: only documents of this scope are compared; a scoped corpus requires it.

        Raises:
            DocumentError: a text could not be stored, for example because of a NUL character.
            ConfigurationError: the corpus has no passages, or an argument is out of range.

        Examples:
            >>> seen = db.create_corpus("seen", passages=6)
            >>> seen.add("a", "On Monday the city council approved the new budget for schools.").added
            1
            >>> list(seen.contamination([("q", "The city council approved the new budget, or not?")]))
            [Contamination(key='q', words=9, coverage=0.7777777777777778, documents=['a'])]
        """
        least, in_scope = self._least_words(min_words), self._scope(scope)
        yield from self._current.loaded().stream(
            passages.contamination, ((str(key), text) for key, text in records), least, in_scope
        )

    def containing(
        self,
        text: str,
        threshold: float,
        max_results: int | None = None,
        language: str | None = None,
        scope: Scope | None = None,
    ) -> list[Match]:
        """Return the documents that contain a text, or a part of it, those with most of it first.

        The similarity is the exact share of the shingles of the text that the document has. A document
        that shares no run of `passages` words with the text is not found, whatever its share; query()
        with the measure containment finds the same.

        Args:
            text: the text to compare; it is not stored.
            threshold: the least share, above 0 and at most 1.
            max_results: the largest number of matches; None returns all.
            language: a code of ISO 639, as in query().
            scope: only documents of this scope match; a scoped corpus requires it.

        Raises:
            DocumentError: the text could not be stored, for example because of a NUL character.
            ConfigurationError: the corpus has no passages, or an argument is out of range.

        Examples:
            >>> minutes = db.create_corpus("minutes", passages=6)
            >>> minutes.add("a", "On Monday the city council approved the new budget for schools.").added
            1
            >>> minutes.containing("The city council approved the new budget at last.", threshold=0.6)
            [Match(key='a', similarity=0.7142857142857143, estimate=0.4296875)]
        """
        self._least_words(None)
        return self.query(text, threshold, max_results, "containment", language, scope)

    def pairs(
        self,
        threshold: float | None = None,
        measure: str = "jaccard",
        language: str | None = None,
        scope: Scope | None = None,
    ) -> Results[Pair]:
        """Return all pairs of similar documents, each pair once and verified exactly.

        In each pair a < b. The pairs come from one snapshot, whose transaction stays open until the
        results are exhausted or closed. threshold and measure are those of query(), with the same
        warnings. With a measure other than jaccard all pairs of a bucket are compared, even in a bucket
        with many documents.

        Args:
            language: a code of ISO 639; both documents must be of this language.
            scope: only documents of this scope are compared. By default those of all scopes are, each
                scope by itself.

        Raises:
            MeasureError: the measure depends on the order of the documents, as containment does.
            ConfigurationError: an argument is out of range.

        Examples:
            >>> list(corpus.pairs())
            [Pair(a='monday', b='update', similarity=0.9)]
        """
        criterion = self._criterion(measure, threshold, language, self._scope_of_pairs(scope))
        if not criterion.measure.is_symmetric:
            raise MeasureError(f"{measure} depends on the order of two documents; use overlap")

        return Results(Pair, partial(self._pairs, pairs.pairs, criterion))

    def clusters(
        self,
        threshold: float | None = None,
        linkage: str = "single",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
    ) -> Results[Cluster[str]]:
        """Return the clusters of similar documents, the largest first; each has two keys or more.

        Only verified pairs connect documents. `weakest` is the similarity of the weakest link that
        connects a cluster. If more than 256 different documents share a bucket, only some of their
        pairs are verified, and `weakest` may be lower than with all pairs.

        Args:
            threshold: the lowest similarity of a pair; by default the threshold of the corpus.
            linkage: how pairs make clusters.
                `"single"`: the connected components of the pairs; a chain of pairs may connect
                dissimilar documents.
                `"complete"`: every two members are a pair; this needs memory for all pairs.
                `"kept"`: one member is kept, and every other member is a pair with it.
            rank: for linkage `"kept"`, returns the rank of a key. The document with the lowest rank is
                considered first, so it is kept. By default the order of the keys counts.
            language: a code of ISO 639, to cluster only the documents of this language.
            scope: only documents of this scope are compared. By default those of all scopes are, each
                scope by itself.
            judgements: whether the judgements of the corpus are obeyed; see judge().

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> list(corpus.clusters())
            [Cluster(keys=('monday', 'update'), weakest=0.9, kept=None)]
        """
        limit = self._scope_of_pairs(scope)
        criterion = self._criterion("jaccard", threshold, language, limit)
        how = check_linkage(linkage)
        check_callable(rank, "rank")
        rules = clusters.ClusterRules(how, rank, check_flag(judgements, "judgements"))

        return Results(Cluster, partial(self._pairs, clusters.clusters, criterion, rules))

    def inspect_clusters(
        self,
        threshold: float | None = None,
        linkage: str = "single",
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
        fewest: int = 2,
    ) -> list[InspectedCluster]:
        """Return the clusters of clusters(), each with an inspection.

        At most 50 members of a cluster are compared with each other. A cluster that a template holds
        together is often false: rebuild(boilerplate=...) leaves the template out.

        Args:
            threshold: the lowest similarity of a pair; by default the threshold of the corpus.
            linkage: how pairs make clusters, as in clusters().
            language: a code of ISO 639, to cluster only the documents of this language.
            scope: only documents of this scope are compared.
            judgements: whether the judgements of the corpus are obeyed; see judge().
            fewest: the members of the smallest cluster that is returned.

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> [(cluster, inspection)] = corpus.inspect_clusters()
            >>> inspection.least, inspection.is_exact, inspection.held_by_template
            (0.9, True, False)
        """
        criterion = self._criterion("jaccard", threshold, language, self._scope_of_pairs(scope))
        check_count(fewest, "fewest", 2, 2**31)
        how = check_linkage(linkage)
        rules = clusters.ClusterRules(how, None, check_flag(judgements, "judgements"))
        return ResultList(self._current.search(clusters.inspected, criterion, rules, fewest))

    def inspect_keys(self, clusters: Iterable[Iterable[Key]]) -> list[Inspection]:
        """Return what holds clusters together that are given by the keys of their documents.

        Args:
            clusters: the keys of each cluster. Unknown keys are ignored.

        Raises:
            ConfigurationError: a cluster has no document of the corpus.

        Examples:
            >>> corpus.inspect_keys([["monday", "update"]])[0].least
            0.9
        """
        keys = [[self._key(key) for key in cluster] for cluster in clusters]
        found = self._current.search(inspect_clusters.inspect_keys, keys, self.config.threshold)
        return ResultList(found)

    def duplicates(
        self,
        threshold: float | None = None,
        linkage: str = "kept",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
    ) -> Results[Duplicate]:
        """Return the documents to remove so that each cluster keeps one document.

        Nothing is removed; pass the keys to remove(). With linkage `"kept"` each document to remove
        is a verified pair with the document that is kept in its place. With the other linkages of
        clusters() their similarity may be below the threshold.

        Args:
            threshold: the lowest similarity of a pair; by default the threshold of the corpus.
            linkage: how pairs make clusters; see clusters().
            rank: returns the rank of a key; the document with the lowest rank of a cluster is kept. By
                default the lowest key is kept.
            language: a code of ISO 639, to compare only the documents of this language.
            scope: only documents of this scope are compared. By default those of all scopes are, each
                scope by itself.
            judgements: whether the judgements of the corpus are obeyed; see judge().

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> duplicates = list(corpus.duplicates())
            >>> duplicates
            [Duplicate(key='update', kept='monday', similarity=0.9)]
            >>> corpus.remove(duplicate.key for duplicate in duplicates)
            1
        """
        limit = self._scope_of_pairs(scope)
        criterion = self._criterion("jaccard", threshold, language, limit)
        how = check_linkage(linkage)
        check_callable(rank, "rank")
        rules = clusters.ClusterRules(how, rank, check_flag(judgements, "judgements"))

        return Results(Duplicate, partial(self._pairs, clusters.duplicates, criterion, rules))

    def judge(
        self,
        a: Key,
        b: Key,
        verdict: str,
        note: str | None = None,
        *,
        replaces: str | None = None,
    ) -> bool:
        """Record what a person says of two documents, and return whether that was new.

        Tracked clusters obey it; clusters() and duplicates() do with `judgements=True`. The documents
        need not exist; the judgement stays when they change or are removed. A pair has one judgement.

        Args:
            a: the key of one document.
            b: the key of the other document.
            verdict: `"same"`, `"different"` or `"unsure"`.
            note: why, or anything else: up to 10,000 bytes.
            replaces: the verdict of the stored judgement that this one replaces. So nobody replaces a
                judgement that they have not seen.

        Raises:
            JudgementExists: the pair was judged otherwise, or the note differs, and `replaces` is not
                the stored verdict.
            DocumentError: a key or the note cannot be stored.
            ConfigurationError: the keys are equal, the verdict is unknown, or both documents exist and
                have different scopes.

        Examples:
            >>> corpus.judge("monday", "update", "different", note="one names the evening")
            True
            >>> list(corpus.clusters(judgements=True))
            []
        """
        given = judge_pairs.GivenJudgement(a, b, verdict, note, replaces)
        return bool(self._current.loaded().read(judge_pairs.judge, [given]))

    def judge_many(
        self,
        judgements: Iterable[tuple[Key, Key, str] | tuple[Key, Key, str, str | None]],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int:
        """Record several judgements, all or none, and return how many were new.

        Args:
            judgements: (a, b, verdict) or (a, b, verdict, note), as in judge().
            replace: replace stored judgements that have another verdict or note.
            place_of: names the judgement with this number, from 0 on, in the message of an error.

        Raises:
            JudgementExists: as judge(), without `replace`.
            DocumentError: as judge().
            ConfigurationError: as judge().

        Examples:
            >>> corpus.judge_many([("monday", "recipe", "different"), ("update", "recipe", "unsure")])
            2
            >>> [(judgement.a, judgement.verdict) for judgement in corpus.judgements()]
            [('monday', 'different'), ('recipe', 'unsure')]
        """
        given = [judge_pairs.GivenJudgement(*judgement) for judgement in judgements]
        names = place_of or "judgement {}".format
        return self._current.loaded().read(judge_pairs.judge, given, replace, names)

    def unjudge(self, a: Key, b: Key) -> bool:
        """Remove the judgement of two documents, and return whether there was one.

        Raises:
            DocumentError: a key is none that a document can have.
            ConfigurationError: the keys are equal.

        Examples:
            >>> corpus.judge("monday", "update", "same")
            True
            >>> corpus.unjudge("update", "monday")
            True
        """
        return self._current.loaded().read(judge_pairs.unjudge, a, b)

    def judgements(self) -> Results[Judgement]:
        """Return the judgements of the corpus, in the order of their keys."""
        return Results(Judgement, partial(self._current.loaded().stream, judgements.judgements))

    def contradictions(self) -> Results[Contradiction]:
        """Return the pairs that were judged different although they are the same by other judgements.

        A chain of pairs judged the same connects them. Until one of these judgements is replaced or
        removed, clusters() and duplicates() obey the verdict "different", and none of the same
        verdicts of these documents and of those connected with them.
        """
        return Results(
            Contradiction, partial(self._current.loaded().stream, judgements.contradictions)
        )

    def measure_recall(
        self,
        threshold: float | None = None,
        sample: int = 1000,
        seed: int | None = None,
        progress: Callable[[int, int], None] | bool | None = None,
        scope: Scope | None = None,
    ) -> RecallReport:
        """Measure the recall of searches: compare a random sample with all documents by brute force.

        Args:
            threshold: the similarity from which a pair counts; by default the corpus's threshold.
            sample: the number of documents in the sample.
            seed: chooses the sample; by default every call takes another sample.
            progress: True shows a bar; a function is called with the number of documents compared so
                far, and of all documents.
            scope: the documents of this scope are compared; a scoped corpus requires it.

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> report = corpus.measure_recall()
            >>> report.pairs, report.recall, report.missed
            (1, 1.0, [])
        """
        checked = self._threshold(threshold)
        check_count(sample, "sample", 1, 2**31)
        if seed is not None:
            check_count(seed, "seed", 0, 2**63 - 1)
        chosen = measure_recall.ScopedSample(sample, seed, self._scope(scope))
        with shown(progress, "comparing", "documents") as show:
            return self._current.search(measure_recall.measure_recall, checked, chosen, show)

    def plan(
        self,
        threshold: float | None = None,
        recall: float | None = None,
        num_hashes: int | None = None,
        sample: int = 1000,
        seed: int | None = None,
        scope: Scope | None = None,
    ) -> list[Option]:
        """Return the options, an exact corpus or bands and rows, with their cost in this corpus.

        A sample shows how similar the documents are. `chosen` marks the option that create_corpus()
        and rebuild() take. By default threshold, recall and num_hashes are those of the corpus.

        Args:
            sample: the number of documents in the sample.
            seed: chooses the sample; by default every call takes another sample.
            scope: the sample is one of this scope; a scoped corpus requires it.

        Raises:
            ConfigurationError: no bands and rows reach the recall at the threshold.

        Examples:
            >>> for option in corpus.plan(recall=0.9):
            ...     if option.chosen:
            ...         print(option.bands, option.rows, round(option.recall, 3))
            32 4 0.988
        """
        threshold = self._threshold(threshold)
        recall = self.config.recall if recall is None else recall
        num_hashes = self.config.num_hashes if num_hashes is None else num_hashes
        cost_of_bands.choose(threshold, recall, num_hashes)  # raises an error before the long work
        report = self.measure_recall(threshold, sample, seed, scope=scope)
        similarities = measure_recall.distribution(report)
        return ResultList(
            cost_of_bands.options(threshold, recall, num_hashes, report.words, similarities)
        )

    def statistics(
        self,
        words: int = 20,
        sample: int = 1000,
        seed: int = 1,
        progress: Callable[[int, int], None] | bool | None = None,
        language: str | None = None,
        scope: Scope | None = None,
    ) -> Statistics:
        """Return statistics of the corpus: documents, words, similarities, buckets, bytes.

        This reads all documents. A sample is compared with all its candidates to show the similarities.

        Args:
            words: the number of most frequent words to return.
            sample: the number of documents in the sample.
            seed: chooses the sample.
            progress: True shows a bar; a function is called with the number of documents read so far,
                and of all documents.
            language: a code of ISO 639, to count only the documents of this language.
            scope: counts only the documents of this scope.

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> statistics = corpus.statistics(words=1)
            >>> statistics.documents, statistics.words, statistics.frequent
            (3, 34, [Frequency(word='the', occurrences=5, documents=3)])
        """
        limits = corpus_statistics.Limits(self._language(language), self._scope_of_pairs(scope))
        check_count(words, "words", 0, 2**31)
        check_count(sample, "sample", 0, 2**31)
        check_count(seed, "seed", 0, 2**63 - 1)
        with shown(progress, "reading", "documents") as show:
            return self._current.search(
                corpus_statistics.statistics,
                words,
                corpus_statistics.Sample(sample, seed),
                limits,
                show,
            )

    def boilerplate(
        self, share: float = 0.01, last: int | None = 100, clusters: bool = False
    ) -> Boilerplate:
        """Return the shingles that more than a share of the documents has, the most frequent first.

        It reads a sample of at most some 50,000 documents, the same sample until the corpus changes. The
        result says how many. Copies of one text count once. `rebuild(boilerplate=share)` leaves such
        shingles out. Boilerplate that the corpus leaves out is not listed.

        Args:
            share: the share of the texts, above 0, at most 1.
            last: the number of shingles to return at most; None: all.
            clusters: compute the clusters of the corpus, to count those that a shingle holds. The
                clusters of a tracked corpus are always counted.

        Raises:
            ConfigurationError: an argument is out of range.
        """
        checked = check_threshold(share, "share")
        check_flag(clusters, "clusters")
        criterion = self._criterion("jaccard", None, None, None) if clusters else None
        limit = _checked_count(last, "last")
        return self._current.read(boilerplate.boilerplate, checked, limit, criterion)

    def without_words(self) -> tuple[int, list[str]]:
        """Return the number of documents without shingles, and the first five of their keys.

        These documents match nothing: they are empty, or only stop words and boilerplate.
        """
        return self._current.read(boilerplate.without_words)

    def idf_weights(self) -> dict[str, float]:
        """Return the inverse document frequency of each word, for measures.weighted_jaccard().

        The weight of a word is ln(documents / documents with the word). This reads all documents.

        Examples:
            >>> weights = corpus.idf_weights()
            >>> weights["the"], weights["council"]
            (0.0, 0.405...)
        """
        frequencies, documents = self._current.search(corpus_statistics.document_frequencies)
        return {word: log(documents / count) for word, count in frequencies.items()}

    def signature(self, text: str) -> npt.NDArray[np.int16 | np.int32]:
        """Return the signature that would be stored for a text.

        An array of int16 of shape (num_hashes,), or of int32 of shape (rows,) in an exact corpus; empty
        if the text has no words.

        Raises:
            DocumentError: the text could not be stored.
        """
        return sketch_texts.signature(text, self.config)

    def buckets(self, text: str, scope: Scope | None = None) -> npt.NDArray[np.int32]:
        """Return the buckets that would be stored for a text.

        An array of int32 of shape (bands,), or (0,) if the text has no words.

        Raises:
            DocumentError: the text could not be stored.
        """
        return sketch_texts.buckets(text, self.config, self._scope(scope))

    def check(self, progress: Callable[[int], None] | bool | None = None) -> list[Problem]:
        """Check the integrity of the corpus: return every stored row that contradicts another row.

        An empty list means that the corpus is intact.

        Args:
            progress: True shows a bar; a function is called with the number of documents checked so far.

        Examples:
            >>> corpus.check()
            []
        """
        with shown(progress, "checking", "documents") as show:
            while True:
                # The catalog has no snapshot: a corpus that is rebuilt meanwhile seems to lack tables.
                try:
                    problems = self._current.read(check_corpus.check, show)
                except DatabaseError:
                    if not self._is_rebuilt():
                        raise
                    continue
                if not problems or not self._is_rebuilt():
                    return ResultList(problems)

    def attach(
        self,
        table: TableName,
        key: ColumnName | None = None,
        text: ColumnName | None = None,
        mode: str | None = None,
        progress: Callable[[int], None] | bool | None = None,
        *,
        key_columns: Sequence[ColumnName] | None = None,
        existing: str = Existing.REFUSE,
        scope: ColumnName | None = None,
        time: ColumnName | None = None,
        expires: ColumnName | None = None,
        row_filter: str | None = None,
    ) -> ChangeReport:
        """Attach a table: index its rows, and keep the corpus equal to the table from now on.

        The call returns when the rows are indexed. If it is interrupted, the table stays attached, and
        a worker indexes the remaining rows.

        Args:
            table: the name of the table as in SQL, a SQLAlchemy table or a mapped class.
            key: the key column, by name or as a column. It must be unique and of an integer type,
                uuid, text, varchar, date, timestamp or timestamptz.
            text: the column with the texts, by name or as a column.
            mode: with `"queue"` a worker indexes changes after their commit; see Database.worker(). With
                `"inline"` the transaction that writes a row also indexes it. By default `"queue"`; a
                unique corpus takes only `"inline"`, which is its default.
            progress: True shows a bar; a function is called with the number of rows indexed so far.
            key_columns: instead of `key`, the columns of a key of several columns, such as
                `["day", "id"]`. They must be unique together. `join_key` makes the key of a document
                from their values, and `split_key` gives the values back.
            existing: what happens if the corpus is unique and rows of the table match each other, or a
                document. `"refuse"` raises an error, `"keep"` keeps them and logs a warning.
            scope: the column of the documents' scopes, by name or as a column, if the corpus is scoped.
                Its values become text. A row whose scope is NULL is set aside with an error; a unique
                corpus refuses it.
            time: if the corpus has `keep_for`, the column of the times from which the rows count for
                this long. It is of type timestamptz, timestamp or date; times without a time zone are of
                UTC. A row whose time is NULL counts for ever.
            expires: instead of `time`, the column of the times from which the rows no longer count.
            row_filter: a condition in SQL on the columns of a row, such as `"status = 'published'"`.
                Only the rows for which it is true have a document. It may use immutable functions and
                operators of PostgreSQL. A column of another type than those of PostgreSQL is read as
                text.

        Raises:
            ConfigurationError: the table cannot be attached; or it is attached, but this role cannot
                index it, for example because of row security; or rows match, and the corpus is unique.

        Examples:
            >>> with db.engine.begin() as connection:
            ...     for statement in (
            ...         "CREATE TABLE article (id int PRIMARY KEY, body text)",
            ...         "INSERT INTO article VALUES (1, 'Snow fell in the hills.')",
            ...     ):
            ...         result = connection.exec_driver_sql(statement)
            >>> corpus.attach("article", key="id", text="body")
            ChangeReport(added=1, replaced=0, removed=0, unchanged=0, completed=0, mended=0, refused=[])
        """
        if key is not None and key_columns is not None:
            raise ConfigurationError("key and key_columns are both given; leave one of them out")
        keys = key_columns or [] if key is None else [key]
        names = names_of(table, keys, text, scope, time, expires)
        rules = sources.AttachRules(mode, existing, row_filter)
        with shown(progress, "indexing", "rows") as show:
            changes = self._current.loaded().write(attach.attach_and_index, names, rules, show)
        if self.config.is_exact:  # it may have learned its common shingles
            self._current.load()
        return changes

    def detach(self, table: TableName) -> None:
        """Detach a table: its later changes are not indexed; the documents stay in the corpus.

        A table that was dropped is named by its oid.

        Raises:
            ConfigurationError: the table is not attached to the corpus.
        """
        self._current.loaded().write(sources.detach, table)

    def track(
        self,
        linkage: str = "kept",
        threshold: float | None = None,
        *,
        mode: str = "queue",
        keep_events: timedelta | str | None = timedelta(days=30),
    ) -> None:
        """Keep the matches and clusters of the corpus in tables that stay current.

        A worker or update_clusters() computes them: first of all documents, and then of each change.
        They obey judgements; see judge(). members() reads them.

        Args:
            linkage: how matches make clusters: `"kept"`, `"single"` or `"complete"`, as in clusters().
                With `"kept"` documents are considered in the order in which they were added.
            threshold: the lowest similarity of a match; by default the threshold of the corpus, and not
                lower. If a rebuild changes that of the corpus, an equal or lower one follows it.
            mode: with `"queue"` a worker or update_clusters() processes changes. With `"inline"` the
                transaction that writes documents updates their clusters when it commits, and these
                transactions wait for each other.
            keep_events: how long cluster_events() lists an event, such as `"30 days"`; None: always.

        Raises:
            ConfigurationError: the corpus is tracked already, or an argument is out of range.

        Examples:
            >>> corpus.track()
            >>> corpus.update_clusters()
            3
            >>> corpus.cluster_of("update")
            Member(key='update', cluster=1, representative='monday', similarity=0.9, crowded=False)
            >>> corpus.untrack()
        """
        how = check_linkage(linkage)
        limit = None if threshold is None else check_threshold(threshold)
        kept = check_duration(keep_events, "keep_events")
        self._current.loaded().write(tracked_clusters.track, how, limit, mode, kept)

    def untrack(self) -> None:
        """Remove the matches and clusters of a tracked corpus, and their history; documents stay.

        Raises:
            ConfigurationError: the corpus is not tracked.
        """
        self._current.loaded().write(tracked_clusters.untrack)

    def update_clusters(self) -> int:
        """Bring the clusters of a tracked corpus up to date; return the number of changed documents.

        A worker does the same. Each transaction processes some five thousand documents.

        Raises:
            ConfigurationError: the corpus is not tracked.
        """
        return self._current.loaded().search(tracked_clusters.update)

    def members(self) -> Results[Member]:
        """Return the documents of all clusters of a tracked corpus, one cluster after the other.

        Documents that changed since the last update have the clusters that they had then.

        Raises:
            ConfigurationError: the corpus is not tracked.
        """
        return Results(Member, partial(self._current.loaded().stream, tracked_clusters.members))

    def cluster_events(self, after: int = 0) -> Generator[ClusterEvent, None, None]:
        """Yield what happened to the clusters of a tracked corpus, in order.

        Args:
            after: the id of the last event that was read. No event comes later with a lower id.

        Raises:
            ConfigurationError: the corpus is not tracked.
        """
        yield from self._current.loaded().stream(tracked_clusters.cluster_events, after)

    def cluster_of(self, key: Key) -> Member | None:
        """Return the document with a key as a member of its cluster; None if nothing matches it.

        Raises:
            ConfigurationError: the corpus is not tracked.
            DocumentNotFound: the key is none that a document can have.
        """
        return self._current.loaded().read(tracked_clusters.cluster_of, self._key(key))

    def status(self) -> Status:
        """Return how many documents are indexed, wait for a worker, or were set aside.

        Examples:
            >>> status = corpus.status()
            >>> status.indexed, status.pending
            (3, 0)
        """
        return self._current.loaded().read(sources.status)

    def scopes(self) -> list[ScopeStatus]:
        """Return the scopes with the number of their documents, the largest scope first.

        Raises:
            ConfigurationError: the corpus is not scoped.
        """
        if not self.config.scoped:
            raise ConfigurationError(f'corpus "{self.name}" is not scoped')
        return ResultList(self._current.loaded().read(sources.scopes))

    def activity(self) -> Activity:
        """Return the age of the oldest pending change, and the number of writes to the corpus so far."""
        return self._current.read(sources.activity)

    def failures(self, last: int | None = None) -> list[Failure]:
        """Return the documents that were set aside because they could not be indexed, with reasons.

        Args:
            last: return only this number of documents, the latest ones.
        """
        checked = _checked_count(last, "last")
        return ResultList(self._current.loaded().read(pending_log.failures, checked))

    def retry_failures(self) -> int:
        """Let workers try again to index what was set aside, and return the number of log entries."""
        return self._current.loaded().write(pending_log.retry_failures)

    def reconcile(self, progress: Callable[[int], None] | bool | None = None) -> ChangeReport:
        """Compare the corpus with its attached tables, and write what differs.

        This repairs changes that triggers missed: replication, disabled triggers, dropped partitions
        and dropped tables. It also gives word ids to documents that wait for them. If the corpus is
        tracked, it computes anew what check() finds wrong in its matches and clusters.

        Args:
            progress: True shows a bar; a function is called with the number of rows compared so far.

        Raises:
            ConfigurationError: this role cannot read an attached table.
        """
        with shown(progress, "comparing", "rows") as show:
            return self._current.loaded().write(reconcile.reconcile, show)

    def drift(self) -> Generator[Drift, None, None]:
        """Yield the documents that differ from their tables, which reconcile() would write.

        Changes that wait for a worker are among them.
        """
        yield from self._current.loaded().stream(reconcile.drift)

    @suggest_settings(*CHANGEABLE)
    def rebuild(
        self,
        progress: Callable[[int, int], None] | bool | None = None,
        **settings: Unpack[Settings],
    ) -> bool:
        """Build the corpus anew with other settings while it stays in use; return whether it was built.

        With `boilerplate` set, it also learns the boilerplate from a sample, once. The words of
        boilerplate are then left out of all stored documents, and of all texts from then on.

        Searches use the old corpus until the new one is complete. Then one transaction replaces it, and
        moves attached tables and the views of textsim.create_view. Writers wait only during this
        transaction. If the rebuild fails or is interrupted, the old corpus stays as it was.

        A tracked corpus stays tracked: its clusters keep their ids and their members. All documents wait
        for the next update of clusters, and members have no similarity until it has processed them.

        The other Corpus objects of this corpus read the new settings at their next search. A write
        through them raises CorpusChanged once.

        If no stored row depends on the new settings, only the settings are stored. Examples are
        `is_unique=False`, and another threshold or recall with the same bands and rows. Other Corpus
        objects use these settings when they are opened again. Without any setting the corpus is built
        with the old settings, and its documents get ids from 1 on.

        Args:
            progress: True shows a bar; a function is called with the number of documents copied so far,
                and the number to copy.
            **settings: fields of CorpusSettings, except `stop_words`, `language`, `scoped` and
                `keep_for`. The other settings keep their values, and so does a setting that is None.

        Raises:
            ConfigurationError: a setting is out of range, or a view cannot be moved. With
                `is_unique` also if documents match each other, or if workers index an attached table.
            CorpusBusy: another session rebuilds the corpus or creates a view of it.

        Examples:
            >>> corpus.rebuild(threshold=0.7)
            True
            >>> corpus.config.bands, corpus.config.rows
            (25, 5)
        """
        config = self._current.loaded().store.corpus.config
        changed = config.changed(**settings)
        has_settings = any(value is not None for value in settings.values())
        is_known = has_settings and not changed.learns_boilerplate
        if is_known and self._current.read(alter_settings.is_enough, changed):
            if changed != config:
                self._current.write(alter_settings.alter, changed)
                self._current.load()
            return False
        changed = self._current.write(learn_common.learn_from_corpus, changed)
        with shown(progress, "rebuilding", "documents") as show:
            rebuilt = self._current.write(rebuild.rebuild, changed, show)
        self._current.store = replace(self._current.store, corpus=rebuilt)
        return True

    def drop(self) -> None:
        """Remove the corpus with all its documents.

        Raises:
            CorpusNotFound: the corpus was removed already.
            ConfigurationError: a view depends on the corpus.
        """
        store = self._current.loaded().store
        stored_corpus.drop(store.engine, store.corpus)

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self._current.read(_value, statements.COUNT_DOCUMENTS))

    def __bool__(self) -> bool:
        # Without this, an empty corpus would be false.
        return True

    def __contains__(self, key: object) -> bool:
        """Return whether the corpus has a document with this key."""
        stored = storable_keys.possible_key(key)
        return stored is not None and bool(
            self._current.read(_value, statements.HAS_DOCUMENT, stored)
        )

    def _pairs(
        self,
        function: Callable[Concatenate[Store, Parameters], Generator[ResultColumns, None, None]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Generator[ResultColumns, None, None]:
        self._current.read(sources.warn_unindexed)
        yield from self._current.stream(function, *args, **kwargs)

    def _is_rebuilt(self) -> bool:
        """Return whether the corpus was rebuilt; False if its stored settings are damaged."""
        with suppress(RecipeError):
            return self._current.load()
        return False

    def _threshold(self, threshold: float | None) -> float:
        return self.config.threshold if threshold is None else check_threshold(threshold)

    def _search_threshold(self, threshold: float | None) -> float:
        checked = self._threshold(threshold)
        if self.config.is_exact and checked < self.config.threshold:
            raise ConfigurationError(
                f'threshold is {checked:g}; the exact corpus "{self.name}" finds every pair from '
                f"{self.config.threshold:g} on, but not below; to lower its threshold: "
                f"textsim rebuild {shlex.quote(self.name)} --threshold {checked:g}"
            )
        return checked

    def _key(self, key: Key) -> str:
        stored = storable_keys.possible_key(key)
        if stored is None:
            raise DocumentNotFound(f'corpus "{self.name}" has no document {key!r}')
        return stored

    def _criterion(
        self,
        measure: str,
        threshold: float | None,
        language: str | None,
        scope: str | None = None,
    ) -> Criterion:
        by = by_name.measure_of(measure)
        limit = self._language(language)
        if by is by_name.JACCARD:
            return verify.Criterion(by, self._search_threshold(threshold), limit, scope)
        if threshold is None:
            raise MeasureError(
                f"{by.name} needs a threshold, because the threshold of the corpus is for jaccard"
            )
        return verify.Criterion(by, by.check_threshold(threshold), limit, scope)

    def _least_words(self, min_words: int | None) -> int:
        """Return the words of the shortest passage of a search; raises ConfigurationError."""
        least = self.config.passages
        if least is None:
            raise ConfigurationError(
                f'corpus "{self.name}" has no passages; rebuild it with passages, such as: '
                f"textsim rebuild {shlex.quote(self.name)} --passages 13"
            )
        return least if min_words is None else check_count(min_words, "min_words", least, 2**31 - 1)

    def _scope(self, scope: Scope | None) -> str | None:
        """Return the scope of a document or a search as it is stored."""
        self.config.check_scope(self.name, scope is not None)
        return self._scope_of_pairs(scope)

    def _scope_of_pairs(self, scope: Scope | None) -> str | None:
        """Return the scope that limits a list as it is stored; None: all scopes."""
        if scope is None:
            return None
        self.config.check_scope(self.name, True)
        try:
            return storable_keys.stored_scope(scope)
        except DocumentError as error:
            raise ConfigurationError(str(error)) from error

    def _scopes(self, scope: Scope | Sequence[Scope] | None, count: int) -> list[str] | None:
        """Return the scope of each of several texts, or None if the corpus is not scoped."""
        if scope is None or isinstance(scope, Scope):
            stored = self._scope(scope)
            return None if stored is None else [stored] * count
        if len(scope) != count:
            raise ConfigurationError(
                f"there are {len(scope)} scopes and {count} texts; expected a scope for each text"
            )
        return [str(self._scope(each)) for each in scope]

    def _language(self, language: str | None) -> str | None:
        if language is None:
            return None
        if self.config.language is None:
            raise ConfigurationError(
                f'the languages of the documents of corpus "{self.name}" are not identified; '
                f'create a corpus with language="{AUTO}" to identify them'
            )
        return languages.check_language(language)


def _checked_count(count: int | None, name: str) -> int | None:
    return None if count is None else check_count(count, name, 1, 2**63 - 1)


def _value(store: Store, statement: LiteralString, *parameters: str) -> Any:
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(statement), parameters).fetchone()
    assert row is not None
    return row[0]


def load_modules() -> None:
    """Import the modules that add and search, before a corpus is created.

    An interrupt during an import can fail in many ways, so it must not come after a corpus is stored.
    """
    for module in (load_batches, clusters, search):
        module.__name__  # noqa: B018 - reading an attribute imports the module
