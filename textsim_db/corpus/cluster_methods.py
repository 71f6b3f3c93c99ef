"""Pairs, clusters and duplicates of a corpus, and what holds a cluster together."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DocumentNotFound, MeasureError
from textsim_db.files.arrow_frames import ResultColumns, Results
from textsim_db.results import (
    Cluster,
    ClusterEvent,
    Duplicate,
    InspectedCluster,
    Member,
    Pair,
    Split,
)
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import (
    check_callable,
    check_count,
    check_duration,
    check_flag,
    check_threshold,
    several_items,
)
from textsim_db.settings.named_values import (
    LinkageName,
    MeasureName,
    ModeName,
    check_linkage,
)
from textsim_db.sync import pending_log, upkeep
from textsim_db.text.storable import Key, Scope

if TYPE_CHECKING:
    from textsim_db.measures.explanation import PairDifferences
    from textsim_db.read.list_clusters import ClusterRules


Parameters = ParamSpec("Parameters")

_COMPARED_AT_ONCE = 1_000
"""The pairs whose documents are read in one statement."""


class ClusterMethods(CheckedArguments):
    """Methods that compare all documents with each other, and keep their clusters."""

    def pairs(
        self,
        threshold: float | None = None,
        measure: MeasureName = "jaccard",
        language: str | None = None,
        scope: Scope | None = None,
    ) -> Results[Pair[str]]:
        """Return the pairs of similar documents, each pair once and verified exactly.

        An exact corpus (recall 1) finds every pair. Any other corpus finds the share `recall` of the
        pairs at its threshold, by default 95 %, and more of those above it. In each pair a < b. The
        pairs come from one snapshot, whose transaction stays open until the results are exhausted or
        closed. threshold and measure are those of query(), with the same warnings. With a measure other
        than jaccard all pairs of a bucket are compared, even in a bucket with many documents.

        Args:
            language: a code of ISO 639; both documents must be of this language.
            scope: only documents of this scope are compared. By default the documents of
                all scopes are, each scope by itself.

        Raises:
            MeasureError: the measure depends on the order of the documents, as containment does.

        Examples:
            >>> list(corpus.pairs())
            [Pair(a='monday', b='update', similarity=0.9)]
        """
        from textsim_db.read import list_pairs

        criterion = self._criterion(measure, threshold, language, self._part_of_pairs(scope))
        if not criterion.measure.is_symmetric:
            raise MeasureError(f"{measure} depends on the order of two documents; use overlap")

        return Results(Pair, partial(self._pairs, list_pairs.pairs, criterion))

    def clusters(
        self,
        threshold: float | None = None,
        linkage: LinkageName = "single",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
    ) -> Results[Cluster[str]]:
        """Return the clusters of similar documents, the largest first; each has two keys or more.

        The pairs are those of pairs(), so only an exact corpus has all of them. Only verified pairs
        connect documents. `weakest` is the similarity of the weakest link that
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
            scope: only documents of this scope are compared. By default the documents of
                all scopes are, each scope by itself.
            judgements: whether the judgements of the corpus are obeyed; see judge().

        Examples:
            >>> list(corpus.clusters())
            [Cluster(keys=('monday', 'update'), weakest=0.9, kept=None)]
        """
        from textsim_db.read import list_clusters

        criterion = self._criterion("jaccard", threshold, language, self._part_of_pairs(scope))
        rules = _rules(linkage, rank, judgements)
        return Results(Cluster, partial(self._pairs, list_clusters.clusters, criterion, rules))

    def duplicates(
        self,
        threshold: float | None = None,
        linkage: LinkageName = "kept",
        rank: Callable[[str], Any] | None = None,
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
    ) -> Results[Duplicate]:
        """Return the documents to remove so that each cluster keeps one document.

        The pairs are those of pairs(), so only an exact corpus has all of them. Nothing is removed; pass
        the keys to remove(). With linkage `"kept"` each document to remove
        is a verified pair with the document that is kept in its place. With the other linkages of
        clusters() their similarity may be below the threshold. The arguments are those of clusters();
        the document with the lowest rank of a cluster is kept with each linkage.

        Examples:
            >>> duplicates = list(corpus.duplicates())
            >>> duplicates
            [Duplicate(key='update', kept='monday', similarity=0.9)]
            >>> corpus.remove(duplicate.key for duplicate in duplicates)
            1
        """
        from textsim_db.read import list_clusters

        criterion = self._criterion("jaccard", threshold, language, self._part_of_pairs(scope))
        rules = _rules(linkage, rank, judgements)
        return Results(Duplicate, partial(self._pairs, list_clusters.duplicates, criterion, rules))

    def split(
        self,
        shares: Mapping[str, float],
        random_seed: int = 0,
        stratify: Callable[[str], Hashable] | None = None,
        threshold: float | None = None,
        language: str | None = None,
        scope: Scope | None = None,
    ) -> Split[str]:
        """Split the documents at random into subsets such as train and test; no similar pair is cut.

        It splits documents as split() splits texts, and their arguments are the same. The clusters are
        those of clusters().

        Args:
            threshold: the lowest similarity of a pair that is not cut; by default that of the corpus.
            language: a code of ISO 639, to split only the documents of this language.
            scope: only the documents of this scope are split.

        Raises:
            ConfigurationError: the corpus does not find all pairs at the threshold, the shares do not
                sum to 1, a subset would be empty, or an argument is out of range.

        Examples:
            >>> corpus.rebuild(recall=1.0)
            True
            >>> split = corpus.split({"train": 0.5, "test": 0.5})
            >>> split.subsets["train"], split.largest
            (('monday', 'update'), 2)
        """
        from textsim_db.cluster import draw_subsets
        from textsim_db.read import list_clusters

        checked = draw_subsets.check_shares(shares, random_seed)
        check_callable(stratify, "stratify")
        criterion = self._criterion("jaccard", threshold, language, self._part_of_pairs(scope))
        if not self.config.is_exact or criterion.threshold < self.config.threshold:
            raise ConfigurationError(
                f'corpus "{self.name}" does not find all pairs at {criterion.threshold:g}, so similar '
                f"documents would be cut; textsim rebuild {shlex.quote(self.name)} --recall 1 "
                f"--threshold {criterion.threshold:g}"
            )
        stratum_of = stratify or (lambda key: None)
        return self._current.search(
            list_clusters.split, criterion, checked, random_seed, stratum_of
        )

    def inspect_clusters(
        self,
        threshold: float | None = None,
        linkage: LinkageName = "single",
        language: str | None = None,
        scope: Scope | None = None,
        *,
        judgements: bool = False,
        fewest: int = 2,
    ) -> list[InspectedCluster]:
        """Return the clusters of clusters(), each with an inspection.

        At most 50 members of a cluster are compared with each other. A cluster that a template holds
        together is often false: rebuild(boilerplate=...) leaves the template out. The other arguments
        are those of clusters().

        Args:
            fewest: the members of the smallest cluster that is returned.

        Examples:
            >>> [(cluster, inspection)] = corpus.inspect_clusters()
            >>> inspection.least, inspection.is_exact, inspection.held_by_template
            (0.9, True, False)
        """
        from textsim_db.read import list_clusters

        criterion = self._criterion("jaccard", threshold, language, self._part_of_pairs(scope))
        check_count(fewest, "fewest", 2, 2**31)
        rules = _rules(linkage, None, judgements)
        return ResultList(self._current.search(list_clusters.inspected, criterion, rules, fewest))

    def differences(
        self, pairs: Iterable[Pair[str] | tuple[Key, Key]]
    ) -> Generator[PairDifferences, None, None]:
        """Yield where the documents of each pair differ, word by word.

        It computes no measure and reads many documents at once, so it takes a small part of the time of
        explain(). Only the words of a document are stored, so the result shows texts in normal form.

        Args:
            pairs: pairs of keys, such as those of pairs(), which are read while the result is.

        Raises:
            ConfigurationError: a pair has no two keys.
            MeasureError: the documents have millions of words and little in common.

        Examples:
            >>> (pair,) = corpus.differences(corpus.pairs())
            >>> [(run.a, run.b) for run in pair.diff if run.change != "same"]
            [('evening ', '')]
        """
        from textsim_db.measures import explanation
        from textsim_db.read import stored_documents

        given = iter(
            several_items(pairs, "differences() takes several pairs of keys, such as [(a, b)]")
        )
        while batch := [self._two_keys(pair) for pair in islice(given, _COMPARED_AT_ONCE)]:
            keys = list(dict.fromkeys(key for pair in batch for key in pair))
            forms = self._current.call(stored_documents.forms, keys)
            for key in keys:
                if key not in forms:
                    raise DocumentNotFound(f'corpus "{self.name}" has no document {key!r:.100}')
            yield from explanation.differences_of(batch, forms)

    def _two_keys(self, pair: Pair[str] | tuple[Key, Key]) -> tuple[str, str]:
        if not isinstance(pair, tuple | list) or len(pair) < 2:
            raise ConfigurationError(f"a pair is {pair!r:.100}; expected two keys such as (a, b)")
        return self._key(pair[0]), self._key(pair[1])

    def _pairs(
        self,
        function: Callable[Concatenate[Store, Parameters], Generator[ResultColumns, None, None]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Generator[ResultColumns, None, None]:
        """Yield the columns of a reader of all pairs, after a warning about unindexed changes."""
        self._current.call(pending_log.warn_unindexed)
        yield from self._current.stream(function, *args, **kwargs)

    def track(
        self,
        linkage: LinkageName = "kept",
        threshold: float | None = None,
        *,
        mode: ModeName = "queue",
        keep_events: timedelta | str | None = timedelta(days=30),
    ) -> None:
        """Keep the matches and clusters of the corpus in tables that stay current.

        A worker or update_clusters() computes them: first of all documents, and then of each change.
        They obey judgements; see judge(). members() reads them.

        Args:
            linkage: `"kept"`: every member matches the document that is kept, and documents are
                considered in the order in which they were added. clusters() computes others on demand.
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
            >>> [(member.key, member.similarity) for member in corpus.members("update")]
            [('monday', 1.0), ('update', 0.9)]
            >>> corpus.untrack()
        """
        how = check_linkage(linkage)
        limit = None if threshold is None else check_threshold(threshold)
        kept = check_duration(keep_events, "keep_events")
        self._current.loaded().call_once(upkeep.track, how, limit, mode, kept)

    def untrack(self) -> None:
        """Remove the matches and clusters of a tracked corpus, and their history; documents stay."""
        self._current.loaded().call_once(upkeep.untrack)

    def update_clusters(self) -> int:
        """Bring the clusters of a tracked corpus up to date; return the number of changed documents.

        A worker does the same. Each transaction processes some five thousand documents.
        """
        return self._current.loaded().search(upkeep.update)

    def members(self, key: Key | None = None) -> Results[Member]:
        """Return the documents of all clusters of a tracked corpus, one cluster after the other.

        Documents that changed since the last update have the clusters that they had then.

        Args:
            key: only the cluster of this document, with itself; none if nothing matches it.
        """
        own = None if key is None else self._key(key)
        return Results(Member, partial(self._current.loaded().stream, upkeep.members, own))

    def cluster_events(self, after: int = 0) -> Generator[ClusterEvent, None, None]:
        """Yield what happened to the clusters of a tracked corpus, in order.

        Args:
            after: the id of the last event that was read. No event comes later with a lower id.
        """
        yield from self._current.loaded().stream(upkeep.cluster_events, after)


def _rules(linkage: str, rank: Callable[[str], Any] | None, judgements: bool) -> ClusterRules:
    from textsim_db.read import list_clusters

    how = check_linkage(linkage)
    check_callable(rank, "rank")
    return list_clusters.ClusterRules(how, rank, check_flag(judgements, "judgements"))
