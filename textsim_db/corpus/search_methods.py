"""Searches: the documents that are similar to a text or to a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from textsim_db.corpus.arguments import CheckedArguments, checked_count
from textsim_db.errors import ConfigurationError
from textsim_db.files.arrow_frames import ArrowTable, Results
from textsim_db.files.several_texts import TextsKind, kind_of_texts, query_texts
from textsim_db.read import search_on_server
from textsim_db.results import Candidate, Distinct, Match, QueryMatch
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import (
    check_count,
    check_flag,
    check_threshold,
    several_items,
)
from textsim_db.settings.named_values import MeasureName
from textsim_db.text.storable import Key, Scope

if TYPE_CHECKING:
    from textsim_db.measures.explanation import Explanation, Side


class SearchMethods(CheckedArguments):
    """Methods that compare a text or a document with all documents."""

    def query(
        self,
        text: str,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: MeasureName = "jaccard",
        language: str | None = None,
        scope: Scope | None = None,
    ) -> list[Match]:
        """Return the documents that are similar to a text, best first.

        An exact corpus (recall 1) finds every one. Any other corpus finds the share `recall` of those at
        its threshold, by default 95 %, and more of those above it. The similarity of a match is the
        exact Jaccard similarity of the shingle sets, unless another measure is named. SQL calls this
        search textsim.matches().

        Args:
            text: the text to compare; it is not stored.
            threshold: the lowest similarity of a result; by default the threshold of the corpus. Below
                it some similar documents are missed, and a logged warning says which share of them is
                found. An exact corpus refuses a lower threshold.
            max_results: the largest number of matches; None returns all that are found, however many.
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
            MeasureError: the measure is unknown, or needs a threshold.

        Examples:
            >>> for match in corpus.query("The city council approved the new budget for schools"):
            ...     print(match)
            Match(key='update', similarity=0.7777777777777778, differs=())
            Match(key='monday', similarity=0.7, differs=())
        """
        most = checked_count(max_results, "max_results")
        if self._is_on_server(text, threshold, measure, language):
            limits = self._search_threshold(threshold), most, self._scope(scope)
            return ResultList(self._current.search(search_on_server.query, text, *limits))
        from textsim_db.read import search

        criterion = self._criterion(measure, threshold, language, self._part(scope))
        return ResultList(self._current.checked().search(search.query, text, criterion)[:most])

    @overload
    def query_many(
        self,
        texts: Sequence[str],
        threshold: float | None = None,
        max_results: int | None = None,
        measure: MeasureName = "jaccard",
        language: str | None = None,
        scope: Scope | Sequence[Scope] | None = None,
    ) -> list[list[Match]]: ...

    @overload
    def query_many(
        self,
        texts: ArrowTable,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: MeasureName = "jaccard",
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
        measure: MeasureName = "jaccard",
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
        This needs PyArrow. The column `query` has the index of a Series of pandas; for any other column,
        the places of the texts.

        Args:
            text: the name of the frame's column of texts.
            key: the name of the frame's column whose values are the column `query` of the result. By
                default it has the places of the rows, from 0 on.

        Raises:
            DocumentError: a text could not be stored; the message has its number, from 1, or its
                column and row, from 0 on.
            ConfigurationError: as query(); if `texts` is a single text or has no order; or if a column
                is missing or has no strings.

        Examples:
            >>> texts = ["Whisk two eggs with sugar and fold in the flour", "Peel the potatoes"]
            >>> results = corpus.query_many(texts)
            >>> [[match.key for match in matches] for matches in results]
            [['recipe'], []]
        """
        from textsim_db.read import search

        criterion = self._criterion(measure, threshold, language)
        most = checked_count(max_results, "max_results")
        kind = kind_of_texts(texts, "query_many", text, key)
        if kind in (TextsKind.COLUMN, TextsKind.FRAME):
            queries = query_texts(texts, kind, text, key)
            parts = self._parts(scope, len(queries.texts))
            columns = self._current.checked().search(
                search.query_frame, queries, criterion, parts, most
            )
            return queries.results(*columns)
        if kind is TextsKind.MAPPING:
            raise ConfigurationError(
                "query_many() takes texts in an order, such as [text]; it got a "
                + type(texts).__name__
            )
        given: Any = texts
        listed = list(given)
        parts = self._parts(scope, len(listed))
        results = self._current.checked().search(search.query_many, listed, criterion, parts)
        return ResultList(ResultList(matches[:most]) for matches in results)

    def neighbours(
        self,
        key: Key,
        threshold: float | None = None,
        max_results: int | None = None,
        measure: MeasureName = "jaccard",
        language: str | None = None,
    ) -> list[Match]:
        """Return the documents that are similar to an indexed document, best first, without itself.

        Of two similar documents each is a neighbour of the other; duplicates() lists which to remove.
        The other arguments are those of query(). In a scoped corpus the documents of its scope are
        searched.

        Args:
            key: the key of the document.

        Examples:
            >>> corpus.neighbours("monday")
            [Match(key='update', similarity=0.9, differs=())]
        """
        stored_key = self._key(key)
        most = checked_count(max_results, "max_results")
        if self._is_on_server("", threshold, measure, language):
            limits = self._search_threshold(threshold), most
            return ResultList(
                self._current.search(search_on_server.neighbours, stored_key, *limits)
            )
        from textsim_db.read import search

        criterion = self._criterion(measure, threshold, language)
        return ResultList(
            self._current.checked().search(search.neighbours, stored_key, criterion)[:most]
        )

    def nearest(
        self, text: str, k: int = 10, language: str | None = None, scope: Scope | None = None
    ) -> list[Match]:
        """Return the k documents that are most similar to a text, best first, without a threshold.

        In a corpus or a scope of at most 30 documents it compares all with the text. In a larger exact
        corpus it looks the text up by the rarest shingles of each document: the lower its threshold, the
        more of them. Every document from its threshold on is found. Below it, it compares the k + 30
        documents that share the most of these shingles, and misses others. In a corpus that is not exact
        it compares all of at most 1,000 documents, and refuses more. There are fewer than k matches if
        no others are found. The other arguments are those of query().

        Args:
            k: the largest number of matches.

        Raises:
            ConfigurationError: a larger corpus is not exact, or another argument is out of range.

        Examples:
            >>> titles = db.create_corpus("titles", threshold=0.5, recall=1)
            >>> titles.add("a", "The city council approved the new budget for schools.").added
            1
            >>> titles.nearest("The mayor says that the city council will meet.", k=3)
            [Match(key='a', similarity=0.07692307692307693, differs=())]
        """
        count = check_count(k, "k", 1, 2**31 - 1)
        if not self.config.is_exact:
            self._current.call(search_on_server.check_nearest, self._scope(scope))
        if self._is_on_server(text, None, "jaccard", language):
            limit = self._scope(scope)
            return ResultList(self._current.search(search_on_server.nearest, text, count, limit))
        from textsim_db.read import search

        limits = self._language(language), self._part(scope)
        return ResultList(self._current.checked().search(search.nearest, text, count, *limits))

    def distinct(
        self,
        keys: Iterable[Key],
        max_results: int | None = None,
        threshold: float | None = None,
        guards: bool = True,
        missing: Literal["refuse", "keep"] = "refuse",
    ) -> list[Distinct[str]]:
        """Return the results of a search without copies; only these documents are read.

        Copies are those of distinct() of texts. The documents are compared with each other, exactly.

        Args:
            keys: the keys of documents in order of rank, such as those of your own search. A key that
                comes again counts once.
            max_results: the largest number of results, which is applied after copies are left out; None
                returns all.
            threshold: the lowest similarity of a copy; by default that of a twin. It may be lower than
                the threshold of the corpus.
            guards: if it is false, a copy is any match, whatever guards or judgements say.
            missing: `"refuse"` a key without a document, or `"keep"` such keys as results of their own,
                for example of documents that wait for a worker.

        Raises:
            DocumentNotFound: no document has one of the keys, and missing is "refuse".

        Examples:
            >>> for result in corpus.distinct(["update", "recipe", "monday"], max_results=10):
            ...     print(result)
            Distinct(key='update', rank=1, copies=('monday',))
            Distinct(key='recipe', rank=2, copies=())
        """
        listed = several_items(keys, "distinct() takes several keys, such as [a, b]")
        stored = [self._key(key) for key in listed]
        most = checked_count(max_results, "max_results")
        limit = None if threshold is None else check_threshold(threshold)
        is_guarded = check_flag(guards, "guards")
        return ResultList(
            self._current.search(
                search_on_server.distinct, stored, most, limit, is_guarded, missing
            )
        )

    def _is_on_server(
        self, text: str, threshold: float | None, measure: str, language: str | None
    ) -> bool:
        """Say whether the server computes a search: if it was opened with on_server."""
        return (
            not self._current.store.corpus.is_checked
            and language is None
            and search_on_server.is_possible(self.config, text, threshold, measure)
        )

    def candidates(
        self, text: str, language: str | None = None, scope: Scope | None = None
    ) -> list[Candidate]:
        """Return the documents that share a bucket with a text, without verifying them.

        In an exact corpus they share as many buckets as the sizes of both texts require. The documents
        that share most buckets come first. language and scope are those of query().

        Examples:
            >>> text = "The city council approved the new budget for schools"
            >>> [candidate.key for candidate in corpus.candidates(text)]
            ['update', 'monday']
        """
        from textsim_db.read import search

        limits = self._language(language), self._part(scope)
        return ResultList(self._current.checked().search(search.candidates_of, text, *limits))

    def explain(self, a: Key, b: Key) -> Explanation:
        """Compare two indexed documents by every measure, and word by word.

        Only the words of a document are stored, so the result shows texts in normal form. It says which
        guards of the corpus keep the two from being merged, and whether their scopes differ.

        Raises:
            MeasureError: the documents have millions of words and little in common.

        Examples:
            >>> explanation = corpus.explain("monday", "update")
            >>> explanation.measures["jaccard"], explanation.only_a
            (0.9, ['on monday evening'])
        """
        from textsim_db.measures import explanation
        from textsim_db.text.guard_lines import elements_apart

        keys = (self._key(a), self._key(b))
        one, other = map(self._side, keys)
        explained = explanation.explain_sides(one, other, keys)
        apart = elements_apart(one.words, other.words, self.config.guard_rules)
        scopes = None
        if self.config.scoped:
            scopes = self._current.call(search_on_server.scopes_apart, *keys)
        return replace(explained, guards=apart, scopes=scopes)

    def _side(self, key: str) -> Side:
        side = self._current.call(search_on_server.side_of, key)
        if side is not None:
            return side
        from textsim_db.measures import explanation
        from textsim_db.read import search

        form = self._current.checked().search(search.normal_form_of, key)
        return explanation.side_of_form(form, self.config)
