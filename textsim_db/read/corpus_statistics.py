"""Statistics of a corpus: its documents, words, similarities, buckets, and their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, LiteralString, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int32Array, Int64Array, kernel
from textsim_db.base.run_ahead import cut
from textsim_db.compare.brute_force import BINS
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.dictionary import dictionary_of, unknown_word
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search, statistics_statements as statements
from textsim_db.read.snapshot import fetch, snapshot
from textsim_db.read.stored_documents import (
    DOCUMENTS_AT_ONCE,
    WordNumbers,
    normal_forms,
    stored_word_numbers,
)
from textsim_db.results import Statistics
from textsim_db.results.reports import Frequency, Growth

GROWTH_POINTS = 20
QUANTILES = (0, 5, 25, 50, 75, 95, 100)


class Sample(NamedTuple):
    size: int
    seed: int


class Limits(NamedTuple):
    """The documents that are counted: of one language, of one part, or of both."""

    language: str | None = None
    part: int | None = None


def statistics(
    store: Store,
    words: int,
    sample: Sample,
    limits: Limits,
    progress: Callable[[int, int], None] | None,
) -> Statistics:
    """Return the statistics of a corpus, in one snapshot except the matches of the sample."""
    vocabulary = WordNumbers(dictionary_of(store))
    with snapshot(store.engine) as connection:
        reader = _Reader(connection, store, limits)
        languages = dict(reader.fetch(statements.COUNT_LANGUAGES))
        counts = reader.count_words(vocabulary, sum(languages.values()), progress)
        is_all = limits == Limits() and not store.corpus.alive
        sizes = statements.BUCKET_SIZES if is_all else statements.BUCKET_SIZES_OF_SOME
        buckets = [(int(size), int(number)) for size, number in reader.fetch(sizes)]
        storage = _storage(reader.fetch(statements.STORAGE))
        chosen = reader.fetch(statements.RANDOM_DOCUMENTS, seed=sample.seed, sample=sample.size)
    similarities = _similarities(store, chosen, limits.language)
    return Statistics(
        recall=store.corpus.config.recall,
        documents=len(counts.lengths),
        empty=int((counts.lengths == 0).sum()),
        words=int(counts.lengths.sum()),
        vocabulary=counts.distinct,
        growth=_growth(counts),
        frequent=_frequent(counts, vocabulary, words),
        languages={name: count for name, count in languages.items() if name is not None},
        lengths=_quantiles(counts),
        sampled=len(chosen),
        candidates=len(similarities),
        similarities=np.histogram(similarities, BINS, (0, 1))[0].tolist(),
        buckets=buckets,
        storage=storage,
    )


class _Reader:
    """Reads all documents, or a part of them, in one snapshot."""

    def __init__(self, connection: Connection, store: Store, limits: Limits) -> None:
        self._connection = connection
        self._corpus = store.corpus
        self._limits = limits._asdict()

    def fetch(self, statement: LiteralString, **parameters: Any) -> list[tuple[Any, ...]]:
        return fetch(self._connection, self._corpus, statement, parameters | self._limits)

    def count_words(
        self, vocabulary: WordNumbers, total: int, progress: Callable[[int, int], None] | None
    ) -> WordCounts:
        counts, last_id, done = WordCounts(), 0, 0
        with self._connection.cursor(self._corpus.label("words"), binary=True) as cursor:
            cursor.itersize = DOCUMENTS_AT_ONCE
            cursor.execute(self._corpus.statement(statements.WORDS), self._limits)
            for rows in cut(cursor, DOCUMENTS_AT_ONCE, lambda row: 4 * len(row[0] or row[1])):
                waiting = {i: form for i, (word_ids, form) in enumerate(rows) if word_ids is None}
                words, offsets = stored_word_numbers([row[0] for row in rows], waiting, vocabulary)
                # The array of counts is as long as the highest id, and the id of a damaged document
                # may be any number. So an id above the dictionary's last one is refused.
                highest = int(words.max(initial=0))
                if highest > last_id and highest > (last_id := vocabulary.dictionary.last()):
                    raise unknown_word(highest)
                counts.add(words, offsets)
                done += len(rows)
                if progress is not None:
                    progress(done, total)
        return counts


def _similarities(store: Store, chosen: list[tuple[Any, ...]], language: str | None) -> list[float]:
    forms = normal_forms(
        [row[1] for row in chosen], [row[2] for row in chosen], dictionary_of(store)
    )
    parts = np.array([row[3] for row in chosen], np.int64) if store.corpus.config.scoped else None
    matches = search.query_forms(store, forms, Criterion(JACCARD, 0.0, language), parts)
    return [
        match.similarity
        for (key, *_), each in zip(chosen, matches, strict=True)
        for match in each
        if match.key != key
    ]


def _storage(rows: list[tuple[Any, ...]]) -> dict[str, int]:
    return {
        f"{table}{kind}": int(value)
        for table, (_, *sizes) in zip(
            ("documents", "band rows", "fingerprints"), rows, strict=False
        )
        for kind, value in zip(("", ", indexes"), sizes, strict=True)
    }


def _growth(counts: WordCounts) -> list[Growth]:
    distinct, words = counts.growth, np.cumsum(counts.lengths)
    ends = np.unique(np.linspace(0, len(distinct), GROWTH_POINTS + 1).astype(np.int64)[1:])
    return [Growth(int(i), int(words[i - 1]), int(distinct[i - 1])) for i in ends if i]


def _frequent(counts: WordCounts, vocabulary: WordNumbers, most: int) -> list[Frequency]:
    places = np.argsort(-counts.occurrences, kind="stable")[: min(most, counts.distinct)]
    texts = vocabulary.texts(words_at(places).tolist())
    return [
        Frequency(text, int(counts.occurrences[place]), int(counts.documents[place]))
        for text, place in zip(texts, places.tolist(), strict=True)
    ]


def _quantiles(counts: WordCounts) -> dict[int, int]:
    if not len(counts.lengths):
        return dict.fromkeys(QUANTILES, 0)
    values = np.percentile(counts.lengths, QUANTILES, method="nearest").tolist()
    return dict(zip(QUANTILES, values, strict=True))


class WordCounts:
    """Counts how often each word occurs, in how many documents, and how the vocabulary grows."""

    def __init__(self) -> None:
        self._by_place: Int64Array = np.zeros((3, 0), np.int64)
        self._growth: list[Int64Array] = []
        self._lengths: list[Int64Array] = []
        self._documents = 0

    @property
    def occurrences(self) -> Int64Array:
        """The number of occurrences of each word: int64 by place."""
        counts: Int64Array = self._by_place[0]
        return counts

    @property
    def documents(self) -> Int64Array:
        """The number of documents that each word occurs in: int64 by place."""
        counts: Int64Array = self._by_place[1]
        return counts

    @property
    def distinct(self) -> int:
        """The number of distinct words so far."""
        return int(self._growth[-1][-1]) if self._growth and len(self._growth[-1]) else 0

    @property
    def growth(self) -> Int64Array:
        """The number of distinct words up to each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._growth])

    @property
    def lengths(self) -> Int64Array:
        """The number of words of each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])

    def add(self, words: Int32Array, offsets: Int64Array) -> None:
        """Count the words of documents; offsets: (documents + 1,)."""
        places = places_of(words)
        self._make_room(int(places.max(initial=-1)) + 1)
        new = _count_words(places, offsets, self._documents, self._by_place)
        self._growth.append(self.distinct + np.cumsum(new))
        self._lengths.append(np.diff(offsets))
        self._documents += len(offsets) - 1

    def _make_room(self, places: int) -> None:
        size = self._by_place.shape[1]
        if places > size:
            added = np.zeros((3, max(places, 2 * size) - size), np.int64)
            self._by_place = np.concatenate((self._by_place, added), axis=1)


def places_of(words: Int32Array) -> Int64Array:
    """Return the place of each word: even for positive numbers, odd for negative ones."""
    wide = words.astype(np.int64)
    return np.where(wide >= 0, 2 * wide, -2 * wide - 1)


def words_at(places: Int64Array) -> Int64Array:
    return np.where(places % 2 == 0, places // 2, -(places + 1) // 2)


@kernel
def _count_words(
    places: Int64Array, offsets: Int64Array, documents_before: int, by_place: Int64Array
) -> Int64Array:
    """Add to the counts, and return the number of new words of each document."""
    occurrences, documents, last = by_place
    new = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(new)):
        document = documents_before + i + 1
        for k in range(offsets[i], offsets[i + 1]):
            place = places[k]
            new[i] += occurrences[place] == 0
            occurrences[place] += 1
            if last[place] != document:
                last[place] = document
                documents[place] += 1
    return new
