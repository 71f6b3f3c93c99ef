"""The possible bands and rows, with the recall, the candidates and the storage of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import NormalDist
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.settings.check_values import as_float, check_count, is_number
from textsim_db.settings.choose_bands import MIN_ROWS, Bands, probability_of
from textsim_db.settings.corpus_settings import DEFAULTS, MAX_PASSAGE, MIN_PASSAGE, CorpusSettings
from textsim_db.sketch.disk_space import WORD_ARRAY, WORD_BYTES, count_fingerprints, storage

MAX_WORDS = 10_000_000
BUCKETS = 2**32
"""The values that a bucket may have: the numbers of an int4."""
Z = 1.959963984540054
"""The quantile of the normal distribution for an interval of 95 %."""
UNRELATED = 0.1
"""Documents below this similarity share only shingles that many documents have."""


class Option(NamedTuple):
    """A number of bands and of rows for a corpus, or an exact corpus, with its recall and its cost."""

    bands: int | None
    """The buckets of a document; None for an exact corpus."""
    rows: int | None
    """The signature values in a bucket; None for an exact corpus."""
    recall: float
    """The probability of finding a pair whose similarity equals the threshold, by the formula.

    Between 0.2 and 0.6 the real recall may be lower by up to 0.013.
    """
    band_rows: int
    """The rows of a document in the band table."""
    storage: int
    """Bytes for a document, all indexes included."""
    candidates: float
    """The expected number of documents to verify for each document."""
    chosen: bool
    """Whether `create_corpus` chooses this option."""
    threshold: float
    """The similarity from which an exact corpus finds every pair."""
    fingerprints: int = 0
    """The fingerprints of a document, each a row; 0 in a corpus without passages."""

    @property
    def banding(self) -> Bands | None:
        """The bands and rows as one value; None for an exact corpus."""
        return None if self.bands is None or self.rows is None else Bands(self.bands, self.rows)

    def probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity is found."""
        return probability_of(self.banding, self.threshold, similarity)


class Distribution(NamedTuple):
    """The similarities of the documents of a corpus to one document."""

    similarities: Sequence[float]
    """Some similarities."""
    documents: Sequence[float]
    """The number of documents with each of these similarities."""
    corpus_documents: int
    """The number of documents in the corpus."""

    def candidates(self, banding: Bands) -> float:
        """Return the expected number of candidates for one document.

        Two buckets of unrelated documents are equal with probability 2^-32.
        """
        by_chance = banding.bands**2 * self.corpus_documents / BUCKETS
        return by_chance + sum(
            count * banding.probability(similarity)
            for similarity, count in zip(self.similarities, self.documents, strict=True)
        )

    def exact_candidates(self, threshold: float, shingles: float) -> float:
        """Return the expected number of candidates for one document of an exact corpus.

        A shared shingle is a shared row if it is among the smallest values of both documents, so the
        shared rows follow nearly a binomial distribution, and that nearly a normal one. A candidate
        shares as many rows as shares_enough() asks of two documents of this size. Documents below
        UNRELATED share common shingles only, which come last.
        """
        rows = count_rows_of(shingles, threshold)
        common = ceil(2 * threshold * shingles / (1 + threshold))
        needed = max(1.0, common - (shingles - rows))
        return sum(
            count * (1.0 if similarity >= threshold else _at_least(needed, rows, similarity))
            for similarity, count in zip(self.similarities, self.documents, strict=True)
            if similarity >= UNRELATED
        )


def _at_least(needed: float, rows: float, similarity: float) -> float:
    """Return the probability that two documents of one size share the needed number of rows."""
    share = 2 * similarity / (1 + similarity)
    deviation = sqrt(rows * share * (1 - share))
    return 1 - NormalDist(rows * share, max(deviation, 1e-9)).cdf(needed - 0.5)


def count_rows_of(shingles: float, threshold: float) -> float:
    """Return the band rows of a document in an exact corpus: n - ceil(t n) + 3, or n if that is less."""
    return min(shingles, shingles - ceil(threshold * shingles) + 3)


def plan(
    threshold: float = DEFAULTS.threshold,
    recall: float = DEFAULTS.recall,
    num_hashes: int = DEFAULTS.num_hashes,
    words: float = 200,
    documents: int = 1_000_000,
    background: float = 0.05,
    passages: int | None = None,
) -> list[Option]:
    """Return an `Option` for an exact corpus, and one for each number of rows from 2 to `num_hashes`.

    - `threshold`, `recall`, `num_hashes`: as in `create_corpus`.
    - `words`: the mean number of words in a document.
    - `documents`: the number of documents in the corpus.
    - `background`: the similarity of two unrelated documents. The expected number of candidates
      depends on it.
    - `passages`: as in `create_corpus`, with shingles of words.

    Raises `ConfigurationError` if a value is out of range, or if no banding reaches the recall.

        >>> [(o.bands, o.rows) for o in plan(threshold=0.8, recall=0.95) if o.chosen]
        [(18, 7)]
    """
    check_count(documents, "documents", 0, 2**63 - 1)
    if not is_number(background) or not 0 <= as_float(background) < 1:
        raise ConfigurationError(f"background is {background!r}; expected 0 or more, below 1")
    distribution = Distribution([as_float(background)], [documents], documents)
    if passages is not None:
        check_count(passages, "passages", MIN_PASSAGE, MAX_PASSAGE)
    fingerprints = count_fingerprints(words, passages)
    return options(threshold, recall, num_hashes, words, distribution, fingerprints)


def options(
    threshold: float,
    recall: float,
    num_hashes: int,
    words: float,
    distribution: Distribution,
    fingerprints: int = 0,
) -> list[Option]:
    """Return the options for documents with this distribution, the exact corpus first."""
    chosen = choose(threshold, recall, num_hashes)
    if not is_number(words) or not 0 <= as_float(words) <= MAX_WORDS:
        raise ConfigurationError(f"words is {words!r}; expected 0 to {MAX_WORDS}")
    threshold, words = as_float(threshold), as_float(words)
    possible = [_exact_option(threshold, words, distribution, chosen is None, fingerprints)]
    for rows in range(MIN_ROWS, num_hashes + 1):
        banding = Bands(num_hashes // rows, rows)
        possible.append(
            Option(
                *banding,
                banding.probability(threshold),
                banding.bands,
                round(
                    storage(
                        WORD_ARRAY + WORD_BYTES * words, 2 * num_hashes, banding.bands, fingerprints
                    )
                ),
                distribution.candidates(banding),
                banding == chosen,
                threshold,
                fingerprints,
            )
        )
    return possible


def _exact_option(
    threshold: float, words: float, distribution: Distribution, is_chosen: bool, fingerprints: int
) -> Option:
    rows = round(count_rows_of(words, threshold))
    return Option(
        None,
        None,
        1.0,
        rows,
        round(storage(WORD_ARRAY + WORD_BYTES * words, 4 * rows, rows, fingerprints)),
        distribution.exact_candidates(threshold, words),
        is_chosen,
        threshold,
        fingerprints,
    )


def choose(threshold: float, recall: float, num_hashes: int) -> Bands | None:
    """Return the banding that create_corpus chooses, None for recall 1; raises ConfigurationError."""
    settings = CorpusSettings(threshold=threshold, recall=recall, num_hashes=num_hashes)
    return settings.complete().banding


def wilson(share: float, count: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share of this many independent observations.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not count:
        return 0.0, 1.0
    centre = share + Z**2 / (2 * count)
    spread = Z * sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    scale = 1 + Z**2 / count
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
