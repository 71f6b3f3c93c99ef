"""Tracked clusters: matches and clusters in tables that stay current."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from textsim_db.check_values import check_duration, check_threshold
from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.frames.arrow_results import Results
from textsim_db.lazy_imports import lazy
from textsim_db.results import ClusterEvent, Member
from textsim_db.settings import check_linkage
from textsim_db.write.document_inputs import Key

if TYPE_CHECKING:
    from textsim_db.sync import tracked_clusters
else:
    tracked_clusters = lazy("textsim_db.sync.tracked_clusters", globals())


class TrackingMethods(CheckedArguments):
    """Methods that keep and read the clusters of a tracked corpus."""

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

    def members_of(self, key: Key) -> Results[Member]:
        """Return the documents of the cluster of a document, with itself; none if nothing matches it.

        Raises:
            ConfigurationError: the corpus is not tracked.
            DocumentNotFound: the key is none that a document can have.
        """
        stream, own = self._current.loaded().stream, self._key(key)
        return Results(Member, partial(stream, tracked_clusters.members_of, own))

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
