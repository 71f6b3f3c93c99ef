"""Status, integrity, statistics and recall of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from textsim_db.base.progress_bar import showing
from textsim_db.corpus.arguments import CheckedArguments, checked_count
from textsim_db.errors import ConfigurationError, DatabaseError, RecipeError
from textsim_db.results import (
    Boilerplate,
    Failure,
    Problem,
    RecallReport,
    ScopeStatus,
    Statistics,
    Status,
)
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import check_count, check_flag, check_threshold
from textsim_db.sync import pending_log
from textsim_db.text.storable import Scope


class ReportMethods(CheckedArguments):
    """Methods that measure a corpus as a whole, and show its state."""

    def measure_recall(
        self,
        threshold: float | None = None,
        sample: int = 1000,
        seed: int | None = None,
        progress: Callable[[int, int], None] | bool | None = None,
        scope: Scope | None = None,
    ) -> RecallReport:
        """Measure the recall of searches: compare a random sample with all documents by brute force.

        `textsim_db.plan(words=report.words, documents=report.documents)` lists what other settings cost.

        Args:
            threshold: the similarity from which a pair counts; by default the corpus's threshold.
            sample: the number of documents in the sample.
            seed: chooses the sample; by default every call takes another sample.
            scope: the documents of this scope are compared; a scoped corpus requires it.

        Examples:
            >>> report = corpus.measure_recall()
            >>> report.pairs, report.recall, report.missed
            (1, 1.0, [])
        """
        from textsim_db.read import measure_recall

        checked = self._threshold(threshold)
        check_count(sample, "sample", 1, 2**31)
        if seed is not None:
            check_count(seed, "seed", 0, 2**63 - 1)
        chosen = measure_recall.SampleOfPart(sample, seed, self._part(scope))
        with showing(progress, "comparing", "documents") as show:
            return self._current.search(measure_recall.measure_recall, checked, chosen, show)

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
            language: a code of ISO 639, to count only the documents of this language.
            scope: counts only the documents of this scope.

        Examples:
            >>> statistics = corpus.statistics(words=1)
            >>> statistics.documents, statistics.words, statistics.frequent
            (3, 34, [Frequency(word='the', occurrences=5, documents=3)])
        """
        from textsim_db.read import corpus_statistics

        limits = corpus_statistics.Limits(self._language(language), self._part_of_pairs(scope))
        check_count(words, "words", 0, 2**31)
        check_count(sample, "sample", 0, 2**31)
        check_count(seed, "seed", 0, 2**63 - 1)
        with showing(progress, "reading", "documents") as show:
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
            share: list the shingles that more than this share of the texts has: above 0, at most 1.
            last: the number of shingles to return at most; None: all.
            clusters: compute the clusters of the corpus, to count the clusters that a shingle holds. The
                clusters of a tracked corpus are always counted.
        """
        from textsim_db.read import boilerplate_values

        checked = check_threshold(share, "share")
        check_flag(clusters, "clusters")
        criterion = self._criterion("jaccard", None, None, None) if clusters else None
        limit = checked_count(last, "last")
        return self._current.call(boilerplate_values.boilerplate, checked, limit, criterion)

    def status(self) -> Status:
        """Return how many documents are indexed, wait for a worker, or were set aside.

        Examples:
            >>> status = corpus.status()
            >>> status.indexed, status.pending
            (3, 0)
        """
        return self._current.loaded().call(pending_log.status)

    def scopes(self, scope: Scope | None = None) -> list[ScopeStatus]:
        """Return the scopes with the number of their documents, the largest scope first.

        Args:
            scope: only this scope, if it has documents. No others are read.
        """
        if not self.config.scoped:
            raise ConfigurationError(f'corpus "{self.name}" is not scoped')
        checked = None if scope is None else self._scope(scope)
        return ResultList(self._current.loaded().call(pending_log.scopes, checked))

    def pending(self, last: int | None = None, *, retry: bool = False) -> list[Failure]:
        """Return the documents that were set aside because they could not be indexed, with reasons.

        Args:
            last: return only this number of documents, the latest ones.
            retry: let workers try again to index all that was set aside.
        """
        checked, is_retried = checked_count(last, "last"), check_flag(retry, "retry")
        return ResultList(self._current.loaded().call(pending_log.failures, checked, is_retried))

    def check(self, progress: Callable[[int], None] | bool | None = None) -> list[Problem]:
        """Check the integrity of the corpus: return every stored row that contradicts another row.

        An empty list means that the corpus is intact.

        Examples:
            >>> corpus.check()
            []
        """
        from textsim_db.read import check_corpus

        with showing(progress, "checking", "documents") as show:
            while True:
                # The catalog has no snapshot: a corpus that is rebuilt meanwhile seems to lack tables.
                try:
                    problems = self._current.call(check_corpus.check, show)
                except DatabaseError:
                    if not self._is_rebuilt():
                        raise
                    continue
                if not problems or not self._is_rebuilt():
                    return ResultList(problems)

    def _is_rebuilt(self) -> bool:
        """Return whether the corpus was rebuilt; False if its stored settings are damaged."""
        with suppress(RecipeError):
            return self._current.load()
        return False
