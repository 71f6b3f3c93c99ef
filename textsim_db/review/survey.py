"""Reads the pairs in the background, while the first pages show the pairs of a few random documents."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.spanning_forest import Forest, Links, joined_links
from textsim_db.errors import TextsimError
from textsim_db.results import Pair
from textsim_db.review.corpus_documents import CorpusDocuments, RandomMatches
from textsim_db.review.pair_arrays import HUNDREDTHS, Column, Largest, Pairs, bins_of
from textsim_db.review.rendering import compare_texts
from textsim_db.review.report_documents import ReportDocuments
from textsim_db.review.reviewed_clusters import StoredClusters

MOST_PAIRS = 1_000_000
"""The pairs that are kept to look at; a pair takes 40 bytes."""
MOST_WARNED = 2_000
"""The pairs nearest to the threshold that are compared word by word, to warn of them."""
_LARGE_SHARE = 0.1
"""A cluster with this share of all documents is worth a warning."""
_FEWEST_OF_LARGE = 10
"""Smaller clusters are read quickly, and cause no warning."""
_LINKED_AT_ONCE = 50_000
MOST_SIBLINGS = 100_000
"""The siblings that are read: a template that many texts fill in makes more than anybody looks at."""
_WARNED_AT_ONCE = 100
_KEYS_AT_ONCE = 10_000
_END_PATIENCE = 5
"""Seconds; a large corpus yields its first pair after minutes."""


Reviewed = CorpusDocuments | ReportDocuments
"""The documents that are reviewed, and what people said of them."""


class Survey:
    def __init__(self, reviewed: Reviewed) -> None:
        self._reviewed = reviewed
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._is_stopped = threading.Event()
        self._has_begun = threading.Event()
        self.documents = 0
        """The number of documents."""
        self.count = 0
        """The pairs that were read so far."""
        self.pairs: Pairs | None = None
        """All pairs, or until they were read the pairs of a few documents; None at first."""
        self.siblings: Pairs | None = None
        """The first matches that a guard keeps from being merged; None until they were read."""
        self.clusters: StoredClusters | None = None
        """The stored clusters of a tracked corpus."""
        self.is_complete = False
        self.error: TextsimError | None = None
        """The error that ended the reading."""

    def start(self) -> None:
        self._thread.start()

    def wait(self) -> None:
        """Wait until all pairs and siblings were read, and warnings looked for."""
        self._thread.join()

    def wait_for_some(self, seconds: float) -> None:
        """Wait until there is something to show, but not for longer than this."""
        self._has_begun.wait(seconds)

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join(_END_PATIENCE)

    def suspicious(self, largest: Largest | None) -> Largest | None:
        """Return the largest cluster if it is worth a warning: a large part of all documents."""
        if largest is None or largest.documents < _FEWEST_OF_LARGE:
            return None
        return largest if largest.documents >= _LARGE_SHARE * self.documents else None

    def _read(self) -> None:
        try:
            self._begin()
            with (
                closing(self._reviewed.pairs()) as every,
                closing(self._until_stopped(every)) as pairs,
            ):
                for state in read_pairs(pairs, self._reviewed.threshold):
                    if isinstance(state, Pairs):
                        self._finish(state)
                    else:
                        self.count = state
            if self._reviewed.guards:
                self._read_siblings()
        except TextsimError as error:
            self.error = error
        finally:
            self._has_begun.set()

    def _begin(self) -> None:
        matches = self._reviewed.random_matches()
        self.documents = self._reviewed.count()
        if matches is not None and matches.documents < self.documents:
            self.pairs = estimated(matches, self.documents, self._reviewed.threshold)
            self._has_begun.set()

    def _read_siblings(self) -> None:
        with (
            closing(self._reviewed.siblings()) as every,
            closing(self._until_stopped(every)) as pairs,
        ):
            siblings = all_pairs(islice(pairs, MOST_SIBLINGS), self._reviewed.threshold)
            self._add_traits(siblings)
            self.siblings = siblings

    def _finish(self, pairs: Pairs) -> None:
        """Publish all pairs, and after that what takes longer."""
        self.clusters = self._reviewed.stored_clusters()
        self._add_traits(pairs)
        for prepared in ("key_ranks", "all_links", "spread", "effects"):
            getattr(pairs, prepared)
        self.pairs, self.is_complete = pairs, True
        self._has_begun.set()
        pairs.warned = self._warned(pairs)
        vars(pairs).pop("teaching", None)

    def _add_traits(self, pairs: Pairs) -> None:
        traits = [
            self._reviewed.traits(pairs.keys[start : start + _KEYS_AT_ONCE])
            for start in range(0, len(pairs.keys), _KEYS_AT_ONCE)
        ]
        traits_of = {key: each for batch in traits for key, each in batch.items()}
        for name in ("language", "scope"):
            column = Column.of(getattr(traits_of.get(key), name, None) for key in pairs.keys)
            setattr(pairs, f"{name}s", column)

    def _warned(self, pairs: Pairs) -> Int64Array:
        """Return the pairs near the threshold whose different words are all dates, numbers or so."""
        warned: list[int] = []
        nearest = pairs.near[:MOST_WARNED].tolist()
        for start in range(0, len(nearest), _WARNED_AT_ONCE):
            batch = nearest[start : start + _WARNED_AT_ONCE]
            listed = [pairs.pair(number) for number in batch]
            texts = self._reviewed.texts(sorted({key for pair in listed for key in pair[:2]}))
            for number, (a, b, _) in zip(batch, listed, strict=True):
                if self._is_stopped.is_set():
                    break
                if a in texts and b in texts and compare_texts(texts[a], texts[b]).distinctions:
                    warned.append(number)
        return np.array(warned, np.int64)

    def _until_stopped(self, pairs: Iterable[Pair[str]]) -> Generator[Pair[str], None, None]:
        for pair in pairs:
            if self._is_stopped.is_set():
                return
            yield pair


def read_pairs(pairs: Iterable[Pair[str]], threshold: float) -> Iterator[int | Pairs]:
    numbers: dict[str, int] = {}
    forest = Forest()
    histogram = np.zeros(HUNDREDTHS + 1, np.int64)
    kept, waiting, count = joined_links([]), list[Links](), 0
    rest = iter(pairs)
    while batch := list(islice(rest, _LINKED_AT_ONCE)):
        links = Links(
            np.array([numbers.setdefault(pair.a, len(numbers)) for pair in batch], np.int64),
            np.array([numbers.setdefault(pair.b, len(numbers)) for pair in batch], np.int64),
            np.array([pair.similarity for pair in batch]),
        )
        forest.add(links)
        np.add.at(histogram, bins_of(links.similarity), 1)
        waiting.append(links)
        count += len(batch)
        yield count
        if len(waiting) * _LINKED_AT_ONCE >= MOST_PAIRS:
            kept, waiting = _nearest(joined_links([kept, *waiting]), threshold), []
    kept = _nearest(joined_links([kept, *waiting]), threshold)
    near = np.argsort(np.abs(kept.similarity - threshold), kind="stable")
    yield Pairs(list(numbers), kept, forest.links(), histogram, near)


def all_pairs(pairs: Iterable[Pair[str]], threshold: float) -> Pairs:
    *_, last = read_pairs(pairs, threshold)
    assert isinstance(last, Pairs)
    return last


def estimated(matches: RandomMatches, documents: int, threshold: float) -> Pairs:
    """Return the pairs of random documents, and how many pairs of each similarity there are in all."""
    pairs = all_pairs(sorted(set(matches.pairs)), threshold)
    ends = np.zeros(HUNDREDTHS + 1, np.int64)
    np.add.at(ends, bins_of(np.array([pair.similarity for pair in matches.pairs])), 1)
    pairs.histogram = np.rint(ends * documents / max(2 * matches.documents, 1)).astype(np.int64)
    pairs.sampled = matches.documents
    return pairs


def _nearest(links: Links, threshold: float) -> Links:
    if len(links.left) <= MOST_PAIRS:
        return links
    distances = np.abs(links.similarity - threshold)
    chosen = np.zeros(len(distances), np.bool_)
    chosen[np.argpartition(distances, MOST_PAIRS)[:MOST_PAIRS]] = True
    return links.take(chosen)
