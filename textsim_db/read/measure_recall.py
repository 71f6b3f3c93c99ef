"""What a corpus really finds: a sample of its documents compared with all, by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare import jaccard
from textsim_db.compare.brute_force import BINS, Index, make_index, overlaps
from textsim_db.compare.prefix_filter import Rows
from textsim_db.db.binary_format import Array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read.pairs import snapshot
from textsim_db.read.stored_documents import Documents, Vocabulary
from textsim_db.results import Pair, RecallReport
from textsim_db.sketch import band_buckets
from textsim_db.sketch.band_options import Distribution, wilson
from textsim_db.text.streams import cut

CHUNK = 5000
Row = tuple[Any, ...]

_IDS = "SELECT id FROM {document} WHERE pg_catalog.cardinality(signature) > 0 ORDER BY id"
_COUNT = (
    "SELECT count(*), coalesce(avg(pg_catalog.cardinality(word_ids)), 0)::float8 FROM {document}"
)
_FIELDS = """
SELECT id, key, shingle_count, pg_catalog.array_send(word_ids), pg_catalog.array_send(signature),
    normal_form
FROM {document}
"""
_SOME = _FIELDS + "WHERE id = ANY (%s::bigint[]) ORDER BY id"
_ALL = _FIELDS + "WHERE pg_catalog.cardinality(signature) > 0"
_CANDIDATES = """
/* textsim-db: measure recall of corpus {id}: candidates */
SELECT count(DISTINCT b.document_id) - 1
FROM unnest(%s::integer[], %s::bigint[]) q (query, bucket)
JOIN {band} b ON b.bucket = q.bucket
GROUP BY q.query
"""


def measure(
    store: Store,
    threshold: float,
    sample: int,
    seed: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> RecallReport:
    """Compare a random sample with all documents, in one snapshot; see Corpus.measure_recall."""
    with snapshot(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        row = cursor.execute(store.corpus.statement(_COUNT)).fetchone()
        assert row is not None
        found = cursor.execute(store.corpus.statement(_IDS)).fetchall()
        ids = np.array([number for (number,) in found], np.int64)
        size = min(sample, len(ids))
        chosen = np.sort(np.random.default_rng(seed).choice(ids, size, replace=False))
        measured = _Measured(
            connection, Vocabulary(store.dictionary), store.corpus, threshold, chosen
        )
        return measured.report(int(row[0]), float(row[1]), progress)


class _Measured:
    """A sample, and what its documents have in common with all others."""

    def __init__(
        self,
        connection: Connection,
        vocabulary: Vocabulary,
        corpus: StoredCorpus,
        threshold: float,
        chosen: Ids,
    ) -> None:
        self._connection = connection
        self._vocabulary = vocabulary
        self._corpus = corpus
        self._threshold = threshold
        self._ids = chosen
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(corpus.statement(_SOME), [Array(chosen)]).fetchall()
        self._sample = Documents(corpus, vocabulary, rows)
        self._signatures = self._sample.signatures(np.arange(len(rows)), corpus.config.num_hashes)
        self._histogram = np.zeros(BINS + 1, np.int64)
        self._pairs: list[tuple[Pair, bool]] = []
        self._reached: dict[str, bool] = {}

    def report(
        self, documents: int, words: float, progress: Callable[[int, int], None] | None
    ) -> RecallReport:
        index = make_index(self._rows(self._sample))
        done = 0
        for chunk in self._chunks():
            self._compare(index, chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, documents)
        found = sum(1 for _, met in self._pairs if met)
        values = [pair.similarity for pair, _ in self._pairs]
        banding = self._corpus.config.banding
        promised = [banding.probability(value) for value in values]
        candidates = self._candidates()
        missed = sorted((p for p, met in self._pairs if not met), key=lambda p: -p.similarity)
        count = len(self._pairs)
        return RecallReport(
            threshold=self._threshold,
            documents=documents,
            words=words,
            sampled=len(self._ids),
            pairs=count,
            found=found,
            recall=found / count if count else None,
            interval=wilson(found, count),
            promised=sum(promised) / count if count else None,
            histogram=self._histogram.tolist(),
            candidates=candidates,
            missed=missed,
            lost=sorted(key for key, met in self._reached.items() if not met),
        )

    def _rows(self, documents: Documents) -> Rows:
        n = self._corpus.config.shingle.n
        return Rows(documents.tokens, documents.offsets, documents.shingle_counts, n)

    def _chunks(self) -> Iterator[list[Row]]:
        with self._connection.cursor(self._corpus.label("measure recall"), binary=True) as cursor:
            cursor.itersize = CHUNK
            cursor.execute(self._corpus.statement(_ALL))
            yield from cut(cursor, CHUNK, lambda row: 4 * len(row[3] or row[5]))

    def _compare(self, index: Index, rows: list[Row]) -> None:
        documents = Documents(self._corpus, self._vocabulary, rows)
        met = overlaps(index, self._rows(documents), self._threshold)
        self._histogram += met.histogram
        ids = np.array([row[0] for row in rows], np.int64)
        itself = np.isin(ids, self._ids, assume_unique=True)
        self._histogram[BINS] -= int(itself.sum())
        few, many = met.few, met.many
        other = self._ids[few] != ids[many]
        few, many = few[other], many[other]
        values = self._exact(documents, few, many)
        shared = self._share_a_bucket(documents, few, many)
        for i, j, value, together in zip(
            few.tolist(), many.tolist(), values.tolist(), shared.tolist(), strict=True
        ):
            if value < self._threshold:
                continue
            a, b = self._sample.keys[i], documents.keys[j]
            self._reached[a] = self._reached.get(a, False) or together
            # Of two in the sample, the pair comes from both sides.
            if not itself[j] or self._ids[i] < ids[j]:
                self._pairs.append((Pair(min(a, b), max(a, b), value), together))

    def _exact(self, documents: Documents, few: Ids, many: Ids) -> Any:
        order = np.argsort(few, kind="stable")
        values = np.empty(len(few))
        values[order] = jaccard.jaccard_pairs(
            np.concatenate((self._sample.tokens, documents.tokens)),
            np.concatenate(
                (self._sample.offsets, documents.offsets[1:] + self._sample.offsets[-1])
            ),
            np.concatenate((self._sample.shingle_counts, documents.shingle_counts)),
            few[order],
            many[order] + len(self._ids),
            self._corpus.config.shingle.n,
        )
        return values

    def _share_a_bucket(self, documents: Documents, few: Ids, many: Ids) -> Any:
        config = self._corpus.config
        others, places = np.unique(many, return_inverse=True)
        signatures = np.concatenate(
            (self._signatures, documents.signatures(others, config.num_hashes))
        )
        after_last = np.full(len(few), config.bands, np.int16)
        return jaccard.shares_earlier_band(
            signatures, few, places + len(self._ids), after_last, config.rows
        )

    def _candidates(self) -> list[int]:
        """Return how many others share a bucket with each document of the sample."""
        config = self._corpus.config
        buckets = band_buckets.buckets(self._signatures, config.banding)
        parameters = [
            Array(np.repeat(np.arange(len(buckets), dtype=np.int32), config.bands)),
            Array(buckets.ravel()),
        ]
        cursor = self._connection.cursor(binary=True)
        rows = cursor.execute(self._corpus.statement(_CANDIDATES), parameters).fetchall()
        return sorted(count for (count,) in rows)


def distribution(report: RecallReport) -> Distribution:
    """Return how many documents are how similar to one, as measured; unlike ones are left out."""
    share = max(report.sampled, 1)
    middles = [min((i + 0.5) / BINS, 1.0) for i in range(BINS + 1)]
    return Distribution(middles, [pairs / share for pairs in report.histogram])
