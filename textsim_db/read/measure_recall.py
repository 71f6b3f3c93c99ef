"""Measures the recall of a corpus: compares a sample with all documents by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.run_ahead import cut
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.brute_force import BINS, make_index, overlaps
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import count_shared
from textsim_db.compare.pair_values import concatenated, jaccard_pairs
from textsim_db.db.binary_format import array
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import statistics_statements as statements
from textsim_db.read.find_candidates import LookUp, look_up_of
from textsim_db.read.snapshot import fetch, snapshot
from textsim_db.read.stored_documents import DOCUMENTS_AT_ONCE, StoredDocuments, WordNumbers
from textsim_db.results import Pair, RecallReport
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.exact_prefix import share_enough
from textsim_db.sketch.plan_options import Distribution, Option, count_fingerprints, options, wilson
from textsim_db.sketch.ragged import in_parts
from textsim_db.sketch.sketch_texts import buckets_of
from textsim_db.text.word_places import is_spaceless

if TYPE_CHECKING:
    from psycopg.abc import Params

Row = tuple[Any, ...]
_WORDS_OF_SCRIPT = 10_000
"""The words that show the script of a corpus."""
_FEWEST_WORDS = 100
"""The words of a text from which on the longer shingle of a spaceless script fits; titles have fewer."""


class SampleOfPart(NamedTuple):
    size: int
    seed: int | None
    """Chooses the documents."""
    part: int | None
    """Only documents of this part are chosen and compared; None in a corpus without parts."""


def measure_recall(
    store: Store,
    threshold: float,
    sample: SampleOfPart,
    progress: Callable[[int, int], None] | None,
) -> RecallReport:
    with snapshot(store.engine) as connection:
        parameters = {"part": sample.part}
        rows = fetch(connection, store.corpus, statements.IDS_WITH_SHINGLES, parameters)
        ids = np.array([id_ for (id_,) in rows], np.int64)
        size = min(sample.size, len(ids))
        chosen = np.sort(np.random.default_rng(sample.seed).choice(ids, size, replace=False))
        comparison = _SampleComparison(connection, store, threshold, chosen, sample.part)
        return comparison.report(len(ids), progress)


class _SampleComparison:
    def __init__(
        self,
        connection: Connection,
        store: Store,
        threshold: float,
        sample_ids: Ids,
        part: int | None,
    ) -> None:
        self._connection = connection
        self._vocabulary = WordNumbers(dictionary_of(store))
        self._corpus = store.corpus
        self._config = store.corpus.config
        self._threshold = threshold
        self._part = part
        rows = self._execute(statements.SAMPLE_OF_IDS, [array(sample_ids.astype(np.int32))])
        self._sample = StoredDocuments(self._corpus, self._vocabulary, rows)
        self._sample_rows = self._sample.rows()
        self._look_up = self._look_up_of(self._sample, np.arange(len(rows)))
        self._index = make_index(self._sample_rows)
        # It counts a pair of two documents of the sample from both sides.
        self._histogram = np.zeros(BINS + 1, np.int64)
        self._pairs: list[tuple[Pair[str], bool]] = []
        self._is_reached: dict[str, bool] = {}

    def report(self, with_words: int, progress: Callable[[int, int], None] | None) -> RecallReport:
        ((documents, words),) = self._execute(statements.COUNT_AND_MEAN_WORDS, {"part": self._part})
        self._compare_all(documents, progress)
        # Within the sample each pair is found twice, and each document with itself.
        sampled_histogram = overlaps(self._index, self._sample_rows, math.inf).histogram
        sampled_histogram[BINS] -= len(self._sample.ids)
        sampled_histogram //= 2
        count = len(self._pairs)
        shared = sum(1 for _, shares_bucket in self._pairs if shares_bucket)
        promised = [self._config.probability(pair.similarity) for pair, _ in self._pairs]
        missed = [pair for pair, shares_bucket in self._pairs if not shares_bucket]
        return RecallReport(
            threshold=self._threshold,
            documents=int(documents),
            empty=int(documents) - with_words,
            words=float(words),
            sampled=len(self._sample.ids),
            pairs=count,
            candidate_pairs=shared,
            recall=shared / count if count else None,
            interval=wilson(shared / max(count, 1), count),
            promised=sum(promised) / count if count else None,
            histogram=(self._histogram - sampled_histogram).tolist(),
            sampled_histogram=sampled_histogram.tolist(),
            candidates=self._candidates(),
            missed=sorted(missed, key=lambda pair: -pair.similarity),
            lost=sorted(key for key, is_reached in self._is_reached.items() if not is_reached),
            curve=[self._config.probability(step / BINS) for step in range(BINS + 1)],
            shingle=self._longer_shingle(words),
        )

    def _longer_shingle(self, mean_words: float) -> str | None:
        numbers = self._sample.rows(of_shingles=False).tokens[:_WORDS_OF_SCRIPT].tolist()
        shingle = _shingle_of_script(self._vocabulary.texts(numbers))
        fits = shingle is None or self._config.shingle.n >= Shingle.parse(shingle).n
        return None if fits or mean_words < _FEWEST_WORDS else shingle

    def _compare_all(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        done = 0
        with self._connection.cursor(self._corpus.label("measure recall"), binary=True) as cursor:
            cursor.itersize = DOCUMENTS_AT_ONCE
            statement = self._corpus.statement(statements.DOCUMENTS_WITH_SHINGLES)
            cursor.execute(statement, {"part": self._part})
            for chunk in cut(cursor, DOCUMENTS_AT_ONCE, lambda row: 4 * len(row[3] or row[4])):
                self._compare(StoredDocuments(self._corpus, self._vocabulary, chunk))
                done += len(chunk)
                if progress is not None:
                    progress(done, total)

    def _compare(self, documents: StoredDocuments) -> None:
        rows = documents.rows()
        overlap = overlaps(self._index, rows, self._threshold)
        self._histogram += overlap.histogram
        in_sample = np.isin(documents.ids, self._sample.ids, assume_unique=True)
        # The histogram counts each document of the sample with itself, which is no pair.
        self._histogram[BINS] -= int(in_sample.sum())
        is_pair = self._sample.ids[overlap.few] != documents.ids[overlap.many]
        few, many = overlap.few[is_pair], overlap.many[is_pair]
        order = np.argsort(few, kind="stable")
        few, many = few[order], many[order]
        both = concatenated(self._sample_rows, rows)
        values = jaccard_pairs(both, few, many + len(self._sample.ids))
        accepted = Criterion(JACCARD, self._threshold).accepted(values)
        few, many, values = few[accepted], many[accepted], values[accepted]
        # A pair of two documents of the sample is found from both sides, but counts once.
        counts = ~in_sample[many] | (self._sample.ids[few] < documents.ids[many])
        columns = (few, many, values, self._are_candidates(documents, few, many), counts)
        for i, j, value, shares_bucket, counted in zip(*(c.tolist() for c in columns), strict=True):
            a, b = self._sample.keys[i], documents.keys[j]
            self._is_reached[a] = self._is_reached.get(a, False) or shares_bucket
            if counted:
                self._pairs.append((Pair(min(a, b), max(a, b), value), shares_bucket))

    def _look_up_of(self, documents: StoredDocuments, numbers: Ids) -> LookUp:
        signatures = documents.signatures(numbers)
        parts = None if documents.parts is None else documents.parts[numbers]
        buckets = in_parts(buckets_of(signatures, self._config), parts)
        return look_up_of(buckets, documents.shingle_counts[numbers], self._config, parts)

    def _are_candidates(
        self, documents: StoredDocuments, few: Ids, many: Ids
    ) -> npt.NDArray[np.bool_]:
        others, places = np.unique(many, return_inverse=True)
        shared = count_shared(
            self._look_up.buckets, self._look_up_of(documents, others).buckets, few, places
        )
        if not self._config.is_exact:
            return shared > 0
        sizes = self._sample.shingle_counts[few], documents.shingle_counts[many]
        return share_enough(shared, *sizes, self._config.threshold)

    def _candidates(self) -> list[int]:
        """Return how many others share enough buckets with each document of the sample."""
        buckets, sizes, _, threshold, *_ = self._look_up
        places = [array(buckets.owners()), array(buckets.values)]
        parameters = [*places, array(sizes), threshold, self._part]
        rows = self._execute(statements.COUNT_CANDIDATES, parameters)
        return sorted(count for (count,) in rows)

    def _execute(self, statement: LiteralString, parameters: Params) -> list[Row]:
        return fetch(self._connection, self._corpus, statement, parameters)


def distribution(report: RecallReport) -> Distribution:
    """Return for each similarity above 0 the number of documents that have it."""
    share = max(report.sampled, 1)
    middles = [min((i + 0.5) / BINS, 1.0) for i in range(BINS + 1)]
    # A pair of two sampled documents gives each of them a similar document.
    counts = zip(report.histogram, report.sampled_histogram, strict=True)
    return Distribution(middles, [sum(pairs) / share for pairs in counts], report.documents)


def measured_options(
    report: RecallReport, recall: float, num_hashes: int, passages: int | None, unit: str
) -> list[Option]:
    fingerprints = count_fingerprints(report.words, passages, unit)
    measured = distribution(report)
    return options(report.threshold, recall, num_hashes, report.words, measured, fingerprints)


def _shingle_of_script(words: Sequence[str]) -> str | None:
    """Return the shingle for long texts of these words, if most are of spaceless scripts.

    A pair falls below a threshold by about as many changes as with "word:3" in other scripts: a word has
    some two characters in Chinese and Japanese, and some four letters in Thai.
    """
    spaceless = [word[0] for word in words if is_spaceless(word)]
    if 2 * len(spaceless) <= len(words):
        return None
    alphabetic = sum(1 for letter in spaceless if letter < "\u2e80")  # Thai, Lao, Khmer, Myanmar
    return "word:8" if 2 * alphabetic > len(spaceless) else "word:6"
